//! The sections of the page: what belongs to them, and what there is to say.
//!
//! The words say why something is as it is. What it is, in numbers, is measured.

use super::sheet::Sheet;
use crate::board::Figure;

/// A section of the page: a structure, or some that do the same.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) words: &'static str,
    /// Structures of ours, as the lines call them before the first `/` or `+`.
    structures: &'static [&'static str],
    /// The rows of ours that are compared, as the lines call them.
    pub(crate) leaders: &'static [&'static str],
    /// Rows that are no peers: the machine, ours in another form, or one of the peers once more.
    pub(crate) bystanders: &'static [&'static str],
    /// What tells boards apart that have the same jobs, in their titles.
    pub(crate) phases: &'static [&'static str],
    /// What the summary shows.
    pub(crate) jobs: &'static [&'static str],
    pub(crate) plots: &'static [Plot],
}

/// A plot with a panel for each of some jobs.
pub(crate) struct Plot {
    /// The name of its file.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) key: &'static str,
    pub(crate) benches: &'static [&'static str],
}

impl Section {
    /// Whether a board belongs to it.
    pub(crate) fn has(&self, sheet: &Sheet) -> bool {
        sheet.figures.first().is_some_and(|figure| {
            let structure = figure.structure.split(['/', '+']).next();
            structure.is_some_and(|structure| self.structures.contains(&structure))
        })
    }

    /// The job of a figure, with what tells its board apart.
    pub(crate) fn job_of(&self, figure: &Figure) -> String {
        let phase = self.phases.iter().find(|phase| figure.board.contains(**phase));
        phase.map_or_else(|| figure.bench.clone(), |phase| format!("{}, {phase}", figure.bench))
    }
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "TrashMap",
        words: include_str!("words/trash.md"),
        structures: &["trash"],
        leaders: &["trash"],
        bystanders: &["limit: a line each", "no map", "TrashMap before"],
        phases: &[],
        jobs: &[
            "hit",
            "miss",
            "zipf",
            "dependent hit",
            "burst of 32",
            "churn",
            "fill",
            "bytes",
            "peak bytes",
            "pause worst, repeated",
            "pause worst, new memory",
        ],
        plots: &[
            Plot {
                file: "trash_16",
                title: "TrashMap: keys of 16 bytes, values of 8",
                key: "16",
                benches: &["hit", "dependent hit", "miss", "burst of 32", "churn", "fill"],
            },
            Plot {
                file: "trash_40",
                title: "TrashMap: keys of 40 bytes, values of 8",
                key: "40",
                benches: &["hit", "dependent hit", "miss", "burst of 32", "churn", "fill"],
            },
            Plot {
                file: "trash_bytes",
                title: "TrashMap: bytes for an entry, keys of 16 bytes, values of 8",
                key: "16",
                benches: &["bytes", "peak bytes"],
            },
        ],
    },
    Section {
        title: "LcTrieMap",
        words: include_str!("words/lc_trie.md"),
        structures: &["lc_trie"],
        leaders: &["lc_trie"],
        bystanders: &[],
        phases: &[],
        jobs: &["hit", "miss", "zipf", "dependent hit", "churn", "fill"],
        plots: &[Plot {
            file: "lc_trie",
            title: "LcTrieMap over headed five-tuples",
            key: "14",
            benches: &["hit", "dependent hit", "churn", "fill"],
        }],
    },
    Section {
        title: "RouteTable",
        words: include_str!("words/routes.md"),
        structures: &["routes"],
        leaders: &["routes"],
        bystanders: &["no table"],
        phases: &[],
        jobs: &[
            "inside",
            "inside, dependent",
            "inside, burst",
            "random",
            "random, dependent",
            "random, burst",
            "zipf",
            "zipf, burst",
            "withdraw",
            "announce",
            "build",
            "bytes",
            "peak bytes",
            "worst build, us",
            "worst replay, us",
        ],
        plots: &[
            Plot {
                file: "routes_v4",
                title: "RouteTable: the routes of IPv4",
                key: "v4",
                benches: &[
                    "inside",
                    "inside, dependent",
                    "inside, burst",
                    "random",
                    "withdraw",
                    "announce",
                    "build",
                    "bytes",
                ],
            },
            Plot {
                file: "routes_v6",
                title: "RouteTable: the routes of IPv6",
                key: "v6",
                benches: &[
                    "inside",
                    "inside, dependent",
                    "inside, burst",
                    "random",
                    "withdraw",
                    "announce",
                    "build",
                    "bytes",
                ],
            },
        ],
    },
    Section {
        title: "FlowCache",
        words: include_str!("words/flow_cache.md"),
        structures: &["flow_cache"],
        leaders: &["flow_cache"],
        bystanders: &["no table", "Unicache, no idle timeout"],
        phases: &["while a table fills", "when it is full"],
        jobs: &[
            "uniform",
            "uniform, burst",
            "zipf",
            "zipf, burst",
            "established lost",
            "flood",
            "flood / calm",
            "bytes, all",
            "peak bytes, all",
            "worst, repeated, while a table fills",
            "worst, repeated, when it is full",
            "silent, ns",
            "late, ms",
        ],
        plots: &[
            Plot {
                file: "flows",
                title: "FlowCache: ns for a packet",
                key: "14",
                benches: &["uniform", "uniform, burst", "zipf", "zipf, burst"],
            },
            Plot {
                file: "flows_flood",
                title: "FlowCache: a flood of connections that nobody answers",
                key: "14",
                benches: &["flood", "established lost"],
            },
        ],
    },
    Section {
        title: "Demultiplexers",
        words: include_str!("words/demux.md"),
        structures: &[
            "demux",
            "connection_id",
            "sequent",
            "sequent_move_to_front",
            "move_to_front",
            "send_receive",
        ],
        leaders: &["demux", "connection_id", "sequent"],
        bystanders: &[],
        phases: &[],
        jobs: &["random", "dependent", "trains of four", "shuffled"],
        plots: &[
            Plot {
                file: "demux",
                title: "Demultiplexers: ns for a segment",
                key: "12",
                benches: &["random", "dependent", "trains of four", "shuffled"],
            },
            Plot {
                file: "demux_pcbs",
                title: "Demultiplexers: PCBs examined for a segment",
                key: "12",
                benches: &["PCBs, random", "PCBs, trains"],
            },
        ],
    },
    Section {
        title: "SocketTable",
        words: include_str!("words/sockets.md"),
        structures: &["sockets"],
        leaders: &["sockets"],
        bystanders: &[
            "TrashMap of FlowKey",
            "TrashMap of IPv4",
            "50 % taken",
            "90 % taken",
            "99 % taken",
            "all taken",
        ],
        phases: &[],
        jobs: &[
            "hit",
            "miss",
            "dependent hit",
            "burst of 32",
            "churn",
            "fill",
            "hit, 8 listeners",
            "SYN, 8 listeners",
            "SYN, 32 listeners",
            "SYN, no listener",
            "many",
            "8 connections",
        ],
        plots: &[Plot {
            file: "sockets",
            title: "SocketTable: connections",
            key: "40",
            benches: &["hit", "miss", "burst of 32", "churn"],
        }],
    },
    Section {
        title: "Caches",
        words: include_str!("words/source_hash.md"),
        structures: &["source_hash", "chained"],
        leaders: &["source_hash", "source_hash/3", "chained"],
        bystanders: &[],
        phases: &[],
        jobs: &["hit", "dependent hit", "miss", "burst of 32", "burst of 256", "stream"],
        plots: &[Plot {
            file: "caches",
            title: "SourceHashCache and ChainedCache",
            key: "12",
            benches: &["hit", "dependent hit", "miss", "burst of 32", "burst of 256", "stream"],
        }],
    },
    Section {
        title: "EphemeralStore",
        words: include_str!("words/ephemeral.md"),
        structures: &["ephemeral"],
        leaders: &["ephemeral"],
        bystanders: &[],
        phases: &[],
        jobs: &["create", "mixed", "find", "create in bursts", "mixed in bursts", "find in bursts"],
        plots: &[Plot {
            file: "ephemeral",
            title: "EphemeralStore: ns for a packet",
            key: "8",
            benches: &[
                "create",
                "create in bursts",
                "mixed",
                "mixed in bursts",
                "find",
                "find in bursts",
            ],
        }],
    },
    Section {
        title: "ConcurrentMap",
        words: include_str!("words/concurrent.md"),
        structures: &["concurrent"],
        leaders: &["concurrent"],
        bystanders: &["no map", "best of papaya to scc", "TrashMap, not shared"],
        phases: &[],
        jobs: &[
            "100/0, 1 thread",
            "100/0, 2 threads",
            "90/10, 1 thread",
            "90/10, 2 threads",
            "burst 100/0, 1 thread",
            "burst 100/0, 2 threads",
            "burst 90/10, 1 thread",
            "burst 90/10, 2 threads",
            "insert worst, repeated",
            "read worst, least of 3",
            "bytes, mean",
            "bytes, highest",
        ],
        plots: &[
            Plot {
                file: "concurrent",
                title: "ConcurrentMap: look-ups one by one",
                key: "16",
                benches: &[
                    "100/0, 1 thread",
                    "100/0, 2 threads",
                    "90/10, 1 thread",
                    "90/10, 2 threads",
                ],
            },
            Plot {
                file: "concurrent_bursts",
                title: "ConcurrentMap: look-ups in bursts of 32",
                key: "16",
                benches: &[
                    "burst 100/0, 1 thread",
                    "burst 100/0, 2 threads",
                    "burst 90/10, 1 thread",
                    "burst 90/10, 2 threads",
                ],
            },
        ],
    },
    Section {
        title: "ConcurrentRoutes",
        words: include_str!("words/concurrent_routes.md"),
        structures: &["concurrent_routes"],
        leaders: &["concurrent_routes"],
        bystanders: &["the same, 32 in a call", "the same, no writer", "RouteTable, no writer"],
        phases: &[],
        jobs: &[
            "single",
            "burst",
            "burst, 99.9 %, us",
            "worst burst, us",
            "update",
            "update, 99.9 %, us",
            "worst update, us",
        ],
        plots: &[Plot {
            file: "concurrent_routes",
            title: "ConcurrentRoutes: a reader beside a writer",
            key: "v4",
            benches: &["single", "burst", "update", "update, 99.9 %, us"],
        }],
    },
];
