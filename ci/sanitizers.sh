#!/usr/bin/env bash
# Runs the tests of TrashMap and RouteTable, which have unsafe code, under AddressSanitizer, which sees
# accesses to memory that is not owned, and leaks. Miri sees more, but only small tables.
#
# sanitizers.sh [SECONDS] gives up after so many seconds, 600 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${1:-600}

if ! cargo +nightly --version >/dev/null 2>&1 &&
    ! timeout 300 rustup toolchain install nightly --profile minimal --no-self-update; then
    echo "SKIPPED: AddressSanitizer, because nightly Rust could not be installed"
    exit 77
fi
target=x86_64-unknown-linux-gnu
if [ "$(rustc -vV | sed -n 's/^host: //p')" != "$target" ]; then
    echo "SKIPPED: AddressSanitizer, because this machine is not $target"
    exit 77
fi
tests=()
for file in tests/trash*.rs tests/lpm*.rs; do
    tests+=(--test "$(basename "$file" .rs)")
done
# Its own folder, so that the flags do not have everything else compiled again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitizers
export RUSTFLAGS=-Zsanitizer=address
# Half the time goes into compiling.
export CARGO_PROFILE_DEV_DEBUG=0
# What is refused is part of the tests.
export ASAN_OPTIONS=allocator_may_return_null=1
export PROPTEST_CASES=${PROPTEST_CASES:-8}
timeout "$limit" cargo +nightly test --target "$target" --lib "${tests[@]}" || {
    status=$?
    # So `timeout` says that time was up.
    [ "$status" = 124 ] || exit "$status"
    echo "SKIPPED: the rest of AddressSanitizer, because it took longer than $limit s"
    exit 77
}
