//! Registrations, factories, call classes: spec 1.9, 1.10, 3.2.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use streamkeeper_contract::{CallClass, Chunk, Id, Verdict, id};
use streamkeeper_stream::{
    ObserverContext, ObserverFactoryContext, Observers, OnFailure, RegisterError, Registration, Role, StreamObserver,
    StreamWatcher, from_fn,
};

use crate::support::*;

fn idle() -> On {
    On::chunk(|_, _| Verdict::Continue)
}

#[test]
fn a_duplicate_id_is_refused_and_the_list_stays_as_it_was() {
    // spec 1.10
    let mut observers = Observers::new();
    observers.register(Registration::guard(id!("a"), idle())).unwrap();
    let refused = observers.register(Registration::transform(id!("a"), idle())).unwrap_err();
    assert_eq!(refused, RegisterError::DuplicateId(id!("a")));
    let several = ["b", "c", "b", "d"].map(|name| Registration::guard(Id::new(name).unwrap(), idle()));
    assert_eq!(observers.extend(several).unwrap_err(), RegisterError::DuplicateId(id!("b")));
    assert_eq!(observers.ids().collect::<Vec<_>>(), [&id!("a")]);
}

#[test]
fn an_observer_is_made_once_for_each_invocation_of_its_class_and_for_no_other() {
    // spec 3.2, 1.9
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let factory = from_fn(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        idle()
    });
    let observers = list([
        Registration::guard(id!("some"), factory).when(CallClass::Synthesize),
        Registration::guard(id!("all"), idle()),
    ]);
    for (class, expected, ids) in [
        (CallClass::Utility, 0, 1),
        (CallClass::Synthesize, 1, 2),
        (CallClass::Custom(id!("rerank")), 1, 1),
        (CallClass::Synthesize, 2, 2),
    ] {
        let stack = observers.stack(&ObserverFactoryContext::new(class));
        assert_eq!(made.load(Ordering::Relaxed), expected);
        assert_eq!(stack.observers().len(), ids);
    }
}

#[test]
fn concurrent_invocations_share_nothing() {
    // spec 3.2
    #[derive(Clone, Default)]
    struct Count(u32);
    impl StreamObserver for Count {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
            self.0 += 1;
            Verdict::Amend(chunk.with_text(self.0.to_string()).unwrap())
        }
    }
    let observers = list([Registration::transform(id!("count"), Count::default())]);
    let mut stacks = [(); 2].map(|()| observers.stack(&Default::default()));
    for expected in ["1", "2"] {
        for stack in &mut stacks {
            stack.push(text("x"));
            assert_eq!(stack.pop().unwrap().text(), Some(expected));
        }
    }
}

#[test]
fn a_factory_is_told_about_the_call() {
    // spec 3.2
    #[derive(Clone)]
    struct Tenant(&'static str);
    let seen = Log::default();
    let log = seen.clone();
    let factory = from_fn(move |ctx: &ObserverFactoryContext| {
        log.push(format!(
            "{} {} {:?} {:?} {:?} {:?} {:?} {}",
            ctx.call_class,
            ctx.ordinal,
            ctx.provider,
            ctx.model,
            ctx.system_prompt,
            ctx.tool_names,
            ctx.policy_id,
            ctx.extensions.get::<Tenant>().unwrap().0
        ));
        idle()
    });
    let mut ctx = ObserverFactoryContext::new(CallClass::Converse);
    ctx.ordinal = 3;
    ctx.provider = Some("p".into());
    ctx.model = Some("m".into());
    ctx.system_prompt = Some("be kind".into());
    ctx.tool_names = ["look".into()].into();
    ctx.policy_id = Some(id!("strict"));
    ctx.extensions.insert(Tenant("first"));
    ctx.extensions.insert(Tenant("second"));
    assert!(ctx.extensions.get::<u8>().is_none());
    list([Registration::guard(id!("told"), factory)]).stack(&ctx);
    assert_eq!(seen.lines(), [r#"converse 3 Some("p") Some("m") Some("be kind") ["look"] Some(Id("strict")) second"#]);
}

#[test]
fn a_watchers_failure_cannot_be_made_to_matter() {
    // spec 3.1, 3.2
    #[derive(Clone)]
    struct Faulty;
    impl StreamWatcher for Faulty {
        fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {
            blow_up()
        }
    }
    let watcher = Registration::watcher(id!("faulty"), Faulty).on_failure(OnFailure::Fail);
    assert_eq!(watcher.role(), Role::Watcher);
    assert_eq!(run([watcher], [text("a"), finish()]).line(), "text:a finish:stop end:finished");
}

#[test]
fn boxed_observers_are_observers() {
    // spec 3.1
    let guard = Registration::guard(
        id!("boxed"),
        from_fn(|_| -> Box<dyn StreamObserver> { Box::new(On::delta(|_, _| Verdict::stop("x", "x"))) }),
    );
    assert_eq!(run([guard], [text("a")]).line(), "end:stopped");
    let log = Log::default();
    struct Logs(Log);
    impl StreamWatcher for Logs {
        fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) {
            self.0.push(show(chunk));
        }
    }
    let seen = log.clone();
    let watcher = Registration::watcher(
        id!("boxed"),
        from_fn(move |_| -> Box<dyn StreamWatcher> { Box::new(Logs(seen.clone())) }),
    );
    run([watcher], [text("a")]);
    assert_eq!(log.lines(), ["text:a"]);
}

#[test]
fn a_transform_that_fails_lets_the_stream_go_on_and_a_guard_does_not() {
    // spec 3.2
    let faulty = || On::delta(|_, _| blow_up());
    let transform = Registration::transform(id!("faulty"), faulty());
    assert_eq!(run([transform], [text("a"), finish()]).line(), "text:a finish:stop end:finished");
    let guard = Registration::guard(id!("faulty"), faulty());
    assert_eq!(run([guard], [text("a"), finish()]).line(), "end:failed");
}
