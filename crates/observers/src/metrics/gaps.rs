use serde::Serialize;

/// Times between arrivals, in a histogram of fixed size: a value is kept to one part in eight.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    buckets: [u32; BUCKETS],
    count: u64,
    max: u64,
}

/// A power of two is cut into so many buckets.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 3;
/// Values of 2^36 µs (19 hours) and more share the last bucket.
const BUCKETS: usize = (36 - STEP_BITS as usize + 1) * STEPS;

/// What is known of the times between arrivals. All in microseconds; absent if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct GapSummary {
    count: u64,
    max_us: Option<u64>,
    p50_us: Option<u64>,
    p95_us: Option<u64>,
    p99_us: Option<u64>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, max: 0 }
    }
}

impl Gaps {
    pub(super) fn record(&mut self, micros: u64) {
        let bucket = &mut self.buckets[bucket_of(micros)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.max = self.max.max(micros);
    }

    pub(super) fn summary(&self) -> GapSummary {
        let some = (self.count > 0).then_some(());
        GapSummary {
            count: self.count,
            max_us: some.map(|()| self.max),
            p50_us: some.map(|()| self.percentile(50)),
            p95_us: some.map(|()| self.percentile(95)),
            p99_us: some.map(|()| self.percentile(99)),
        }
    }

    /// The largest value that the bucket of this rank can hold, but never more than the largest value there was.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.count.saturating_mul(percent)).div_ceil(100);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank
        });
        bucket.map_or(self.max, |bucket| largest_in(bucket).min(self.max))
    }
}

/// Values below `STEPS` have a bucket each; above, the bits after the leading one choose.
fn bucket_of(micros: u64) -> usize {
    let Some(shift) = micros.checked_ilog2().and_then(|log| log.checked_sub(STEP_BITS)) else {
        return micros as usize;
    };
    let step = (micros >> shift) as usize - STEPS;
    ((shift as usize + 1) * STEPS + step).min(BUCKETS - 1)
}

fn largest_in(bucket: usize) -> u64 {
    let (power, step) = (bucket / STEPS, (bucket % STEPS) as u64);
    match power.checked_sub(1) {
        None => step,
        Some(_) if bucket == BUCKETS - 1 => u64::MAX,
        Some(shift) => ((STEPS as u64 + step + 1) << shift) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_largest_value_and_not_the_next() {
        for bucket in 0..BUCKETS - 1 {
            let largest = largest_in(bucket);
            assert_eq!((bucket_of(largest), bucket_of(largest + 1)), (bucket, bucket + 1));
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_percentile_is_at_most_an_eighth_too_large() {
        for micros in [0, 1, 7, 8, 9, 100, 1_000, 12_345, 1 << 20, 987_654_321] {
            let mut gaps = Gaps::default();
            gaps.record(micros);
            // Something larger, or the largest value itself would be the answer.
            gaps.record(u64::MAX);
            let p50 = gaps.percentile(50);
            assert!(p50 >= micros && p50 - micros <= micros / 8, "{micros} became {p50}");
        }
    }

    #[test]
    fn percentiles_go_by_rank() {
        let mut gaps = Gaps::default();
        (1..=100).for_each(|micros| gaps.record(micros * 1_000));
        let expected = GapSummary {
            count: 100,
            max_us: Some(100_000),
            p50_us: Some(53_247),
            p95_us: Some(98_303),
            p99_us: Some(100_000),
        };
        assert_eq!(gaps.summary(), expected);
        assert_eq!(Gaps::default().summary().p50_us, None);
    }
}
