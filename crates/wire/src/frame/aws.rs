//! AWS event stream messages: a prelude of two lengths with a checksum, headers, a payload, a checksum of it all. Integers are
//! big-endian, checksums are CRC-32.
//!
//! Source: "Amazon Event Stream encoding" in the AWS documentation of Amazon Transcribe and Amazon S3 Select.

use std::ops::Range;

use super::{Buffer, Found, Place};
use crate::WireError;

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;
const OVERHEAD: usize = PRELUDE + CHECKSUM;

/// Binary messages. Each is one frame: its payload is the event, its `:event-type`, `:exception-type` or `:error-code` the name. An
/// error without a payload gets one from its `:error-message`: `{"message":"…"}`.
#[derive(Debug, Default)]
pub(super) struct Aws {
    message: u64,
}

impl Aws {
    pub(super) fn find(&mut self, buffer: &Buffer, own: &mut Vec<u8>) -> Result<Option<Found>, WireError> {
        let unread = buffer.unread();
        let message = self.message;
        let broken = |what| WireError::BrokenMessage { message, what };
        let rest = || Found { len: unread.len(), unterminated: true, ..Found::default() };
        let rest = || (buffer.closed && !unread.is_empty()).then(rest);

        if buffer.limit < OVERHEAD && !unread.is_empty() {
            return Err(WireError::EventTooLarge { limit: buffer.limit });
        }
        let Some(prelude) = unread.get(..PRELUDE) else { return Ok(rest()) };
        if !is_prelude(prelude) {
            return Err(broken("the checksum of its prelude is wrong"));
        }
        let (total, headers) = (number(prelude, 0) as usize, number(prelude, 4) as usize);
        if total < OVERHEAD || headers > total - OVERHEAD {
            return Err(broken("its lengths do not fit"));
        }
        if total > buffer.limit {
            return Err(WireError::EventTooLarge { limit: buffer.limit });
        }
        let Some(whole) = unread.get(..total) else { return Ok(rest()) };
        if crc32fast::hash(&whole[..total - CHECKSUM]) != number(whole, total - CHECKSUM) {
            return Err(broken("its checksum is wrong"));
        }
        let Named { name, error } =
            read_headers(whole, PRELUDE..PRELUDE + headers).ok_or(broken("its headers are not readable"))?;
        self.message += 1;
        let payload = PRELUDE + headers..total - CHECKSUM;
        let data = match error {
            Some(error) if payload.is_empty() => {
                let error = String::from_utf8_lossy(&whole[error]);
                *own = serde_json::json!({ "message": error }).to_string().into_bytes();
                Place::Own
            }
            _ => Place::At(payload),
        };
        Ok(Some(Found { len: total, name: name.map_or(Place::Nowhere, Place::At), data, ..Found::default() }))
    }
}

/// Whether a message begins like this: two lengths and their checksum.
pub(crate) fn is_prelude(head: &[u8]) -> bool {
    head.get(..PRELUDE).is_some_and(|prelude| crc32fast::hash(&prelude[..8]) == number(prelude, 8))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |four| u32::from_be_bytes(*four))
}

/// What the headers say about an event.
#[derive(Default)]
struct Named {
    name: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

/// `None` if the headers are broken.
fn read_headers(message: &[u8], range: Range<usize>) -> Option<Named> {
    const STRING: u8 = 7;
    let headers = message.get(..range.end)?;
    let mut at = range.start;
    let mut take = |length: usize| {
        let taken = at..at + length;
        at = taken.end;
        headers.get(taken.clone()).map(|bytes| (bytes, taken))
    };
    let mut named = Named::default();
    while let Some(([length], _)) = take(1) {
        let (key, _) = take(usize::from(*length))?;
        let ([kind], _) = take(1)? else { return None };
        let size = match *kind {
            // True, false.
            0 | 1 => 0,
            // Integers of 8, 16, 32 and 64 bits.
            2 => 1,
            3 => 2,
            4 => 4,
            5 => 8,
            // Bytes, a string.
            6 | STRING => match take(2)? {
                ([high, low], _) => usize::from(u16::from_be_bytes([*high, *low])),
                _ => return None,
            },
            // A timestamp, a UUID.
            8 => 8,
            9 => 16,
            _ => return None,
        };
        let (_, value) = take(size)?;
        match key {
            b":event-type" | b":exception-type" | b":error-code" if *kind == STRING => named.name = Some(value),
            b":error-message" if *kind == STRING => named.error = Some(value),
            _ => {}
        }
    }
    Some(named)
}
