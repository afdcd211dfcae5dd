//! AWS event stream messages: a prelude of two lengths with a checksum, headers, a payload, a checksum of it all. Integers are
//! big-endian, checksums are CRC-32.
//!
//! Source: "Amazon Event Stream encoding" in the AWS documentation of Amazon Transcribe and Amazon S3 Select.

use super::{Buffer, Data, Found, text_at};
use crate::WireError;

const PRELUDE: usize = 12;
const OVERHEAD: usize = PRELUDE + 4;

/// Binary messages. Each is one frame: its payload is the event, its `:event-type` or `:exception-type` the name.
#[derive(Debug, Default)]
pub(super) struct Aws {
    message: u64,
}

impl Aws {
    pub(super) fn find(&mut self, buffer: &Buffer) -> Result<Option<Found>, WireError> {
        let unread = buffer.unread();
        let message = self.message;
        let broken = |what| WireError::BrokenMessage { message, what };
        let rest = || {
            let end = unread.len();
            let rest = Found { raw: 0..end, unterminated: true, data: text_at(unread, 0..end), ..Found::default() };
            (buffer.closed && !unread.is_empty()).then_some(rest)
        };
        let Some(prelude) = unread.get(..PRELUDE) else { return Ok(rest()) };
        let number = |at: usize| u32::from_be_bytes([unread[at], unread[at + 1], unread[at + 2], unread[at + 3]]);
        let (total, headers) = (number(0) as usize, number(4) as usize);
        if crc32fast::hash(&prelude[..8]) != number(8) {
            return Err(broken("the checksum of its prelude is wrong"));
        }
        if total < OVERHEAD || headers > total - OVERHEAD {
            return Err(broken("its lengths do not fit"));
        }
        if total > buffer.limit {
            return Err(WireError::EventTooLarge { limit: buffer.limit });
        }
        let Some(whole) = unread.get(..total) else { return Ok(rest()) };
        if crc32fast::hash(&whole[..total - 4]) != number(total - 4) {
            return Err(broken("its checksum is wrong"));
        }
        self.message += 1;
        let name = event_name(whole, PRELUDE, PRELUDE + headers).ok_or(broken("its headers are not readable"))?;
        let data = text_at(unread, PRELUDE + headers..total - 4);
        Ok(Some(Found { raw: 0..total, name, data, ..Found::default() }))
    }
}

/// Reads the headers for the event's name. `None` if they are broken.
fn event_name(message: &[u8], from: usize, to: usize) -> Option<Data> {
    let headers = message.get(..to)?;
    let mut at = from;
    let mut name = Data::None;
    while at < to {
        let length = usize::from(*headers.get(at)?);
        let key = headers.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        let kind = *headers.get(at)?;
        at += 1;
        let fixed = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            6 | 7 => {
                let size = usize::from(u16::from_be_bytes([*headers.get(at)?, *headers.get(at + 1)?]));
                at += 2;
                size
            }
            _ => return None,
        };
        headers.get(at..at + fixed)?;
        let names = matches!(key, b":event-type" | b":exception-type" | b":error-code");
        if kind == 7 && names {
            name = text_at(message, at..at + fixed);
        }
        at += fixed;
    }
    Some(name)
}
