use std::{sync::Arc, time::Instant};

use streamkeeper_contract::{CallClass, Chunk, ErrorInfo, Offset, Outcome};
use streamkeeper_stream::{ObservedBytes, ObserverFactoryContext, Observers, Recorder, Stack};
use streamkeeper_wire::{Decoder, Format, WireError};

use crate::{failure::Failure, input::Input, output::Progress, told::Told};

/// One stream on its way through one stack of observers.
pub(crate) struct Invocation {
    way: Way,
    pub(crate) told: Arc<Told>,
}

enum Way {
    Bytes(Box<ObservedBytes>),
    Chunks { decoder: Box<Decoder>, stack: Box<Stack> },
}

/// What the consumer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// The provider's bytes.
    Bytes,
    Chunks,
}

/// What the consumer gets.
pub(crate) enum Delivered {
    Bytes(Vec<u8>),
    Chunks(Vec<Chunk>),
}

impl Invocation {
    pub(crate) fn new(
        format: Option<Format>,
        to: To,
        observers: &Observers,
        call_class: &CallClass,
        recorder: Option<Recorder>,
    ) -> Self {
        let told = Arc::new(Told::default());
        let ctx = ObserverFactoryContext::new(call_class.clone());
        let mut builder = observers.builder(&ctx).events(told.clone()).failures(told.clone());
        if let Some(recorder) = recorder {
            builder = builder.recorder(recorder);
        }
        let stack = builder.build();
        let decoder = format.map_or_else(Decoder::detect, Decoder::new);
        let way = match to {
            To::Bytes => Way::Bytes(Box::new(ObservedBytes::new(decoder, stack))),
            To::Chunks => Way::Chunks { decoder: Box::new(decoder), stack: Box::new(stack) },
        };
        Self { way, told }
    }

    pub(crate) fn decoder(&self) -> &Decoder {
        match &self.way {
            Way::Bytes(bytes) => bytes.decoder(),
            Way::Chunks { decoder, .. } => decoder,
        }
    }

    pub(crate) fn stack(&self) -> &Stack {
        match &self.way {
            Way::Bytes(bytes) => bytes.stack(),
            Way::Chunks { stack, .. } => stack,
        }
    }

    /// Takes bytes that arrived at this offset.
    fn push(&mut self, read: &[u8], at: Offset) {
        match &mut self.way {
            Way::Bytes(bytes) => {
                bytes.set_offset(at);
                bytes.push(read);
            }
            Way::Chunks { decoder, stack } => {
                decoder.set_offset(at);
                let result = decoder.push(read);
                observe(decoder, stack, result);
            }
        }
    }

    /// The body is over.
    fn finish(&mut self, at: Offset) {
        match &mut self.way {
            Way::Bytes(bytes) => {
                bytes.set_offset(at);
                bytes.finish();
            }
            Way::Chunks { decoder, stack } => {
                decoder.set_offset(at);
                let result = decoder.finish();
                observe(decoder, stack, result);
                stack.finish();
            }
        }
    }

    /// Takes what is delivered by now.
    fn take(&mut self) -> Delivered {
        match &mut self.way {
            Way::Bytes(bytes) => Delivered::Bytes(bytes.take()),
            Way::Chunks { stack, .. } => Delivered::Chunks(std::iter::from_fn(|| stack.pop()).collect()),
        }
    }
}

/// Takes a whole input through an invocation, as it comes, and hands on what is delivered. Stops reading once the outcome is decided.
pub(crate) fn read_all(
    input: &mut Input,
    invocation: &mut Invocation,
    mut deliver: impl FnMut(Delivered) -> Result<(), Failure>,
) -> Result<Arc<Outcome>, Failure> {
    let mut progress = Progress::new();
    let start = Instant::now();
    loop {
        match input.read()? {
            Some(bytes) => invocation.push(bytes, start.elapsed().into()),
            None => invocation.finish(start.elapsed().into()),
        }
        deliver(invocation.take())?;
        if let Some(outcome) = invocation.stack().outcome() {
            progress.clear();
            return Ok(outcome.clone());
        }
        progress.show(&invocation.decoder().stats());
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
