use crate::Format;

/// The bytes cannot be read on as a stream of events. Everything decoded before it stays valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// One event is larger than the limit. The source should be dropped; memory stays near the limit.
    #[error("an event is larger than the limit of {limit} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The stream has more choices, parts or tool calls than can be told apart. The event that goes past the limit gives no chunks.
    #[error("the stream has more {what} than the limit of {limit}")]
    TooManyLanes {
        /// What there are too many of, in our words.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A binary message is broken: its prelude, its length or one of its checksums is wrong.
    #[error("message {message} of the AWS event stream is broken: {what}")]
    BrokenMessage {
        /// Which message, from 0.
        message: u64,
        /// What is wrong, in our words.
        what: &'static str,
    },
    /// No format was named, and the bytes are no stream of events: binary noise, plain text, a page of HTML.
    #[error("this is no stream of events that is known here; if it is one, name its format")]
    Undetected,
    /// Not one event of the stream fits the named format, or most do not and the first looks like another format.
    #[error("the stream is not in the format {expected}{}", .looks_like.map(|f| format!("; it looks like {f}")).unwrap_or_default())]
    WrongFormat {
        /// The format that was named.
        expected: Format,
        /// The format it looks like.
        looks_like: Option<Format>,
    },
    /// The body is empty, or nothing but white space.
    #[error("the stream is empty")]
    Empty,
}

impl WireError {
    /// The stable machine code: snake case of the variant.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EventTooLarge { .. } => "event_too_large",
            Self::TooManyLanes { .. } => "too_many_lanes",
            Self::BrokenMessage { .. } => "broken_message",
            Self::Undetected => "undetected",
            Self::WrongFormat { .. } => "wrong_format",
            Self::Empty => "empty",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_codes_lists_every_error() {
        // spec 1.13
        let page = include_str!("../../../docs/codes.md");
        for error in [
            WireError::EventTooLarge { limit: 1 },
            WireError::TooManyLanes { what: "parts", limit: 1 },
            WireError::BrokenMessage { message: 0, what: "checksum" },
            WireError::Undetected,
            WireError::WrongFormat { expected: Format::Gemini, looks_like: None },
            WireError::Empty,
        ] {
            assert!(page.contains(&format!("| `{}` |", error.code())), "{}", error.code());
        }
    }
}
