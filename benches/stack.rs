//! Nanoseconds per chunk on its way through a stack. `bare` is the baseline: the source polled without observers.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamkeeper_benches::stack::{
    Source, bare, bundled, disinterested, observed, pass_through, push_prose, redaction,
};

const CHUNKS: u32 = 10_000;

fn stack(c: &mut Criterion) {
    let mut group = c.benchmark_group("stack");
    group.throughput(Throughput::Elements(CHUNKS.into()));
    group.bench_function("bare", |b| b.iter(|| bare(Source(CHUNKS))));
    for (name, observers) in [
        ("no observer", pass_through(0)),
        ("1 that passes", pass_through(1)),
        ("8 that pass", pass_through(8)),
        ("8 not interested", disinterested(8)),
        ("bundled", bundled()),
    ] {
        group.bench_function(name, |b| b.iter(|| observed(Source(CHUNKS), &observers)));
    }
    group.bench_function("prose, no observer", |b| b.iter(|| push_prose(CHUNKS, &pass_through(0))));
    let redaction = redaction();
    group.bench_function("prose, all built-in redaction", |b| b.iter(|| push_prose(CHUNKS, &redaction)));
    group.finish();
}

criterion_group!(benches, stack);
criterion_main!(benches);
