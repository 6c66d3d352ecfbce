//! The help text.

pub(crate) const USAGE: &str = "\
Meters the flows of packet captures with a flow cache.

Usage: flow_cache [CAPTURE | -] [CAPTURE]... [OPTION]...

INPUT
    CAPTURE is a pcap or pcapng file, perhaps compressed; several are merged by
    time. - is standard input:
        tcpdump --immediate-mode -U -w - | flow_cache - --timeouts meter --live
    Without CAPTURE, traffic is generated. Time is that of the packets, and goes
    on while a pipe or an interface is silent.
    --interface NAME    packets of a network interface, or any; several can be
                        given
    --filter TEXT       only packets that pass this filter of tcpdump, such as
                        'tcp port 443'. Both need libpcap, and a build with
                        `--features interface`

FLOWS
    A flow is both directions of a conversation, with the counts of each. It
    ends when a timeout expires, when its TCP connection closes, or when the
    cache is full; other flows end with the input.
    --timeouts off|meter|conntrack   preset of timeouts (off)
        off         nothing ends a flow: one record for each
        meter       60 s idle, 64 s if closed; a report every 300 s
        conntrack   by protocol and state, as in connection tracking
    --idle SECONDS      end flows after this time without a packet, such as 0.5
    --active SECONDS    report active flows at this interval
    --linger SECONDS    keep closed connections for this time
    --linger off        FIN and RST do not close connections
    --inside one|all    flows inside tunnels, such as GRE, VXLAN and GTP-U, and
                        not of their outer addresses: inside one, or inside all
    --vlan              equal addresses and ports in other VLANs are other flows
    --mac               records have the MAC addresses of their first packets
    --join-errors       ICMP errors count in the flow whose packet they quote;
                        not with --workers

MEMORY
    --capacity N        hold N flows at most (1000000). Beyond, closed ones are
                        evicted first, then new, unanswered, established ones
    --threshold N       the same: the name of the TRASH paper
    --max-memory BYTES  use at most this, such as 512M, and evict flows as above

CORES
    --workers N         meter in N threads (1, at most 128), each with a cache
                        of its part of the flows and the memory. Both directions
                        of a flow have one worker. The records are the same, in
                        another order

OUTPUT, to a FILE or, as -, to standard output. Records are appended to a FILE
    --csv FILE          one row for each direction of a record
    --json FILE         one line for each record: both directions, end reason
    --ipfix FILE        IPFIX messages, RFC 7011: a record for each direction
    --ipfix HOST:PORT   IPFIX by UDP to a collector, such as nfcapd; several can
                        be given
    --overwrite         empty each FILE that exists, at the start
    --rotate-time N     begin another file every N seconds, such as 3600: FILE
                        has a time, as in flows-%Y%m%d-%H%M%S.csv, in UTC
    --rotate-size N     begin another file, FILE.1 and so on, after N bytes, as
                        100M
    --community-id      a column with the community ID of the flow

IPFIX
    --biflow            one record for both directions, RFC 5103
    --domain N          the observation domain (1)
    --message-size N    messages of at most N bytes (what the path to a
                        collector takes as one packet, at most 1232)

DISPLAY
    --top N             list the N largest records (10, at most 1000000)
    --live              on a terminal, show a table of the cache; not with
                        --workers

SIGNALS
    INT, TERM, HUP      end the run as the end of the input would; a second one
                        ends it at once
    HUP                 without a terminal: open all output files again
    USR1                print a report to standard error, and continue

OTHER
";

/// The end: the exit codes.
pub(crate) const EXIT_CODES: &str = "
Exits with 0; with 1 if an output could not be written or did not arrive; with 2
if the input is damaged, or the arguments are wrong; with 128 + N after signal
N. All results are written in each case.
";
