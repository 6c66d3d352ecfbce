#!/usr/bin/env bash
# Checks the library with every set of features; runs the reference models without features, and the
# tests that need features.
#
# --no-default-tests skips the tests with the default features: `cargo test` runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

# `concurrent` implies `std`, so a set with both is the set with `concurrent` alone.
for base in "" std concurrent; do
    for more in "" serde ipnet cidr ipnetwork serde,cidr,ipnet,ipnetwork; do
        set=$base${base:+,}$more
        echo "features: ${set:-none}"
        cargo clippy -p flowtable --lib --no-default-features --features "$set" -- -D warnings
    done
done
# It implies `std`, and concerns one module.
cargo clippy -p flowtable --lib --no-default-features --features huge-pages -- -D warnings
[ "${1-}" = --no-default-tests ] || cargo test
# Tests that run again here draw fewer cases.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
# Without `std` only the seeds of hashes and the population counts of RouteTable differ; the
# tests of the modules are enough for the former.
cargo test -p flowtable --no-default-features --lib --test routes
cargo test -p flowtable --all-features --lib \
    --test concurrent --test concurrent_routes --test snapshot_routes --test formats
cargo test -p flowtable --all-features --test trash huge_pages
cargo test -p flowtable-programs --all-features shared_reader
cargo build --example flow_cache --all-features
cargo test -p flowtable-programs --all-features meter::interface
