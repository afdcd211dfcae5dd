use std::sync::{Arc, Mutex};

use streamkeeper_contract::{CallClass, Chunk, ErrorInfo, Offset, Outcome};
use streamkeeper_stream::{ObservedBytes, ObserverFactoryContext, Observers, Recorder, Stack};
use streamkeeper_wire::{Decoder, Format, WireError};

use crate::{tally::Counts, told::Told};

/// One stream on its way through one stack of observers.
pub(crate) struct Invocation {
    to: To,
    pub(crate) told: Arc<Told>,
    pub(crate) verdicts: Arc<Mutex<Counts>>,
}

/// What the consumer wants.
enum To {
    /// The provider's bytes.
    Bytes(Box<ObservedBytes>),
    Chunks {
        decoder: Box<Decoder>,
        stack: Box<Stack>,
    },
}

/// What the consumer gets.
pub(crate) enum Delivered {
    Bytes(Vec<u8>),
    Chunks(Vec<Chunk>),
}

impl Invocation {
    /// `is_wire`: the provider's bytes are delivered, not chunks.
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
        let to = if is_wire {
            To::Bytes(Box::new(ObservedBytes::new(decoder, stack)))
        } else {
            To::Chunks { decoder: Box::new(decoder), stack: Box::new(stack) }
        };
        Self { to, told, verdicts }
    }

    pub(crate) fn decoder(&self) -> &Decoder {
        match &self.to {
            To::Bytes(bytes) => bytes.decoder(),
            To::Chunks { decoder, .. } => decoder,
        }
    }

    pub(crate) fn stack(&self) -> &Stack {
        match &self.to {
            To::Bytes(bytes) => bytes.stack(),
            To::Chunks { stack, .. } => stack,
        }
    }

    /// The outcome, once it is decided: then the source is not to be asked again.
    pub(crate) fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.stack().outcome()
    }

    /// Takes bytes that arrived at this offset.
    pub(crate) fn push(&mut self, read: &[u8], at: Offset) {
        match &mut self.to {
            To::Bytes(bytes) => {
                bytes.set_offset(at);
                bytes.push(read);
            }
            To::Chunks { decoder, stack } => {
                decoder.set_offset(at);
                let result = decoder.push(read);
                observe(decoder, stack, result);
            }
        }
    }

    /// The body is over.
    pub(crate) fn finish(&mut self, at: Offset) {
        match &mut self.to {
            To::Bytes(bytes) => {
                bytes.set_offset(at);
                bytes.finish();
            }
            To::Chunks { decoder, stack } => {
                decoder.set_offset(at);
                let result = decoder.finish();
                observe(decoder, stack, result);
                stack.finish();
            }
        }
    }

    /// Takes what is delivered by now.
    pub(crate) fn take(&mut self) -> Delivered {
        match &mut self.to {
            To::Bytes(bytes) => Delivered::Bytes(bytes.take()),
            To::Chunks { stack, .. } => Delivered::Chunks(std::iter::from_fn(|| stack.pop()).collect()),
        }
    }
}

fn observe(decoder: &mut Decoder, stack: &mut Stack, result: Result<(), WireError>) {
    while let Some(chunk) = decoder.next_chunk() {
        stack.push(chunk);
    }
    if let Err(error) = result {
        stack.fail(ErrorInfo::new(error.code()).with_message(error.to_string()));
    }
}
