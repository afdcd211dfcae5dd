//! What the types refuse: spec 3.1 (no verdict waits, a watcher has none), 3.2 (observers are made, not shared).

#[test]
fn what_the_types_refuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
