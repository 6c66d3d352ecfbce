#!/usr/bin/env bash
# Runs tests in Miri, which finds undefined behaviour: those of the structures that have unsafe
# code; and those of keys, packet formats and indices for a big-endian target of 32 bits. Long tests
# do less there, by `cfg!(miri)`.
#
# miri.sh [SECONDS] stops each part after a number of seconds, 1800 by default: Miri is a hundred
# times slower than the CPU, and an unbounded test would run for hours.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
limit=${1:-1800}

if ! has_nightly cargo +nightly miri --version; then
    echo "SKIPPED: Miri, because it could not be installed"
    exit 77
fi
folder=$(target)/miri
# Tests that panic take many times as long with backtraces.
export RUST_BACKTRACE=0
# Cases that failed once run in the other checks. ChaCha would be most of the time.
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 PROPTEST_RNG_ALGORITHM=xs

# Isolation would hide the variables above.
strict="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-disable-isolation"
# crossbeam-epoch violates Stacked Borrows, has pointers in integers, and never frees its last
# garbage.
lenient="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-permissive-provenance"
lenient="$lenient -Zmiri-disable-isolation"

# Both packages in each part: another selection would be compiled again.
both_packages="-p flowtable -p flowtable-tests --features concurrent"

# Arguments: flags of Miri, then arguments of `cargo miri test`.
miri() {
    local flags=$1
    shift
    MIRIFLAGS=$flags part miri "$limit" cargo +nightly miri test "$@"
}
parts_of_structures() {
    # Not the parts that only compute.
    miri "$strict" $both_packages --lib -- \
        --skip concurrent:: --skip wheel:: --skip connection:: --skip stride:: --skip policy:: \
        table:: trash:: routes:: cache:: raw::burst:: raw::chunked_vec::
    # Without `std`, so with the seeds of that.
    miri "$strict" --target powerpc-unknown-linux-gnu -p flowtable --no-default-features \
        --features papers --lib -- key:: hash:: papers:: raw:: table::tags::
}
# Models, drops and panics. Longer runs of the same code are under AddressSanitizer.
whole_structures() {
    miri "$strict" $both_packages --test trash --test routes --test cache -- \
        model:: drops:: panics:: contents:: table:: set:: entry_ref:: allocators::
    miri "$lenient" $both_packages \
        --test concurrent --test concurrent_routes -- \
        ::a3 ::c2 ::d1 ::g1_g2_no_flow_uses_a_route_that_was_replaced ::g5 ::r5_references \
        ::values_of_any panics::r8_when_a ::t1_t2 ::t4 ::t7_a_write
}
both parts_of_structures whole_structures
[ "$skipped" = 0 ] || exit 77
