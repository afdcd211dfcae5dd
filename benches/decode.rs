//! Nanoseconds per text event. `skip` is the baseline that the budget is stated against: decode within twice of it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamkeeper_benches::decode::{ChatEvent, INPUTS, Untyped, eventsource_stream, sseer};
use streamkeeper_wire::Format;

const EVENTS: usize = 200;

fn decode(c: &mut Criterion) {
    for input in INPUTS {
        let body = input.body(EVENTS);
        let mut group = c.benchmark_group(format!("decode/{}", input.format));
        group.throughput(Throughput::Elements(EVENTS as u64));
        group.bench_function("frame", |b| b.iter(|| input.frame(&body)));
        group.bench_function("skip", |b| b.iter(|| input.skip(&body)));
        group.bench_function("streamkeeper", |b| b.iter(|| input.decode(&body)));
        if input.is_sse() {
            group.bench_function("eventsource-stream + Value", |b| b.iter(|| eventsource_stream::<Untyped>(&body)));
            group.bench_function("sseer + Value", |b| b.iter(|| sseer::<Untyped>(&body)));
        }
        if input.format == Format::OpenAiChat {
            group.bench_function("eventsource-stream + typed", |b| b.iter(|| eventsource_stream::<ChatEvent>(&body)));
            group.bench_function("sseer + typed", |b| b.iter(|| sseer::<ChatEvent>(&body)));
        }
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
