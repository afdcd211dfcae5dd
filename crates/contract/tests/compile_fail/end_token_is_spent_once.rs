use streamkeeper_contract::{Chunk, EndToken, Outcome};

fn main() {
    let token = EndToken::open();
    let _end = Chunk::end(token, Outcome::Truncated.into());
    let _second = Chunk::end(token, Outcome::Dropped.into());
}
