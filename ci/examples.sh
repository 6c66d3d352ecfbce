#!/usr/bin/env bash
# Every bench and example compiles; every example says something; programs of the papers run, if
# they have a quick mode.
set -euo pipefail
cd "$(dirname "$0")/.."

# Not optimized as for measuring: then examples and benches share their dependencies.
export CARGO_PROFILE_BENCH_LTO=off CARGO_PROFILE_BENCH_CODEGEN_UNITS=16

cargo build --release --examples
cargo bench --no-run
for source in examples/*.rs; do
    name=$(basename "$source" .rs)
    echo "example: $name"
    cargo run --release --quiet --example "$name" </dev/null | tee /dev/stderr | grep -q . ||
        { echo "FAILED: the example $name prints nothing" && exit 1; }
done
for source in $(grep -ls -e '"--quick"' -e 'Long("quick")' benches/paper/*.rs); do
    name=$(basename "$source" .rs)
    echo "paper: $name"
    cargo bench --quiet --bench "$name" -- --quick
done
