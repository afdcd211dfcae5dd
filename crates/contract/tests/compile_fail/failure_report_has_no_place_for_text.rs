use streamkeeper_contract::{FailureKind, FailureReport, id};

fn main() {
    let _ = FailureReport { component: id!("secrets"), hook: "on_chunk: the text was …", kind: FailureKind::Panic };
}
