//! Index lines against a map of numbers, with hashes of little entropy.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    flowtable::run_script_of_lines(script);
});
