use std::sync::{Arc, Mutex};

use streamkeeper_contract::{Body, CallClass, Chunk, ErrorInfo, Offset, Outcome, Usage};
use streamkeeper_stream::{ObserverFactoryContext, Observers, Recorder, Stack};
use streamkeeper_wire::{Decoder, Format, Passthrough, PassthroughError, WireError};

use crate::{tally::Counts, told::Told};

/// One stream on its way through one stack of observers.
pub(crate) struct Invocation {
    passthrough: Passthrough,
    /// Whether the provider's bytes are written again.
    is_wire: bool,
    stack: Stack,
    frame: Vec<Chunk>,
    pub(crate) told: Arc<Told>,
    pub(crate) verdicts: Arc<Mutex<Counts>>,
    /// What the provider stated, delivered or not.
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<WireError>,
    /// The first thing that was delivered and could not be written in the format.
    pub(crate) no_place: Option<PassthroughError>,
}

/// What the consumer gets.
#[derive(Default)]
pub(crate) struct Delivered {
    pub(crate) chunks: Vec<Chunk>,
    /// The provider's bytes, if they are asked for.
    pub(crate) wire: Vec<u8>,
}

impl Delivered {
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.wire.clear();
    }
}

impl Invocation {
    pub(crate) fn new(
        format: Option<Format>,
        is_wire: bool,
        observers: &Observers,
        call_class: &CallClass,
        (recorder, verdicts): (Recorder, Arc<Mutex<Counts>>),
    ) -> Self {
        let told = Arc::new(Told::default());
        let ctx = ObserverFactoryContext::new(call_class.clone());
        let stack = observers.builder(&ctx).events(told.clone()).failures(told.clone()).recorder(recorder).build();
        let decoder = format.map_or_else(Decoder::detect, Decoder::new);
        Self {
            passthrough: Passthrough::new(decoder),
            is_wire,
            stack,
            frame: Vec::new(),
            told,
            verdicts,
            usage: None,
            error: None,
            no_place: None,
        }
    }

    pub(crate) fn decoder(&self) -> &Decoder {
        self.passthrough.decoder()
    }

    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Takes bytes that arrived at this offset. Returns the outcome once it is decided: then the source is not to be asked again.
    pub(crate) fn push(&mut self, bytes: &[u8], at: Offset, delivered: &mut Delivered) -> Option<Arc<Outcome>> {
        self.passthrough.set_offset(at);
        let result = self.passthrough.push(bytes);
        self.observe(result, delivered);
        self.ended(delivered)
    }

    /// The body is over.
    pub(crate) fn finish(&mut self, at: Offset, delivered: &mut Delivered) -> Option<Arc<Outcome>> {
        self.passthrough.set_offset(at);
        let result = self.passthrough.finish();
        self.observe(result, delivered);
        self.stack.finish();
        self.ended(delivered)
    }

    fn observe(&mut self, mut result: Result<(), WireError>, delivered: &mut Delivered) {
        while result.is_ok() && !self.stack.is_ended() {
            match self.passthrough.next_frame(&mut self.frame) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            let from = delivered.chunks.len();
            for chunk in self.frame.drain(..) {
                if let Body::Usage(usage) = chunk.body() {
                    self.usage.get_or_insert_default().update(usage);
                }
                self.stack.push(chunk);
            }
            delivered.chunks.extend(std::iter::from_fn(|| self.stack.pop()));
            if self.is_wire {
                let written = self.passthrough.write(&delivered.chunks[from..], &mut delivered.wire);
                self.no_place = self.no_place.or(written.err());
            }
        }
        if let Err(error) = result {
            self.stack.fail(ErrorInfo::new(error.code()).with_message(error.to_string()));
            self.error.get_or_insert(error);
        }
    }

    /// Takes what the end released, and ends the bytes as the format wants it.
    fn ended(&mut self, delivered: &mut Delivered) -> Option<Arc<Outcome>> {
        let outcome = self.stack.outcome()?.clone();
        let from = delivered.chunks.len();
        delivered.chunks.extend(std::iter::from_fn(|| self.stack.pop()));
        if self.is_wire {
            let written = self.passthrough.release(&delivered.chunks[from..], &mut delivered.wire);
            self.no_place = self.no_place.or(written.err());
            self.passthrough.end(&outcome, &mut delivered.wire);
        }
        Some(outcome)
    }
}
