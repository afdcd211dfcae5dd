#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| streamkeeper_fuzz::decode(None, data));
