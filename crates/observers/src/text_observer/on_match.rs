use std::{fmt, sync::Arc};

use streamkeeper_contract::{Id, Text};

/// What happens where a pattern of a [`TextObserver`](crate::TextObserver) matches. One thing for one observer: a text that gets two
/// treatments gets two observers, in an order that can be seen.
#[derive(Clone)]
pub struct OnMatch(pub(super) Kind);

/// A match, for a function that makes its replacement.
///
/// Has no `Debug`: it is the text that nobody shall see.
#[allow(missing_debug_implementations, reason = "it is the text that nobody shall see")]
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Match<'a> {
    /// The name of the pattern; of overlapping and touching matches, that of the first.
    pub pattern: &'a str,
    /// The matched text; in JSON, what the string means.
    pub text: &'a str,
    /// It is longer than 4 KiB, and [`text`](Self::text) is its beginning.
    pub is_cut: bool,
}

pub(super) type Label = Arc<dyn Fn(&str) -> Text + Send + Sync>;
pub(super) type Replacement = Arc<dyn Fn(&Match<'_>) -> Text + Send + Sync>;

#[derive(Clone)]
pub(super) enum Kind {
    Label(Label),
    Replace(Replacement),
    Tag,
    Stop { code: Text, reason: Text },
    Emit { channel: Id },
}

impl OnMatch {
    /// Each match is replaced by what the function makes of the pattern's name. Of a match nothing is held once it is certain.
    pub fn label(label: impl Fn(&str) -> Text + Send + Sync + 'static) -> Self {
        Self(Kind::Label(Arc::new(label)))
    }

    /// Each match is replaced by what the function makes of it. It is held until it is whole, at most 4 KiB of it. Must give the same
    /// for the same match; a panic fails the observer.
    pub fn replace(replacement: impl Fn(&Match<'_>) -> Text + Send + Sync + 'static) -> Self {
        Self(Kind::Replace(Arc::new(replacement)))
    }

    /// Each match stays and is enclosed in `<name>…</name>`, with the pattern's name. Its last character is held until it is over.
    pub fn tag() -> Self {
        Self(Kind::Tag)
    }

    /// The first match stops the invocation, before a byte of it goes out, as soon as nothing that follows can undo it. The reason is
    /// completed with the pattern's name and the channel.
    pub fn stop(code: impl Into<Text>, reason: impl Into<Text>) -> Self {
        Self(Kind::Stop { code: code.into(), reason: reason.into() })
    }

    /// Each match emits an event `match` on this channel, before the match goes out: see [`report`](crate::TextObserver::report). The
    /// text stays as it is.
    pub fn emit(channel: Id) -> Self {
        Self(Kind::Emit { channel })
    }

    /// Whether the text that leaves is another.
    pub(super) fn changes_text(&self) -> bool {
        matches!(self.0, Kind::Label(_) | Kind::Replace(_) | Kind::Tag)
    }
}

impl fmt::Debug for OnMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Label(_) => "OnMatch::label",
            Kind::Replace(_) => "OnMatch::replace",
            Kind::Tag => "OnMatch::tag",
            Kind::Stop { .. } => "OnMatch::stop",
            Kind::Emit { .. } => "OnMatch::emit",
        })
    }
}
