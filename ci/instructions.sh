#!/usr/bin/env bash
# Instructions of lookups in tables and of packets in a flow cache, counted by callgrind.
# Fails if one has more than crates/instructions/limits.txt allows.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions

if ! command -v valgrind >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    echo "SKIPPED: instructions are counted by valgrind on x86-64"
    exit 77
fi
cargo build --profile bench -p flowtable-instructions
program=$(target)/release/flowtable-instructions
failed=0
while read -r name limit; do
    collected=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect="*count_$name*" "$program" 2>&1 | sed -n 's/.*Collected : //p')
    each=$((collected / 65536))
    echo "$name: $each instructions, limit $limit"
    [ "$each" -gt 0 ] && [ "$each" -le "$limit" ] || failed=1
done <crates/instructions/limits.txt
exit $failed
