use std::time::Duration;

use streamkeeper_contract::{Chunk, Hook, Lane, Release, Verdict};

use crate::{Interest, InvocationResult, ObserverContext, StreamObserver};

/// An observer that does what an observer must not do, to see what your program makes of it.
///
/// | it | it has failed with |
/// |---|---|
/// | [`panics`](Self::panics) in a method | `panic` |
/// | [`forgets_barriers`](Self::forgets_barriers): holds all text and does not settle it | `contract` at the first barrier |
/// | [`breaks_the_contract`](Self::breaks_the_contract): amends a chunk to one of another lane | `contract` |
/// | [`overflows`](Self::overflows): holds all text, without an end | `overflow` at the [limit](crate::Limits) |
/// | [`grows`](Self::grows): releases more text than it may | `overflow` |
/// | is [`slow`](Self::slow): blocks for a time at each chunk | – |
///
/// A panic prints nothing: it is raised past the panic hook. Its message is `as told`.
///
/// ```
/// use streamkeeper_contract::{Hook, id};
/// use streamkeeper_stream::{Observers, Registration, testing::{Faulty, Script}};
///
/// for (faulty, kind) in [
///     (Faulty::panics(Hook::OnChunk), "panic"),
///     (Faulty::forgets_barriers(), "contract"),
///     (Faulty::breaks_the_contract(), "contract"),
///     (Faulty::grows(), "overflow"),
/// ] {
///     let observers = Observers::from(Registration::guard(id!("faulty"), faulty));
///     let ran = Script::new().text("unseen").finish().run(&observers);
///     assert_eq!(ran.outcome().error().unwrap().code, "guard_failed");
///     assert_eq!(ran.failures()[0].kind.as_str(), kind);
///     assert_eq!(ran.answer(), "", "a guard fails closed");
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Faulty(Fault);

#[derive(Debug, Clone, Copy)]
enum Fault {
    Panics(Hook),
    ForgetsBarriers,
    OtherLane,
    Overflows,
    Grows,
    Slow(Duration),
}

impl Faulty {
    /// Panics when it is first called in this method: `interest`, `on_chunk`, `on_barrier` or `on_end_invocation`. For `on_barrier` it
    /// holds all text.
    pub fn panics(hook: Hook) -> Self {
        Self(Fault::Panics(hook))
    }

    /// Holds all text, and stays undecided at barriers.
    pub fn forgets_barriers() -> Self {
        Self(Fault::ForgetsBarriers)
    }

    /// Amends each delta to one of another choice.
    pub fn breaks_the_contract() -> Self {
        Self(Fault::OtherLane)
    }

    /// Holds all text. At a barrier it lets it pass, so that only a hold over the limit makes it fail.
    pub fn overflows() -> Self {
        Self(Fault::Overflows)
    }

    /// Releases a megabyte in place of each delta.
    pub fn grows() -> Self {
        Self(Fault::Grows)
    }

    /// Blocks the thread for so long at each chunk, then lets it pass. Real time goes by.
    pub fn slow(time: Duration) -> Self {
        Self(Fault::Slow(time))
    }

    fn panic_in(&self, hook: Hook) {
        if matches!(self.0, Fault::Panics(at) if at == hook) {
            // The same as `panic!`, without the message that the default hook prints.
            std::panic::resume_unwind(Box::new("as told"));
        }
    }
}

impl StreamObserver for Faulty {
    fn interest(&self) -> Interest {
        self.panic_in(Hook::Interest);
        Interest::ALL
    }

    fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
        self.panic_in(Hook::OnChunk);
        match self.0 {
            Fault::Slow(time) => std::thread::sleep(time),
            _ if !chunk.is_delta() => {}
            Fault::Panics(Hook::OnBarrier) | Fault::ForgetsBarriers | Fault::Overflows => return Verdict::Buffer,
            Fault::OtherLane => {
                let lane = ctx.lane().unwrap_or(Lane::TEXT);
                return Verdict::Amend(Chunk::delta(lane.in_choice(lane.choice.wrapping_add(1)), "elsewhere"));
            }
            Fault::Grows => return Release::text("x".repeat(1024 * 1024)).into(),
            Fault::Panics(_) => {}
        }
        Verdict::Continue
    }

    fn on_barrier(&mut self, _: &mut ObserverContext<'_>) -> Verdict {
        self.panic_in(Hook::OnBarrier);
        if matches!(self.0, Fault::ForgetsBarriers) { Verdict::Buffer } else { Verdict::Continue }
    }

    fn on_end_invocation(&mut self, _: &InvocationResult, _: &mut ObserverContext<'_>) {
        self.panic_in(Hook::OnEndInvocation);
    }
}
