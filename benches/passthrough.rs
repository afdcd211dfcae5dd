//! Nanoseconds per text event from bytes to bytes. `decode` is the baseline: the same body to chunks alone.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamkeeper_benches::{
    decode::INPUTS,
    passthrough::{rewrite, through},
    stack::pass_through,
};

const EVENTS: usize = 200;

fn passthrough(c: &mut Criterion) {
    for input in INPUTS.iter().filter(|input| input.is_sse()) {
        let body = input.body(EVENTS);
        let mut group = c.benchmark_group(format!("passthrough/{}", input.format));
        group.throughput(Throughput::Elements(EVENTS as u64));
        group.bench_function("decode", |b| b.iter(|| input.decode(&body)));
        for (name, observers) in [("watched", pass_through(1)), ("every text amended", rewrite())] {
            group.bench_function(name, |b| b.iter(|| through(input, &body, &observers)));
        }
        group.finish();
    }
}

criterion_group!(benches, passthrough);
criterion_main!(benches);
