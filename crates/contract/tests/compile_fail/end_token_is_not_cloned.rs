use streamkeeper_contract::EndToken;

fn main() {
    let token = EndToken::open();
    let _second = token.clone();
}
