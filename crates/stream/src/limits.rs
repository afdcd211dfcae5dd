/// How much a [`Stack`](crate::Stack) keeps and makes at most. Past a limit the observer that asks for more has failed with
/// `FailureKind::Overflow`, and its `on_failure` decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that one observer may hold of one lane. Default: 64 KiB.
    pub held_lane_bytes: usize,
    /// Lanes of which one observer may hold text at a time. Default: 64.
    pub held_lanes: usize,
    /// Bytes that all observers together may hold of all lanes. Default: 1 MiB.
    pub held_bytes: usize,
    /// Pieces of one release. Default: 64.
    pub pieces: usize,
    /// Bytes that a release or an amended delta may have beyond the text it replaces. Default: 4 KiB.
    pub growth_bytes: usize,
    /// Pieces that all observers together may release for one entering chunk. Default: 4096.
    pub pieces_per_chunk: usize,
    /// Lanes that are counted one by one and remembered for snapshots. Default: 1024. Lanes past it pass the observers like all
    /// others; they are missing from [`InvocationResult::lanes`](crate::InvocationResult::lanes), and each snapshot of one is shown
    /// to the observers whole.
    pub lanes: usize,
    /// Bytes of replaced text that are remembered, so that a snapshot gets the edits that its deltas got. Default: 256 KiB. Past it
    /// a snapshot of an edited lane counts as one that differs: it is shown whole.
    pub edit_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            held_lane_bytes: 64 * 1024,
            held_lanes: 64,
            held_bytes: 1024 * 1024,
            pieces: 64,
            growth_bytes: 4 * 1024,
            pieces_per_chunk: 4096,
            lanes: 1024,
            edit_bytes: 256 * 1024,
        }
    }
}
