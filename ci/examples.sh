#!/usr/bin/env bash
# Runs every example, which must print something, each benchmark of Criterion once, and, on a small
# scale, the reproduction of the papers.
set -euo pipefail
cd "$(dirname "$0")/.."

# In the profile of the tests: the release profile would compile every dependency again.
cargo build --examples --all-features
for source in examples/*.rs; do
    name=$(basename "$source" .rs)
    echo "example: $name"
    output=$(cargo run --quiet --all-features --example "$name")
    echo "$output"
    [ -n "$output" ] || { echo "FAILED: the example $name prints nothing" && exit 1; }
done
echo "benchmarks"
cargo bench --profile dev --quiet --all-features -- --test
echo "papers"
cargo bench --profile dev --quiet --all-features --bench paper -- \
    --quick --out target/paper-quick --markdown target/paper-quick/REPORT.md
