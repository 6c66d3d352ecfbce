#!/usr/bin/env bash
# Runs every fuzz target, beginning with its seeds: fuzz.sh [SECONDS], 1 for each by default.
#
# A run of some seconds takes less time than its compilation, so nothing is optimized for it, and
# there is no debug information.
#
# Uses AddressSanitizer, which detects invalid memory accesses of unsafe code. It needs nightly
# Rust; if that cannot be installed, the targets run without it. Inputs are chosen at equal rates:
# the computation of unequal ones takes longer than most inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
seconds=${1:-1}
# The longest time of an input.
limit=10
if [ "$seconds" -lt 10 ]; then
    # cargo-fuzz sets the level of debug information on its command line.
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 RUSTFLAGS="-Cdebuginfo=0 ${RUSTFLAGS-}"
    limit=60
fi

if ! cargo fuzz --version >/dev/null 2>&1 &&
    ! timeout 600 cargo install cargo-fuzz --locked --debug; then
    echo "SKIPPED: fuzzing, because cargo-fuzz could not be installed"
    exit 77
fi
toolchain=+nightly sanitizer=address
if ! cargo +nightly --version >/dev/null 2>&1 &&
    ! timeout 300 rustup toolchain install nightly --profile minimal --no-self-update; then
    echo "SKIPPED: AddressSanitizer for fuzzing, because nightly Rust could not be installed"
    toolchain=+$(rustup show active-toolchain | cut -d' ' -f1) sanitizer=none
fi
cargo "$toolchain" fuzz build --sanitizer "$sanitizer"

# fuzz TARGET prints its output at the end, since two targets run at the same time.
fuzz() {
    local target=$1 output status=0
    mkdir -p "fuzz/corpus/$target"
    output=$(cargo "$toolchain" fuzz run --sanitizer "$sanitizer" "$target" \
        "fuzz/corpus/$target" "fuzz/seeds/$target" -- -max_total_time="$seconds" -timeout="$limit" \
        -len_control=0 -max_len=1024 -entropic=0 -verbosity=0 \
        -print_final_stats=1 2>&1) || status=$?
    printf 'fuzz target: %s\n%s\n' "$target" "$output"
    return "$status"
}
export -f fuzz
export seconds limit toolchain sanitizer
cargo fuzz list | xargs -P 2 -I TARGET bash -c 'fuzz TARGET'
