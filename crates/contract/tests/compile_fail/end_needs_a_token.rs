use streamkeeper_contract::{Body, Chunk, End, Outcome};

fn main() {
    let _chunk: Chunk = Body::End(End(Outcome::Truncated.into())).into();
}
