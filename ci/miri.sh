#!/usr/bin/env bash
# Runs tests in Miri, which finds undefined behaviour: those of the library, and of the structures that
# have unsafe code. A file that takes too long does less there, by `cfg!(miri)`.
#
# miri.sh [SECONDS] gives up after so many seconds, 300 by default: Miri is a hundred times slower
# than the machine, and a test that is not bounded goes on for hours.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${1:-300}

if ! cargo +nightly miri --version >/dev/null 2>&1 &&
    ! timeout 300 rustup toolchain install nightly --profile minimal --component miri,rust-src --no-self-update; then
    echo "SKIPPED: Miri, because it could not be installed"
    exit 77
fi
tests=()
for file in $(grep -l 'cfg!(miri)' tests/trash*.rs tests/lpm*.rs); do
    tests+=(--test "$(basename "$file" .rs)")
done
# Isolation would keep property tests from looking for the failures they have saved.
export MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-disable-isolation"
timeout "$limit" cargo +nightly miri test --lib "${tests[@]}" || {
    status=$?
    # So `timeout` says that time was up.
    [ "$status" = 124 ] || exit "$status"
    echo "SKIPPED: the rest of Miri, because it took longer than $limit s"
    exit 77
}
