#![no_main]

streamkeeper_fuzz::fuzz_framing!(AwsEventStream);
