use streamkeeper_contract::id;

fn main() {
    let _ = id!("Prompt Leak");
}
