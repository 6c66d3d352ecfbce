#!/usr/bin/env bash
# Every bench and example compiles; every example says something; programs of the papers run, if
# they have a quick mode.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --examples --all-features
# Not in the profile of the benches, which has every dependency compiled again.
cargo bench --profile release --no-run --all-features
for source in examples/*.rs; do
    name=$(basename "$source" .rs)
    echo "example: $name"
    output=$(cargo run --release --quiet --all-features --example "$name")
    echo "$output"
    [ -n "$output" ] || { echo "FAILED: the example $name prints nothing" && exit 1; }
done
for source in $(grep -ls -e '"--quick"' -e 'Long("quick")' benches/paper/*.rs); do
    name=$(basename "$source" .rs)
    echo "paper: $name"
    cargo bench --profile release --quiet --all-features --bench "$name" -- --quick
done
