//! What the types refuse: spec 1.7 (one end, from a token), 1.8 (positions are the stack's), 1.10 (ids), 1.11 (no payload in reports).

#[test]
fn what_the_types_refuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
