//! The explanations of all causes, with the run that shows each.
//!
//! A run that yields the published number shows that a cause suffices, not that it was the one of
//! the day: several settings were tried with the published number in view.

use std::error::Error;

use crate::causes::{Evidence, Explanation, Status};
use crate::report::Table;
use crate::{demux_1992, ephemeral_2002, scheduling_2001, source_hash_1995, trash_2006};

/// All causes, in the order of [`Cause`].
pub(crate) const EXPLANATIONS: [Explanation; 19] = [
    Explanation {
        name: "other-work",
        title: "Here a packet costs its lookup and nothing else",
        status: Status::Inferred,
        text: "The routers and hosts of the papers spent most of a packet's time outside \
            the lookup, which brings all ratios closer to 1. The printed numbers imply 1.6 ms \
            of other work for a TCP packet of 1992, and 0.8 to 6 µs for the cache of 2006.",
        more: "For the forwarding of 1995 the other work depends on the lookups measured \
            here: its line has it.",
        run: other_work,
    },
    Explanation {
        name: "cache-speeds",
        title: "Speeds of the caches of 2006, relative to each other",
        status: Status::Open,
        text: "The trie was 3 % faster than the chained table of Linux; here it is several \
            times slower, and other work cannot turn the sign. Tried were tables that cut \
            their chains at 4 or 8 entries, as Linux did, and hits and misses apart.",
        more: "The tables had 32 768 and 131 072 buckets. Half of a miss is the collection, \
            which walks four leaves for each new one. The collection by age that Linux ran in \
            the background is not reproduced.",
        run: trash_2006::explain_speeds,
    },
    Explanation {
        name: "uneven-leaves",
        title: "The two interfaces had unequally many flows in the trie",
        status: Status::Shown,
        text: "With the source first, the trie splits by interface at its root, and its \
            second half gets 16 bits for its node only from some 45 000 leaves on. With 55 000 \
            and 45 000 leaves the average depth is the printed 2.78, with halves it is 2.6.",
        more: "That one interface of the testbed was faster is an inference.",
        run: trash_2006::explain_uneven_leaves,
    },
    Explanation {
        name: "three-packets",
        title: "\"2 packets\" of the generator are 3",
        status: Status::Inferred,
        text: "The kernel's generator ends a flow when its count exceeds the length, so a \
            flow of \"2\" sends 3 packets, and two thirds of 8192 flows are alive, not half. \
            That yields 5480 entries, and so explains three quarters of the difference.",
        more: "The other 8 % of the entries remain open. The generator was read in later \
            sources of the kernel, not in the source of 2006.",
        run: trash_2006::explain_three_packets,
    },
    Explanation {
        name: "max-depth",
        title: "The deepest leaf of random keys changes with the seed and the size",
        status: Status::Shown,
        text: "The maximum depth is the extreme of a sample: 3 or 4 for some 6000 keys, 4 or 5 \
            for 100 000, 3 for some hundred, and more from a root of 19 bits on, which may not \
            grow. A single trie of the paper has any of these.",
        more: "",
        run: trash_2006::explain_max_depth,
    },
    Explanation {
        name: "least-depth",
        title: "Random keys are not as shallow as printed",
        status: Status::Inferred,
        text: "Below a root of 18 bits a key that is alone in its slot is 1 deep, any other \
            at least 2: on average 2 - e^-λ or more for λ random keys by slot, which is 1.317 \
            for 99 952 keys. The printed 1.30 takes 93 500 random keys, or keys that are \
            spread more evenly.",
        more: "Insertions alone yield 1.342. The caches here have 1.317, as a collection \
            evicts one of four neighbours, and so spreads the keys.",
        run: trash_2006::explain_least_depth,
    },
    Explanation {
        name: "users-wait",
        title: "The equations' users do not wait for their answers",
        status: Status::Shown,
        text: "By equations 2 to 6 a user thinks 10 s and never waits; the simulated user \
            waits for R as well, and so enters less often. Equations 5' and 6' of the crate \
            account for the wait, and agree with what is counted.",
        more: "In a chain fewer packets are in between, so that more responses find their \
            PCB remembered.",
        run: demux_1992::explain_users_wait,
    },
    Explanation {
        name: "own-packet",
        title: "The packet before is the user's own in one case only",
        status: Status::Inferred,
        text: "1/N takes the users of two packets in a row as independent, but only a \
            user's next query may directly follow his own packet, with the probability a / (a \
            + λ), where λ is the rate of all others. For both kinds of packets that is half of \
            it, 0.0128 %.",
        more: "A user's acknowledgement follows his query after 0.2 s, with some 80 packets \
            of others between. In one of 19 chains some acknowledgements follow their query as \
            well: 1.03 % in all.",
        run: demux_1992::explain_own_packet,
    },
    Explanation {
        name: "half-full",
        title: "A table twice as large as its flows is half full",
        status: Status::Inferred,
        text: "Of n flows in 2n places each finds its place taken by an earlier one with the \
            probability of the flows before it: 1 - (1 - e^-½) / ½, 21 %, for random indices. The \
            paper calls a factor of two sufficient, and collisions rare.",
        more: "",
        run: |_| Ok(vec![]),
    },
    Explanation {
        name: "linear-crc",
        title: "Both halves of the CRC pair are linear in names that count together",
        status: Status::Shown,
        text: "A CRC is linear: names whose two halves count together differ by the same few bit \
            patterns in both, and cancel. The generated names of 16 subnets have one part that \
            counts; addresses and ports of captured clients have two.",
        more: "",
        run: source_hash_1995::explain_linear_crc,
    },
    Explanation {
        name: "instructions",
        title: "Another instruction set, and checks that the paper leaves out",
        status: Status::Open,
        text: "A hop by threaded index takes 30 instructions here, 3 without the checks of \
            the row's number and its generation: the printed 8 lies between. A header that is \
            parsed by hand takes 35, as each length is checked against the packet.",
        more: "The checks of a hop keep a stale label from leading a packet astray. A CRC \
            takes 39 by a table and 400 bit by bit; the paper does not state its method, and \
            100 for 12 bytes fits a loop over a table on a load/store processor.",
        run: source_hash_1995::explain_instructions,
    },
    Explanation {
        name: "filter-flows",
        title: "The gain of the packet filter depends on the number of flows",
        status: Status::Shown,
        text: "A hit spares all 16 programs, a miss costs all of them and a replacement. The \
            printed 6 to 7 lies between the two numbers of flows that are measured; the paper \
            does not state its own.",
        more: "",
        run: source_hash_1995::explain_filter_flows,
    },
    Explanation {
        name: "short-packets",
        title: "One pass has a fixed cost that only long packets earn back",
        status: Status::Shown,
        text: "The receiver reads a header of six regions and merges them before it touches a \
            byte. Sums and copies run from the first cache at many bytes per nanosecond here, \
            so that three passes over a short packet are cheaper than that header.",
        more: "",
        run: source_hash_1995::explain_short_packets,
    },
    Explanation {
        name: "empty-polls",
        title: "Shares of input threads, and what an empty poll takes from others",
        status: Status::Open,
        text: "With a share for line speed, as section 3.3 states it, two idle ports that \
            poll take more of the processor than the printed 30 %, with the switch charged or \
            not. In table 3 the direction of the printed 35 and 38 comes out, and half of its \
            size.",
        more: "Shares of 150 of 1000 yield the printed 91, but by their choice: two of them \
            are 30 %.",
        run: scheduling_2001::explain_empty_polls,
    },
    Explanation {
        name: "switch-time",
        title: "The printed switch, turns and rates contradict each other",
        status: Status::Inferred,
        text: "\"A context switch costs 2 µs\" (section 4), turns are \"on the order of 10 \
            packets\" (2.2), and table 2 prints rates that these two do not yield in any row. \
            One switch of 0.92 µs and turns of nine packets yield all four rows within 2 %; \
            figures 4 to 8 are simulated with 0.92 µs.",
        more: "Section 2.2 names inexpensive continuations. E of figure 8 depends on the \
            packets that the estimator aims at as well, which the paper does not state. Links \
            are simulated: A and C take 140 of the 148.8 Kpps of theirs, which is not the \
            limit.",
        run: scheduling_2001::explain_switch_time,
    },
    Explanation {
        name: "input-share",
        title: "Input reads a little more than its share",
        status: Status::Inferred,
        text: "If input reads 98 of 133 Kpps and both flows lose the same part, QoS is 12.9 \
            below its 49, not about 10; best effort gets 62, not 49. The printed numbers \
            contradict each other, as 39 and 49 are less than 98.",
        more: "Batches of the simulated input favour QoS.",
        run: scheduling_2001::explain_input_share,
    },
    Explanation {
        name: "turn-details",
        title: "Details of the scheduler in the simulation of figures 10 to 15",
        status: Status::Open,
        text: "The paper does not state which flow goes first when tags are equal, what run it \
            expects of a flow, nor that the simulated scheduler is WF2Q+ (the prototype's is). \
            Start-time fair queueing meets more of the printed statements than any variant of \
            WF2Q+, but no variant meets all of them.",
        more: "",
        run: scheduling_2001::explain_turn_details,
    },
    Explanation {
        name: "words-and-time",
        title: "The words of memory do not account for the latencies of 2002",
        status: Status::Open,
        text: "By the printed words and times a word takes 0.10 µs in a find, 0.14 in a \
            creation, and 0.05 in a read. COMPARE is 1.36 µs slower than COUNT, which is about \
            one more find or create (1.4): it may look its tag up twice.",
        more: "A find in the chains of a full store examines a second entry in one case of \
            four even with two heads for an entry, which is not \"constant\" where only memory \
            takes time.",
        run: ephemeral_2002::explain_words,
    },
    Explanation {
        name: "unknown",
        title: "No cause is known",
        status: Status::Open,
        text: "Look for a fault, or for other work of this machine.",
        more: "",
        run: |_| Ok(vec![]),
    },
];

/// The other work for a packet that the printed numbers imply.
fn other_work(_quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let mut table = Table::new(&["paper", "two printed numbers", "imply, for a packet"]);
    let [bsd, sequent] = [906e6 / 46_800.0, 193e6 / 65_520.0];
    // A packet costs a rest, and a time for each PCB: two equations.
    let [pcbs_bsd, pcbs_sequent] = [84.24e6 / 46_800.0, 8.69e6 / 65_520.0];
    let pcb = (bsd - sequent) / (pcbs_bsd - pcbs_sequent);
    let times = format!("BSD {bsd:.0} µs, Sequent {sequent:.0} µs a packet");
    let rest = format!("{pcb:.1} µs for a PCB, and {:.0} µs of other work", bsd - pcbs_bsd * pcb);
    table.row(&[&"002, connection set-up", &times, &rest]);
    let nanos = |kpps: f64| 1e6 / kpps;
    let [hash, short, long] = [1308.0, 1218.0, 1193.0].map(nanos);
    let times = format!("chained {hash:.0} ns, TRASH 160 {short:.0} ns, TRASH 384 {long:.0} ns");
    let rest = format!("the trie costs {:.0} ns, the long key {:.0}", short - hash, long - short);
    table.row(&[&"003, one flow", &times, &rest]);
    let times = "2 CPUs forward 317 Kpps";
    let rest = format!("{:.1} µs in all", 2.0 * nanos(317.0) / 1000.0);
    table.row(&[&"003, denial of service", &times, &rest]);
    Ok(vec![("Other work for a packet, from printed numbers", table)])
}
