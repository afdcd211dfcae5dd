use streamkeeper_contract::EndToken;

fn main() {
    let _token = EndToken(());
}
