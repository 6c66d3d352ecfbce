#!/usr/bin/env bash
# Compares the example flow_cache with a second collector: the flows that nfacctd of pmacct receives
# as IPFIX, and prints, must equal the rows of CSV that this run of the example wrote.
#
# pmacct.sh [CAPTURE]; without a capture the example generates traffic.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions

if ! has_package pmacct nfacctd -V; then
    echo "SKIPPED: a second collector, because pmacct could not be installed"
    exit 77
fi
cargo build --example flow_cache --all-features
example=${CARGO_TARGET_DIR:-target}/debug/examples/flow_cache
work=$(mktemp -d)
collector=
trap '[ -z "$collector" ] || kill "$collector" 2>/dev/null || true; rm -rf "$work"' EXIT

# Starts nfacctd on a free port of the loopback interface; sets `port` and `collector`.
start_collector() {
    for _ in {1..20}; do
        port=$((20000 + RANDOM % 20000))
        cat >"$work/configuration" <<CONFIGURATION
daemonize: false
nfacctd_ip: 127.0.0.1
nfacctd_port: $port
nfacctd_pipe_size: 4194304
plugins: print
plugin_pipe_size: 10240000
aggregate: src_host, dst_host, src_port, dst_port, proto, tcpflags, timestamp_start, timestamp_end
timestamps_since_epoch: true
print_output: csv
print_output_file: $work/flows
print_output_file_append: true
print_refresh_time: 600
CONFIGURATION
        rm -f "$work/flows"
        nfacctd -f "$work/configuration" >"$work/log" 2>&1 &
        collector=$!
        for _ in {1..50}; do
            grep -q 'waiting for NetFlow/IPFIX data' "$work/log" && return
            kill -0 "$collector" 2>/dev/null || break
            sleep 0.1
        done
        kill "$collector" 2>/dev/null || true
    done
    echo "FAILED: nfacctd does not start" && cat "$work/log" && exit 1
}

# Sums packets and bytes of rows with equal keys, as nfacctd does.
sums() {
    awk -F, -v OFS=, '
        { key = $1 OFS $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7 OFS $8
          packets[key] += $9; bytes[key] += $10 }
        END { for (key in packets) print key, packets[key], bytes[key] }' | sort
}

# Prints rows of CSV with milliseconds instead of nanoseconds, as text: awk has no 64-bit integers.
ours() {
    tail -n +2 "$1" | awk -F, -v OFS=, '
        function ms(ns) { return length(ns) > 6 ? substr(ns, 1, length(ns) - 6) : 0 }
        function flags(text, number, at) {
            for (at = 1; at <= 8; at++) number = 2 * number + (substr(text, at, 1) ~ /[A-Z]/)
            return number
        }
        { print $1, $2, $4, $5, flags($10), $3, ms($8), ms($9), $6, $7 }' | sums
}

# Prints the collected flows as such rows. nfacctd prints names of protocols.
theirs() {
    grep -v '^SRC_IP' "$work/flows" | awk -F, -v OFS=, '
        function ms(time) { sub(/\./, "", time); return substr(time, 1, length(time) - 3) }
        BEGIN {
            number["icmp"] = 1; number["tcp"] = 6; number["udp"] = 17; number["gre"] = 47
            number["esp"] = 50; number["ipv6-icmp"] = 58; number["sctp"] = 132
        }
        { protocol = $6 in number ? number[$6] : $6
          print $1, $2, $3, $4, $5, protocol, ms($7), ms($8), $9, $10 }' | sums
}

# Runs the example with these arguments, and has nfacctd write what it received.
collect() {
    start_collector
    "$example" "$@" --top 0 --overwrite --csv "$work/csv" --ipfix "127.0.0.1:$port" >"$work/report"
    # nfacctd reads the messages in its socket within this time.
    sleep 1
    kill -INT "$collector"
    wait "$collector" || true
    collector=
    # A process of its own writes the flows.
    for _ in {1..100}; do
        grep -q 'Purging cache - END' "$work/log" && break
        sleep 0.1
    done
}

# Runs the example with these arguments, and compares the flows.
compare() {
    # UDP may lose messages on a busy CPU.
    for _ in 1 2 3; do
        collect "$@"
        ours "$work/csv" >"$work/ours"
        theirs >"$work/theirs"
        if diff "$work/ours" "$work/theirs" >"$work/diff"; then
            echo "nfacctd prints equal records, $(wc -l <"$work/ours") of them: flow_cache $*"
            return
        fi
    done
    echo "FAILED: nfacctd prints other flows" && head -20 "$work/diff" && cat "$work/log" && exit 1
}

compare "$@"
compare "$@" --idle 1 --active 0.02 --linger 0.1
compare "$@" --timeouts meter --capacity 100
