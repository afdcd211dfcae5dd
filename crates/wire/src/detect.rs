//! What a stream is in, told from its first bytes.

use crate::{Format, Framing, dialect::Event};

/// The framing, or `None` if more bytes are needed.
pub(crate) fn framing(format: Option<Format>, head: &[u8], closed: bool) -> Option<Framing> {
    if matches!(format, Some(Format::BedrockConverse | Format::BedrockInvoke)) {
        return Some(Framing::AwsEventStream);
    }
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    match text.first() {
        Some(b'{') => Some(Framing::JsonLines),
        Some(b'[') => Some(Framing::JsonArray),
        Some(_) => Some(Framing::Sse),
        None if closed && !head.is_empty() => Some(Framing::Sse),
        None => None,
    }
}

/// The format of which this is the first event.
pub(crate) fn format(event: &Event<'_>) -> Format {
    let _ = event;
    Format::Raw
}
