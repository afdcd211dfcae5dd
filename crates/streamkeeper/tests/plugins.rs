//! Plugins compose in the order in which they are added, then in the order of their lists (spec 3.2).

use streamkeeper::{PluginError, prelude::*};

#[derive(Clone)]
struct Idle;

impl StreamWatcher for Idle {
    fn on_chunk(&mut self, _: &Chunk, _: &mut ObserverContext<'_>) {}
}

struct Acme {
    name: Id,
    observers: &'static [&'static str],
}

impl Plugin for Acme {
    fn name(&self) -> Id {
        self.name.clone()
    }

    fn version(&self) -> Text {
        "1.2.3".into()
    }

    fn stream_observers(&self) -> Vec<Registration> {
        self.observers.iter().map(|id| Registration::watcher(Id::new(id).unwrap(), Idle)).collect()
    }
}

fn ids(plugins: &Plugins) -> Vec<String> {
    plugins.observers().ids().map(ToString::to_string).collect()
}

#[test]
fn plugins_run_in_the_order_they_were_added_and_observers_in_the_order_of_their_list() {
    let mut plugins = Plugins::new();
    plugins.add(&Acme { name: id!("second-by-name"), observers: &["d", "a"] }).unwrap();
    plugins.add(&Acme { name: id!("first-by-name"), observers: &["c", "b"] }).unwrap();
    assert_eq!(ids(&plugins), ["d", "a", "c", "b"]);
    let added: Vec<_> = plugins.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!(added, ["second-by-name 1.2.3", "first-by-name 1.2.3"]);
}

/// spec 1.10
#[test]
fn a_refused_plugin_leaves_everything_as_it_was() {
    let mut plugins = Plugins::new();
    plugins.add(&Acme { name: id!("acme"), observers: &["a"] }).unwrap();
    for (name, observers, expected) in [
        (id!("acme"), &["b"][..], PluginError::Duplicate(id!("acme"))),
        (
            id!("other"),
            &["b", "a"],
            PluginError::Observer { plugin: id!("other"), error: RegisterError::DuplicateId(id!("a")) },
        ),
        (
            id!("other"),
            &["b", "b"],
            PluginError::Observer { plugin: id!("other"), error: RegisterError::DuplicateId(id!("b")) },
        ),
    ] {
        assert_eq!(plugins.add(&Acme { name, observers }).unwrap_err(), expected);
        assert_eq!((ids(&plugins), plugins.iter().count()), (vec!["a".to_owned()], 1));
    }
}

struct Bare;

impl Plugin for Bare {
    fn name(&self) -> Id {
        id!("bare")
    }
    fn version(&self) -> Text {
        "0.1.0".into()
    }
}

#[test]
fn a_plugin_may_contribute_nothing() {
    let mut plugins = Plugins::new();
    plugins.add(&Bare).unwrap();
    assert!(plugins.observers().is_empty());
}
