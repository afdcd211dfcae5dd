use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use streamkeeper_contract::{Id, Text, id};
use streamkeeper_stream::{Observers, Registration};
use streamkeeper_text::{Pattern, Patterns};

use super::Redactor;
use crate::{OnArguments, OnMatch, TextObserver};

/// Remembers what was replaced by which token, so that it can be turned back for those who may see it. Clones share what they know.
///
/// One vault serves one conversation: tokens are numbered as they come, `[EMAIL_1]`, `[EMAIL_2]`, and equal texts get equal tokens. It is
/// memory only, and gone with its last clone.
///
/// A token is found in text exactly as it was given. A model that writes it otherwise (`EMAIL 1`) writes something else, which stays.
/// Whoever can write a token into an answer can have it restored there: restore only what goes to people who may see all of a vault.
///
/// It holds 10 000 texts ([`with_capacity`](Self::with_capacity)); then new ones get labels that cannot be turned back.
#[derive(Clone)]
pub struct Vault(Arc<Mutex<Known>>);

struct Known {
    capacity: usize,
    tokens: HashMap<(Text, Text), Text>,
    texts: HashMap<Text, Text>,
    /// How many tokens of a name there are.
    last: HashMap<Text, usize>,
}

const DEFAULT_CAPACITY: usize = 10_000;

static TOKENS: LazyLock<Patterns> = LazyLock::new(|| {
    let token = Pattern::regex("token", r"\[[A-Z0-9_.-]{1,64}_[0-9]{1,9}\]").expect("it is a pattern");
    Patterns::new([token]).expect("it is small")
});

impl Vault {
    /// Knows nothing, and may learn 10 000 texts.
    pub fn new() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }

    /// May learn so many texts.
    pub fn with_capacity(capacity: usize) -> Self {
        let known = Known { capacity, tokens: HashMap::new(), texts: HashMap::new(), last: HashMap::new() };
        Self(Arc::new(Mutex::new(known)))
    }

    /// How many texts it knows.
    pub fn len(&self) -> usize {
        self.known().texts.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A text with all tokens that it knows turned back.
    pub fn restore(&self, text: &str) -> String {
        self.restorer().redact(text).text
    }

    /// The same in the strings of a JSON text, such as arguments of a tool call. JSON stays JSON.
    ///
    /// ```
    /// use streamkeeper_observers::{Redact, Replacement, Vault};
    ///
    /// let vault = Vault::new();
    /// let redactor = Redact::new()
    ///     .pattern(streamkeeper_text::Pattern::regex("name", "Ada \"the\" L.")?)?
    ///     .replacement(Replacement::Token(vault.clone()))
    ///     .redactor();
    /// assert_eq!(redactor.redact("Ada \"the\" L.").text, "[NAME_1]");
    /// assert_eq!(vault.restore_json(r#"{"to":"[NAME_1]"}"#), r#"{"to":"Ada \"the\" L."}"#);
    /// # Ok::<_, streamkeeper_text::PatternError>(())
    /// ```
    pub fn restore_json(&self, json: &str) -> String {
        self.restorer().redact_json(json).text
    }

    /// Turns back tokens in a stream: see [`RestoreTokens`].
    pub fn restore_stream(&self) -> RestoreTokens {
        RestoreTokens { id: id!("restore-tokens"), vault: self.clone() }
    }

    fn restorer(&self) -> Redactor {
        let vault = self.clone();
        Redactor::new(TOKENS.clone(), move |_, token| vault.text(token))
    }

    /// The token of a text, `None` if it is new and the vault is full.
    pub(super) fn token(&self, name: &str, text: &str) -> Option<Text> {
        let mut known = self.known();
        let key = (Text::from(name), Text::from(text));
        if let Some(token) = known.tokens.get(&key) {
            return Some(token.clone());
        }
        if known.texts.len() >= known.capacity {
            return None;
        }
        let last = known.last.entry(key.0.clone()).or_default();
        *last += 1;
        let token = Text::from(format!("[{name}_{last}]"));
        known.texts.insert(token.clone(), key.1.clone());
        known.tokens.insert(key, token.clone());
        Some(token)
    }

    /// What a token stands for; itself if nobody knows.
    pub(super) fn text(&self, token: &str) -> Text {
        self.known().texts.get(token).cloned().unwrap_or_else(|| token.into())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Vault {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Turns the tokens of a [`Vault`] back in a stream, wherever they are cut, in text and in tool arguments. A transform.
///
/// For the stream that goes to those who may see the texts; put it behind whatever must not, and record before it.
///
/// ```
/// use streamkeeper_contract::{Chunk, Lane};
/// use streamkeeper_observers::{Redact, Replacement, Vault};
/// use streamkeeper_stream::{ObserverFactoryContext, Observers};
///
/// let vault = Vault::new();
/// Redact::pii().replacement(Replacement::Token(vault.clone())).redactor().redact("I am ada@example.org");
///
/// let observers = Observers::from(vault.restore_stream());
/// let mut stack = observers.stack(&ObserverFactoryContext::default());
/// for text in ["Hello [EM", "AIL_", "1], hello [EMAIL_2]"] {
///     stack.push(Chunk::delta(Lane::TEXT, text));
/// }
/// stack.finish();
/// let texts: Vec<_> = std::iter::from_fn(|| stack.pop()).filter_map(|chunk| chunk.text().map(str::to_owned)).collect();
/// assert_eq!(texts.concat(), "Hello ada@example.org, hello [EMAIL_2]");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is registered"]
pub struct RestoreTokens {
    id: Id,
    vault: Vault,
}

impl RestoreTokens {
    /// The id it is registered with. Default: `restore-tokens`.
    pub fn id(mut self, id: Id) -> Self {
        self.id = id;
        self
    }

    /// The registration of this transform, for all call classes.
    pub fn registration(self) -> Registration {
        let vault = self.vault;
        let restore = OnMatch::replace(move |found| vault.text(found.text));
        TextObserver::new(self.id, TOKENS.clone(), restore).arguments(OnArguments::Mask).transform().registration()
    }
}

impl From<RestoreTokens> for Registration {
    fn from(restore: RestoreTokens) -> Self {
        restore.registration()
    }
}

impl From<RestoreTokens> for Observers {
    fn from(restore: RestoreTokens) -> Self {
        restore.registration().into()
    }
}
