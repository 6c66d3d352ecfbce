#!/usr/bin/env bash
# Compares the example flow_cache with a real collector: the flows that nfcapd receives as IPFIX,
# and nfdump prints, must equal the rows of CSV that this run of the example wrote.
#
# nfdump.sh [CAPTURE]; without a capture the example generates traffic.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions

if ! has_package nfdump nfdump -V; then
    echo "SKIPPED: a real collector, because nfdump could not be installed"
    exit 77
fi
cargo build --example flow_cache --all-features
example=${CARGO_TARGET_DIR:-target}/debug/examples/flow_cache
work=$(mktemp -d)
collector=
trap '[ -z "$collector" ] || kill "$collector" 2>/dev/null || true; rm -rf "$work"' EXIT

run_nfcapd() {
    rm -rf "$work/flows" && mkdir "$work/flows"
    exec nfcapd -b 127.0.0.1 -p "$1" -w "$work/flows"
}

# Prints the collected flows as `records` does. Times are parsed: nfdump 1.7.1 prints %ter wrongly.
theirs() {
    local columns='%ts|%te|%sa|%da|%pr|%sp|%dp|%flg|%it|%ic|%svln|%ismc|%idmc'
    columns+='|%ipkt|%ibyt|%opkt|%obyt'
    TZ=UTC nfdump -R "$work/flows" -q -N -6 -o "fmt:$columns" |
        sed 's/ *| */|/g; s/^ *//; s/ *$//' >"$work/text"
    for column in 1 2; do
        cut -d'|' -f$column "$work/text" | date -u -f - +%s%3N >"$work/time$column"
    done
    # For ICMP, its type and code are printed instead of a port, which rows of CSV have as 0.
    cut -d'|' -f3- "$work/text" |
        awk -F'|' -v OFS=, '$3 == 1 || $3 == 58 { $5 = 0 } { $1 = $1; print }' |
        paste -d, "$work/time1" "$work/time2" - | sort
}

# Runs the example with these arguments, and sets `received` to the final report of nfcapd.
collect() {
    start_collector 'Startup nfcapd' run_nfcapd
    "$example" "$@" --top 0 --overwrite --csv "$work/csv" --ipfix "127.0.0.1:$port" >"$work/report"
    # nfcapd reads the messages in its socket within this time.
    sleep 1
    kill "$collector"
    wait "$collector" || true
    collector=
    received=$(grep 'Flows: [1-9]' "$work/log" || true)
}

# Runs the example with these arguments, and compares the flows.
compare() {
    local biflow=
    # UDP may lose messages on a busy CPU. nfcapd detects that by their sequence numbers.
    for _ in 1 2 3; do
        collect "$@"
        [[ $received != *"Sequence Errors: 0"* ]] || break
    done
    if [[ $received != *"Sequence Errors: 0, Bad Packets: 0"* ]]; then
        echo "FAILED: nfcapd reports errors" && cat "$work/log" && exit 1
    fi
    [[ " $* " != *" --biflow "* ]] || biflow=--biflow
    records "$work/csv" $biflow >"$work/ours"
    theirs >"$work/theirs"
    if ! diff "$work/ours" "$work/theirs" >"$work/diff"; then
        echo "FAILED: nfdump prints other flows" && head -20 "$work/diff" && exit 1
    fi
    echo "nfdump prints equal records, $(wc -l <"$work/ours") of them: flow_cache $*"
}

compare "$@"
compare "$@" --idle 1 --active 0.02 --linger 0.1
compare "$@" --timeouts meter --capacity 100
compare "$@" --vlan --mac
compare "$@" --vlan --mac --biflow
