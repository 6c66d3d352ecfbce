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
# Without `std` only the seeds of hashes and the population counts of RouteTable differ; the
# tests of the modules are enough for the former.
cargo test -p flowtable --no-default-features --lib
cargo test -p flowtable-tests --no-default-features --test routes
cargo test -p flowtable --all-features --lib
cargo test -p flowtable-tests --all-features \
    --test concurrent --test concurrent_routes --test snapshot_routes \
    --test formats --test huge_pages
cargo test -p flowtable-programs --all-features shared_reader
cargo build --example flow_cache --all-features
cargo test -p flowtable-programs --all-features meter::interface
