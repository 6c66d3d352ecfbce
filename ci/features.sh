#!/usr/bin/env bash
# The library with every set of features, tests of the models with none, all with the default and all, the
# oldest Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

# `concurrent` brings `std`, so the sets with both are those with `concurrent` alone.
for set in "" std concurrent serde std,serde concurrent,serde; do
    echo "features: ${set:-none}"
    cargo clippy --lib --no-default-features --features "$set" -- -D warnings
done
# The tests with the default features are `cargo test` itself.
[ "${1-}" = --no-default-tests ] || cargo test
# The same tests again, so fewer cases of those that draw them.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
# Without std no type changes, but seeds, and how bits are counted: so each structure against its model.
tests=()
for file in tests/{bits,evict,lc_routes,lc_trie,unicache}.rs tests/*_model.rs; do
    name=$(basename "$file" .rs)
    case $name in
        concurrent_*) ;;
        *) tests+=(--test "$name") ;;
    esac
done
cargo test --no-default-features --lib "${tests[@]}"
# What the features add.
more=()
for file in tests/concurrent_*.rs; do
    more+=(--test "$(basename "$file" .rs)")
done
cargo test --all-features --lib --test prefix --test serde "${more[@]}"
cargo test --all-features --test programs shared_reader

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! cargo "+$oldest" --version >/dev/null 2>&1 &&
    ! timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update; then
    echo "SKIPPED: the oldest Rust, because the toolchain $oldest could not be installed"
    exit 77
fi
cargo "+$oldest" check --lib --all-features
