#!/usr/bin/env bash
# Runs tests under sanitizers: those of unsafe code under AddressSanitizer, which sees accesses to memory
# that is not owned, and leaks; those of threads under ThreadSanitizer, which sees accesses that nothing puts
# in an order.
#
# sanitizers.sh [SECONDS] gives up each after so many seconds, 600 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/slim
limit=${1:-600}
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
slim "$folder/package"
export PROPTEST_CASES=${PROPTEST_CASES:-8}

# What is refused is part of the tests.
# shellcheck disable=SC2046
RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=allocator_may_return_null=1 \
    part address "$limit" cargo +nightly test --target "$host" --features concurrent --lib \
    $(tests tests/trash{,_model,_drops,_panics,_floods,_sizes}.rs tests/lpm{,_corners,_model,_drops,_lawless}.rs tests/caches*.rs \
        tests/ephemeral{,_model}.rs \
        tests/concurrent_{model,misuse,leaks,linear,routes_panics}.rs)
# There is nothing to suppress: it knows no fences, and crossbeam-epoch takes stronger loads instead when
# it is compiled for it.
RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS=halt_on_error=1 FEW_ROUNDS=1 \
    part thread "$limit" cargo +nightly test -Zbuild-std --target "$host" --features concurrent \
    --test concurrent_guarantees --test concurrent_routes
[ "$skipped" = 0 ] || exit 77
