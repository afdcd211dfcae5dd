use streamkeeper_contract::Verdict;

fn main() {
    let _ = Verdict::Stop { code: "pattern_matched".into(), reason: "a refusal".into(), chunk_index: 3 };
}
