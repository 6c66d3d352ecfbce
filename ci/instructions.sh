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
# One run counts them all, each with what it calls.
file=$(mktemp)
trap 'rm "$file"' EXIT
valgrind --quiet --tool=callgrind --callgrind-out-file="$file" --collect-atstart=no \
    --toggle-collect="*count_*" "$program"
costs=$(callgrind_annotate --inclusive=yes --threshold=100 "$file")
failed=0
while read -r name limit; do
    collected=$(awk "/::count_$name / { gsub(\",\", \"\"); print \$1 }" <<<"$costs")
    each=$((${collected:-0} / 65536))
    echo "$name: $each instructions, limit $limit"
    [ "$each" -gt 0 ] && [ "$each" -le "$limit" ] || failed=1
done <crates/instructions/limits.txt
exit $failed
