use crate::Json;

/// Tokens of one or more model calls, in buckets that do not overlap. `None` is unknown, which is not zero.
///
/// ```
/// use streamkeeper_contract::Usage;
///
/// let mut usage = Usage { uncached_input: Some(10), cache_read: Some(90), ..Usage::default() };
/// assert_eq!(usage.input(), Some(100));
/// assert_eq!(usage.output_total(), None);
/// usage.update(&Usage { output: Some(7), ..Usage::default() });
/// assert_eq!(usage.total(), Some(107));
/// ```
///
/// The JSON form is an object of what is known: `{"uncached_input":10,"cache_read":90,"output":7}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that no cache served or stored.
    pub uncached_input: Option<u64>,
    /// Input served from a cache.
    pub cache_read: Option<u64>,
    /// Input written to a cache.
    pub cache_write: Option<u64>,
    /// Output without reasoning.
    pub output: Option<u64>,
    /// Reasoning output.
    pub reasoning: Option<u64>,
    /// At least one number is an estimate of ours, not a statement of the provider.
    pub estimated: bool,
    /// The provider's numbers under its own meaning: they may overlap.
    pub stated: Stated,
}

/// What a provider says of tokens, nothing added up or taken away. Whether `input` includes cached tokens and `output` includes
/// reasoning differs from provider to provider. The JSON form is an object of what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// Input or prompt tokens.
    pub input: Option<u64>,
    /// Output or completion tokens.
    pub output: Option<u64>,
    /// Cached input tokens.
    pub cached: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Reasoning or thinking tokens.
    pub reasoning: Option<u64>,
    /// The total.
    pub total: Option<u64>,
    /// The usage object as written, the last one that came.
    pub raw: Option<Json>,
}

impl Usage {
    /// Takes over what a later statement of the same call says; fields it leaves out stay.
    pub fn update(&mut self, later: &Usage) {
        self.zip(later, |earlier, later| later.or(earlier));
        if later.stated.raw.is_some() {
            self.stated.raw.clone_from(&later.stated.raw);
        }
    }

    /// Adds the usage of another call, saturating. A bucket is known if either side knows it. The raw statements are dropped: there is
    /// no statement for a sum.
    pub fn add(&mut self, other: &Usage) {
        self.zip(other, sum);
        self.stated.raw = None;
    }

    /// Input with and without cache, as far as known.
    pub fn input(&self) -> Option<u64> {
        [self.uncached_input, self.cache_read, self.cache_write].into_iter().fold(None, sum)
    }

    /// Output with reasoning, as far as known.
    pub fn output_total(&self) -> Option<u64> {
        sum(self.output, self.reasoning)
    }

    /// The sum of the known buckets, or `None` if none is known.
    pub fn total(&self) -> Option<u64> {
        sum(self.input(), self.output_total())
    }

    /// Whether nothing at all is known. Zero is known.
    pub fn is_empty(&self) -> bool {
        *self == Self { estimated: self.estimated, ..Self::default() }
    }

    fn zip(&mut self, other: &Usage, f: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) {
        for (mine, theirs) in [
            (&mut self.uncached_input, other.uncached_input),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
            (&mut self.stated.input, other.stated.input),
            (&mut self.stated.output, other.stated.output),
            (&mut self.stated.cached, other.stated.cached),
            (&mut self.stated.cache_write, other.stated.cache_write),
            (&mut self.stated.reasoning, other.stated.reasoning),
            (&mut self.stated.total, other.stated.total),
        ] {
            *mine = f(*mine, theirs);
        }
        self.estimated |= other.estimated;
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// An amount of money in pico-dollars (10⁻¹² US dollars). An integer, so that sums are exact; they saturate.
///
/// A price of $0.25 for a million tokens is 250 000 pico-dollars a token; `u64` holds up to 18 million dollars. The JSON form is the number.
///
/// ```
/// use streamkeeper_contract::Money;
///
/// let cost = Money::from_pico(250_000).times(4);
/// assert_eq!(cost.to_string(), "$0.000001000000");
/// assert_eq!(cost.plus(Money::from_pico(u64::MAX)), Money::from_pico(u64::MAX));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Money(u64);

impl Money {
    /// From pico-dollars.
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// In pico-dollars.
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This price for so many units, saturating.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "${}.{:012}", self.0 / 1_000_000_000_000, self.0 % 1_000_000_000_000)
    }
}
