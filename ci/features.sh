#!/usr/bin/env bash
# Checks the library with every set of features; runs the reference models without features, and the
# tests that need features.
#
# --no-default-tests skips the tests with the default features: `cargo test` runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each feature alone, and all conversions with each of what the structures depend on. `concurrent`
# and `huge-pages` imply `std`; no code depends on two features.
conversions=serde,ipnet,cidr,ipnetwork
for set in "" std concurrent huge-pages serde ipnet cidr ipnetwork \
    $conversions std,$conversions concurrent,$conversions; do
    echo "features: ${set:-none}"
    cargo clippy -p flowtable --lib --no-default-features --features "$set" -- -D warnings
done
[ "${1-}" = --no-default-tests ] || cargo test
# Tests that run again here draw fewer cases.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
# Without `std` only the seeds of hashes and the population counts of RouteTable differ. The tests
# of the modules are enough for the former. Compilation would be most of the time if it optimized.
without_std() {
    CARGO_PROFILE_DEV_OPT_LEVEL=0 PROPTEST_CASES=8 \
        cargo test -p flowtable -p flowtable-tests --no-default-features "$@"
}
without_std --lib
without_std --test routes -- model:: methods:: corners::
# All default members, as in the other checks: with fewer packages, dependencies would have other
# features and be compiled again.
cargo test --all-features --lib \
    --test concurrent --test concurrent_routes --test snapshot_routes \
    --test formats --test huge_pages
cargo build --example flow_cache --example shared_reader --all-features
cargo test --all-features --test programs -- shared_reader meter::interface
