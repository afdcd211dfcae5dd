use std::sync::Arc;

use streamkeeper_contract::{Body, CallClass, Chunk, ErrorInfo, Offset, Usage};
use streamkeeper_stream::{ObserverFactoryContext, Observers, Stack};
use streamkeeper_wire::{Decoder, Format, WireError};

use crate::told::Told;

/// One stream on its way through one stack of observers.
pub(crate) struct Invocation {
    pub(crate) decoder: Decoder,
    pub(crate) stack: Stack,
    pub(crate) told: Arc<Told>,
    /// What the provider stated, delivered or not.
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<WireError>,
}

impl Invocation {
    pub(crate) fn new(format: Option<Format>, observers: &Observers, call_class: &CallClass) -> Self {
        let told = Arc::new(Told::default());
        let ctx = ObserverFactoryContext::new(call_class.clone());
        let stack = observers.builder(&ctx).events(told.clone()).failures(told.clone()).build();
        let decoder = format.map_or_else(Decoder::detect, Decoder::new);
        Self { decoder, stack, told, usage: None, error: None }
    }

    /// Takes bytes that arrived at this offset. Nothing happens once the outcome is decided.
    pub(crate) fn push(&mut self, bytes: &[u8], at: Offset) {
        self.decoder.set_offset(at);
        let result = self.decoder.push(bytes);
        self.observe(result);
    }

    /// The body is over.
    pub(crate) fn finish(&mut self, at: Offset) {
        self.decoder.set_offset(at);
        let result = self.decoder.finish();
        self.observe(result);
        self.stack.finish();
    }

    /// Takes the next delivered chunk.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        self.stack.pop()
    }

    fn observe(&mut self, result: Result<(), WireError>) {
        while let Some(chunk) = self.decoder.next_chunk() {
            if let Body::Usage(usage) = chunk.body() {
                self.usage.get_or_insert_default().update(usage);
            }
            self.stack.push(chunk);
        }
        if let Err(error) = result {
            self.stack.fail(ErrorInfo::new(error.code()).with_message(error.to_string()));
            self.error.get_or_insert(error);
        }
    }
}
