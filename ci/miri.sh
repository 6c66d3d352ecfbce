#!/usr/bin/env bash
# Runs tests in Miri, which finds undefined behaviour: those of the structures that have unsafe
# code. A file that takes too long does less there, by `cfg!(miri)`.
#
# miri.sh [SECONDS] gives up each part after so many seconds, 300 by default: Miri is a hundred times
# slower than the machine, and a test that is not bounded goes on for hours.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/slim
limit=${1:-300}

if ! has_nightly cargo +nightly miri --version; then
    echo "SKIPPED: Miri, because it could not be installed"
    exit 77
fi
# Models, drops and panics. What goes the same ways for longer is under AddressSanitizer.
single=$(tests tests/{trash,lpm}_{model,drops}.rs tests/trash_panics.rs tests/caches*.rs)
folder=$(target)/miri
slim "$folder/package"

# Isolation would keep property tests from looking for the failures they have saved.
MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-disable-isolation"
export MIRIFLAGS
part miri "$limit" cargo +nightly miri test --lib -- trash:: lpm:: cache:: ephemeral::ring:: chunks:: prefetch::
# shellcheck disable=SC2086
part miri "$limit" cargo +nightly miri test $single
# crossbeam-epoch breaks the rules of Stacked Borrows, has pointers in numbers, and never gives its last
# garbage back.
MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-disable-isolation" \
    part miri "$limit" cargo +nightly miri test --features concurrent --test concurrent_guarantees --test concurrent_routes_panics -- \
    a3 c2 d1 clone
[ "$skipped" = 0 ] || exit 77
