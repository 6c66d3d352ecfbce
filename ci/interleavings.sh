#!/usr/bin/env bash
# Runs what threads share in many orders: small protocols in all of them, with at most two preemptions
# (loom: the models in src/concurrent), operations of maps in random ones (shuttle).
#
# interleavings.sh [SECONDS] gives up each after so many seconds, 300 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/slim
folder=$(target)/interleavings
slim "$folder/package"
limit=${1:-300}

LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2} RUSTFLAGS="--cfg crossbeam_loom" \
    part loom "$limit" cargo test --features concurrent --lib loom_models
RUSTFLAGS="--cfg shuttle" part shuttle "$limit" cargo test --features concurrent --test concurrent_shuttle
[ "$skipped" = 0 ] || exit 77
