#![no_main]

streamkeeper_fuzz::fuzz_format!(Jsonl);
