use streamkeeper_contract::id;

fn main() {
    let name = String::from("secrets");
    let _ = id!(name);
}
