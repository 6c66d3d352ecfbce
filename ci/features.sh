#!/usr/bin/env bash
# Checks the library with every set of features; runs the reference models without features, and the
# tests that need features.
#
# --no-default-tests skips the tests with the default features: `cargo test` runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

# `concurrent` implies `std`, so a set with both is the set with `concurrent` alone.
for base in "" std concurrent; do
    for more in "" serde ipnet serde,ipnet; do
        set=$base${base:+,}$more
        echo "features: ${set:-none}"
        cargo clippy -p flowtable --lib --no-default-features --features "$set" -- -D warnings
    done
done
[ "${1-}" = --no-default-tests ] || cargo test
# Tests that run again here draw fewer cases.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
# Without `std` only seeds and population counts differ: run the reference models.
binaries=(--lib)
for name in cache demux ephemeral flow_cache key routes schedule sockets trash trie; do
    binaries+=(--test "$name")
done
cargo test -p flowtable --no-default-features "${binaries[@]}" -- \
    bits:: evict:: map:: model:: routes:: share:: unicache::
cargo test -p flowtable --all-features --lib --test concurrent --test concurrent_routes
cargo test -p flowtable --all-features --test key --test trash --test trie -- prefix:: serde::
cargo test -p flowtable-programs --all-features shared_reader
