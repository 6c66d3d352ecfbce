#!/usr/bin/env bash
# Runs every fuzz target for a while, from its seeds on: fuzz.sh [SECONDS], 10 for each by default.
#
# Without a sanitizer, because safe code gives it nothing to find: then stable Rust will do.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}

if ! cargo fuzz --version >/dev/null 2>&1 && ! timeout 600 cargo install cargo-fuzz --locked; then
    echo "SKIPPED: fuzzing, because cargo-fuzz could not be installed"
    exit 77
fi
cargo fuzz build --sanitizer none
for target in $(cargo fuzz list); do
    echo "fuzz target: $target"
    mkdir -p "fuzz/corpus/$target"
    cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -len_control=0 -max_len=1024 -verbosity=0 -print_final_stats=1
done
