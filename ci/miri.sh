#!/usr/bin/env bash
# Runs tests in Miri, which finds undefined behaviour: those of the structures that have unsafe
# code, and those of keys and packet formats for a big-endian target. Long tests do less there, by
# `cfg!(miri)`.
#
# miri.sh [SECONDS] stops each part after a number of seconds, 300 by default: Miri is a hundred
# times slower than the CPU, and an unbounded test would run for hours.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
limit=${1:-300}

if ! has_nightly cargo +nightly miri --version; then
    echo "SKIPPED: Miri, because it could not be installed"
    exit 77
fi
folder=$(target)/miri

# Isolation would keep property tests from looking for the failures they have saved.
MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check -Zmiri-disable-isolation"
export MIRIFLAGS
part miri "$limit" cargo +nightly miri test -p flowtable --lib -- --skip wheel:: \
    table:: trash:: routes:: cache:: ephemeral::ring:: raw::chunked_vec::
# Models, drops and panics. Longer runs of the same code are under AddressSanitizer.
part miri "$limit" cargo +nightly miri test -p flowtable \
    --test trash --test routes --test cache -- model:: drops:: panics:: contents::
# A big-endian target: packed keys, hashes and packet formats.
part miri "$limit" cargo +nightly miri test -p flowtable \
    --target s390x-unknown-linux-gnu --lib -- \
    key:: hash:: dml:: raw:: ephemeral::esp:: table::tags::
# crossbeam-epoch violates Stacked Borrows, has pointers in integers, and never frees its last
# garbage.
MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-permissive-provenance"
MIRIFLAGS="$MIRIFLAGS -Zmiri-disable-isolation"
part miri "$limit" cargo +nightly miri test -p flowtable --features concurrent \
    --test concurrent --test concurrent_routes -- ::a3 ::c2 ::d1 panics::r6_when_a_clone
[ "$skipped" = 0 ] || exit 77
