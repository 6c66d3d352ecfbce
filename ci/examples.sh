#!/usr/bin/env bash
# Every example says something; the papers are reproduced on a small scale.
set -euo pipefail
cd "$(dirname "$0")/.."

# In the profile of the tests: in that of releases every dependency would be compiled again.
cargo build --examples --all-features
for source in examples/*.rs; do
    name=$(basename "$source" .rs)
    echo "example: $name"
    output=$(cargo run --quiet --all-features --example "$name")
    echo "$output"
    [ -n "$output" ] || { echo "FAILED: the example $name prints nothing" && exit 1; }
done
echo "papers"
cargo bench --profile dev --quiet --all-features --bench paper -- \
    --quick --out target/paper-quick --markdown target/paper-quick/REPORT.md
