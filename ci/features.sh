#!/usr/bin/env bash
# The library with every set of features, tests of the models with none, all with the default and all, the
# oldest Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

# `concurrent` brings `std`, so the sets with both are those with `concurrent` alone.
for set in "" std concurrent serde std,serde concurrent,serde; do
    echo "features: ${set:-none}"
    cargo clippy -p flowtable --lib --no-default-features --features "$set" -- -D warnings
done
# The tests with the default features are `cargo test` itself.
[ "${1-}" = --no-default-tests ] || cargo test
# The same tests again, so fewer cases of those that draw them.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
# Without std no type changes, but seeds, and how bits are counted: so each structure against its model.
cargo test -p flowtable --no-default-features --lib
binaries=()
for name in cache demux ephemeral flow_cache key routes schedule sockets trash trie; do
    binaries+=(--test "$name")
done
cargo test -p flowtable --no-default-features "${binaries[@]}" -- bits:: evict:: map:: model:: routes:: share:: unicache::
# What the features add.
cargo test -p flowtable --all-features --lib --test concurrent --test concurrent_routes
cargo test -p flowtable --all-features --test key --test trash --test trie -- prefix:: serde::
cargo test -p flowtable-programs --all-features shared_reader

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! cargo "+$oldest" --version >/dev/null 2>&1 &&
    ! timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update; then
    echo "SKIPPED: the oldest Rust, because the toolchain $oldest could not be installed"
    exit 77
fi
cargo "+$oldest" check -p flowtable --lib --all-features
