#!/usr/bin/env bash
# Runs tests under sanitizers: those of unsafe code under AddressSanitizer, which detects invalid
# memory accesses and leaks; those of threads under ThreadSanitizer, which detects data races.
#
# sanitizers.sh [SECONDS] stops each part after a number of seconds, 900 by default. LONG=1 runs the
# tests as long as without a sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
limit=${1:-900}
host=x86_64-unknown-linux-gnu

if [ "$(rustc -vV | sed -n 's/^host: //p')" != "$host" ]; then
    echo "SKIPPED: the sanitizers, because this machine is not $host"
    exit 77
fi
has_sources() {
    [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]
}
if ! has_nightly has_sources; then
    echo "SKIPPED: the sanitizers, because nightly Rust with its sources could not be installed"
    exit 77
fi
folder=$(target)/sanitizers
# Tests do less: fewer rounds, cases and sizes, and cases that failed once are in other checks.
sizes=sizes::every_size
if [ -n "${LONG-}" ]; then
    sizes=sizes::
    export ALL_ROUNDS=1 CARGO_PROFILE_DEV_OPT_LEVEL=1
else
    export PROPTEST_CASES=4 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
fi

# Compilation is most of the time: test modules that do not run are left out, by `cfg(sanitizer)`.
flags() {
    echo "-Zsanitizer=$1 --cfg sanitizer --cfg sanitizer=\"$1\" -Aunused"
}
# Both packages in each part: another selection would be compiled again. Some tests make allocations
# that fail.
address() {
    RUSTFLAGS=$(flags address) ASAN_OPTIONS=allocator_may_return_null=1 \
        part address "$limit" cargo +nightly test -p flowtable -p flowtable-tests \
            --target "$host" --features concurrent "$@"
}
addresses() {
    address --lib
    address --test trash --test routes --test cache --test ephemeral -- \
        methods:: model:: drops:: panics:: floods:: "$sizes" corners:: inconsistent:: \
        contents:: store:: table:: set:: entry_ref::
    address --test concurrent --test concurrent_routes -- \
        model:: misuse:: destructors:: leaks::tests_in linearizable:: panics::
}
# ThreadSanitizer does not support fences. crossbeam-epoch uses stronger loads instead when it is
# compiled for it, so no report has to be suppressed. E4 is about the allocations of one thread, and
# some of E2 about what one thread writes in callbacks.
threads() {
    RUSTFLAGS=$(flags thread) TSAN_OPTIONS=halt_on_error=1 \
        part thread "$limit" cargo +nightly test -p flowtable-tests \
        -Zbuild-std --target "$host" --features concurrent \
        --test concurrent --test concurrent_routes -- \
        --skip e4_an_insertion --skip e2_a_write_from guarantees:: guards:: stamped::g
}
both addresses threads
[ "$skipped" = 0 ] || exit 77
