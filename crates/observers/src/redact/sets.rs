//! The patterns that come with the project.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use streamkeeper_text::Pattern;

use crate::validators::{luhn, mod97};

/// A set of patterns that comes with the project. A change of what a set finds is a new [version](Self::version).
///
/// ```
/// use streamkeeper_observers::RedactionSet;
///
/// let names: Vec<_> = RedactionSet::Pii.patterns().iter().map(|pattern| pattern.name()).collect();
/// assert_eq!(names, ["email", "iban", "card", "ssn", "phone", "ip_address"]);
/// assert_eq!(RedactionSet::from_name("secrets"), Some(RedactionSet::Secrets));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RedactionSet {
    /// `secrets`: keys, tokens and credentials.
    Secrets,
    /// `pii`: personal data.
    Pii,
}

impl RedactionSet {
    /// All sets.
    pub const ALL: [Self; 2] = [Self::Secrets, Self::Pii];

    /// Its name in policies and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Pii => "pii",
        }
    }

    /// The set of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.as_str() == name)
    }

    /// Grows whenever the set finds more, less or otherwise.
    pub fn version(self) -> u32 {
        1
    }

    /// Its patterns. Where two match the same text, the first one names it.
    pub fn patterns(self) -> &'static [Pattern] {
        static SECRETS: LazyLock<Vec<Pattern>> = LazyLock::new(|| all(SECRETS_DATA));
        static PII: LazyLock<Vec<Pattern>> = LazyLock::new(|| all(PII_DATA));
        match self {
            Self::Secrets => &SECRETS,
            Self::Pii => &PII,
        }
    }
}

/// Name, expression, and what the expression cannot say.
type Entry = (&'static str, &'static str, Option<fn(&str) -> bool>);

fn all(data: &[Entry]) -> Vec<Pattern> {
    let pattern = |&(name, expression, validator): &Entry| {
        let pattern = Pattern::regex(name, expression).expect("the bundled sets are checked by tests");
        match validator {
            Some(validator) => pattern.with_validator(validator),
            None => pattern,
        }
    };
    data.iter().map(pattern).collect()
}

const SECRETS_DATA: &[Entry] = &[
    (
        "private_key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:-?[^-])*(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
        None,
    ),
    ("anthropic_key", r"\bsk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{20,}", None),
    ("openrouter_key", r"\bsk-or-v1-[0-9a-f]{32,}", None),
    ("openai_key", r"\bsk-[A-Za-z0-9_-]{20,}", Some(is_mixed)),
    ("google_key", r"\bAIza[A-Za-z0-9_-]{35}", None),
    ("google_oauth_token", r"\bya29\.[A-Za-z0-9_-]{20,}", None),
    ("aws_access_key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", None),
    ("aws_secret_key", r#"(?i-u:aws_?secret_?(?:access_?)?key)["']?[ \t]*[:=][ \t]*["']?[A-Za-z0-9/+]{40}"#, None),
    ("azure_key", r"AccountKey=[A-Za-z0-9+/]{86}==", None),
    ("github_token", r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{40,}", None),
    ("gitlab_token", r"\bglpat-[A-Za-z0-9_-]{20,}", None),
    ("slack_token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}", Some(has_digit)),
    ("slack_webhook", r"hooks\.slack\.com/services/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}", None),
    ("stripe_key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", None),
    ("sendgrid_key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", None),
    ("npm_token", r"\bnpm_[A-Za-z0-9]{36}", None),
    ("pypi_token", r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}", None),
    ("hugging_face_token", r"\bhf_[A-Za-z0-9]{34,}", None),
    ("groq_key", r"\bgsk_[A-Za-z0-9]{40,}", None),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", None),
    ("bearer_token", r"\b[Bb](?:earer|EARER) [A-Za-z0-9._~+/-]{20,}=*", Some(has_digit)),
    ("url_credentials", r"://[A-Za-z0-9._~%+-]{1,64}:[^\s/@:]{1,128}@", None),
];

const PII_DATA: &[Entry] = &[
    ("email", r"\b[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}", None),
    ("iban", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", Some(is_iban)),
    (
        "card",
        r"\b[2-6][0-9]{3} [0-9]{4} [0-9]{4} [0-9]{4}\b|\b[2-6][0-9]{3}-[0-9]{4}-[0-9]{4}-[0-9]{4}\b|\b3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5}\b|\b[2-6][0-9]{12,18}\b",
        Some(luhn),
    ),
    ("ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", Some(is_ssn)),
    (
        "phone",
        r"\+[1-9][0-9]{0,2}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,5}(?:[ .-]?[0-9]{2,5}){1,4}\b|\([0-9]{3}\) ?[0-9]{3}[ .-][0-9]{4}\b|\b[2-9][0-9]{2}[.-][0-9]{3}[.-][0-9]{4}\b",
        Some(is_phone),
    ),
    (
        "ip_address",
        r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}",
        Some(is_ip_address),
    ),
];

/// Small and capital letters and digits, as random keys have and names in code rarely do.
fn is_mixed(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.bytes().skip(3).any(|byte| is(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether the text is an IBAN, or begins with one: capitals may follow that look like a group of it.
fn is_iban(text: &str) -> bool {
    let ends = text.match_indices(' ').map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|end| mod97(&text[..end]))
}

fn is_ssn(text: &str) -> bool {
    let (area, group, serial) = (&text[..3], &text[4..6], &text[7..]);
    area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000"
}

fn is_phone(text: &str) -> bool {
    (8..=15).contains(&text.bytes().filter(u8::is_ascii_digit).count())
}

/// Addresses of this machine and of none are nobody's.
fn is_ip_address(text: &str) -> bool {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return !address.is_loopback() && !address.is_unspecified() && !address.is_broadcast();
    }
    let text = if text.ends_with("::") { text } else { text.trim_end_matches(':') };
    has_digit(text) && text.len() >= 6 && text.parse::<Ipv6Addr>().is_ok_and(|address| !address.is_loopback())
}
