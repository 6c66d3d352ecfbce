#!/usr/bin/env bash
# Runs the concurrent structures in many interleavings: small protocols in all of them with at most
# two preemptions, or one or three where a model sets another limit (loom: the models in
# src/concurrent), operations of maps in random ones (shuttle).
#
# interleavings.sh [SECONDS] stops each part after a number of seconds, 600 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
folder=$(target)/interleavings
limit=${1:-600}

# Compilation is most of the time, so only what runs for long is optimized. The library must be: its
# functions would need more than the small stacks of the simulated threads.
optimized() {
    printf -- '--config profile.dev.package.%s.opt-level=1 ' \
        flowtable crossbeam-epoch generator "$@"
}
protocols() {
    LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2} RUSTFLAGS="--cfg crossbeam_loom" \
        part loom "$limit" cargo $(optimized loom) \
        test -p flowtable --features concurrent --lib loom_models
}
operations() {
    RUSTFLAGS="--cfg shuttle" \
        part shuttle "$limit" cargo $(optimized flowtable-tests shuttle) \
        test -p flowtable-tests --features concurrent --test concurrent
}
both protocols operations
[ "$skipped" = 0 ] || exit 77
