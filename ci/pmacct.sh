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

# Elements without a name in nfacctd: ICMP, and the counts of the other direction.
cat >"$work/primitives" <<PRIMITIVES
name=icmp4 field_type=32 len=2 semantics=u_int
name=icmp6 field_type=139 len=2 semantics=u_int
name=back_packets field_type=29305:2 len=8 semantics=u_int
name=back_bytes field_type=29305:1 len=8 semantics=u_int
PRIMITIVES
aggregate="src_host, dst_host, src_port, dst_port, proto, tcpflags, timestamp_start, timestamp_end"
aggregate+=", vlan, src_mac, dst_mac, icmp4, icmp6, back_packets, back_bytes"

run_nfacctd() {
    cat >"$work/configuration" <<CONFIGURATION
daemonize: false
nfacctd_ip: 127.0.0.1
nfacctd_port: $1
nfacctd_pipe_size: 4194304
plugins: print
plugin_pipe_size: 10240000
aggregate_primitives: $work/primitives
aggregate: $aggregate
timestamps_since_epoch: true
print_output: csv
print_output_file: $work/flows
print_output_file_append: true
print_refresh_time: 600
CONFIGURATION
    rm -f "$work/flows"
    exec nfacctd -f "$work/configuration"
}

# Sums packets and bytes, columns 14 and 15, of rows with equal other columns, as nfacctd does.
sums() {
    awk -F, -v OFS=, '
        { p = $14; b = $15; $14 = $15 = ""; packets[$0] += p; bytes[$0] += b }
        END { for (key in packets) print key, packets[key], bytes[key] }' | sort
}

# Prints the collected flows as `records` does. nfacctd prints names of protocols.
theirs() {
    awk -F, -v OFS=, '
        function ms(time) { sub(/\./, "", time); return substr(time, 1, length(time) - 3) }
        function flags(bits, text, bit) {
            for (bit = 1; bit <= 8; bit++) {
                text = (bits % 2 ? substr("FSRPAUEC", bit, 1) : ".") text
                bits = int(bits / 2)
            }
            return text
        }
        BEGIN {
            number["icmp"] = 1; number["tcp"] = 6; number["udp"] = 17; number["gre"] = 47
            number["esp"] = 50; number["ipv6-icmp"] = 58; number["sctp"] = 132
        }
        $1 == "SRC_MAC" { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            protocol = $at["PROTOCOL"]; icmp = $at["icmp4"] + $at["icmp6"]
            if (protocol in number) protocol = number[protocol]
            print ms($at["TIMESTAMP_START"]), ms($at["TIMESTAMP_END"]), \
                $at["SRC_IP"], $at["DST_IP"], protocol, $at["SRC_PORT"], $at["DST_PORT"], \
                flags($at["TCP_FLAGS"]), int(icmp / 256), icmp % 256, \
                $at["VLAN"], $at["SRC_MAC"], $at["DST_MAC"], \
                $at["PACKETS"], $at["BYTES"], $at["back_packets"], $at["back_bytes"]
        }' "$work/flows" | sums
}

# Runs the example with these arguments, and has nfacctd write what it received.
collect() {
    start_collector 'waiting for NetFlow/IPFIX data' run_nfacctd
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
    touch "$work/flows"
}

# Runs the example with these arguments, and compares the flows.
compare() {
    local biflow=
    [[ " $* " != *" --biflow "* ]] || biflow=--biflow
    # UDP may lose messages on a busy CPU.
    for _ in 1 2 3; do
        collect "$@"
        records "$work/csv" $biflow | sums >"$work/ours"
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
compare "$@" --vlan --mac
compare "$@" --vlan --mac --biflow
