//! Threaded indices: the label of a packet *is* a row index of the next router's table.
//!
//! A router that looks a destination up searches its table, right after the previous router has
//! searched its own for it. So let each entry store the row of the next router's entry, and let
//! packets carry that row:
//!
//! ```text
//!     source              router A                router B               router C
//!                      row  port  next         row  port  next        row
//!                       0 │  2  │  7            0 │  1  │  3           0 │ …
//!     "D is at 1"  ──▸  1 │  3  │  4   ──▸      4 │  2  │  2   ──▸     2 │ deliver
//!                       2 │  1  │  0            5 │  1  │  1           3 │ …
//!
//!     packet      │ 1 │ D │ data │     │ 4 │ D │ data │    │ 2 │ D │ data │
//! ```
//!
//! Each hop reads the label, reads the row, and writes the row's label into the packet. There is no
//! search, no hash, and no comparison of destinations: the paper counts 8 instructions, where a
//! lookup by an index chosen by the source takes 20, and one by a hash 33. (Ours are more: see
//! [`Table`].) Routing distributes the labels: a router that advertises a destination includes the
//! label of its own row.
//!
//! | | |
//! |---|---|
//! | [`Label`] | the field in a packet: 23 bits of index, 8 of generation, and a threaded bit |
//! | [`Labels`] | how many rows a router has, their first generation, and the hold-down |
//! | [`Table`] | the rows of a router, and forwarding by label |
//! | [`DistanceVector`] | distance-vector routing (Bellman-Ford) with labels in advertisements |
//! | [`LinkState`] | link-state routing (Dijkstra) with labels sent to neighbours |
//! | [`Medium`] | labels of multicasts on a shared medium, allocated by its designated router |
//! | [`Border`] | the edge of an area: forwarding by row inside, by source hashing outside |
//!
//! # Why labels have generations
//!
//! A label names a row, and rows change owners. Let D vanish from router B, and let its row 4 be
//! allocated to E. Router A still stores "row 4" in its row for D until routing converges, packets
//! with label 4 are in flight, and a host may keep an old label for hours. All these packets are
//! for D, and B would send them to E's network, by a perfectly valid row: a system that compares no
//! destinations cannot detect that. So rows have a *generation*, which is part of the label and
//! incremented when a row is freed. B compares nine bits and detects the stale label; then it looks
//! D up in full, and forwards the packet with a fresh label, or drops it if there is no route.
//!
//! **Guarantee.** A packet is forwarded by a label only if the row has the owner for which the
//! label was allocated, or has been freed a multiple of 256 times since. Let L be the maximum life
//! of a label after its row is freed: the convergence time of routing, plus the time that hosts
//! keep a label, plus the maximum life of a packet. Then misdelivery is impossible
//!
//! - with a hold-down of L, even without generations;
//! - with a hold-down of more than L / 256, as 256 hold-downs pass before a generation is reused;
//! - without hold-down, unless a row changes owners 256 times within L.
//!
//! A router that restarts loses its generations: see [`Labels::start`] for the remedy.
//!
//! **Not guaranteed.** Labels are trusted, and not secret: of the 2^8 generations of a row one is
//! live, and a packet that guesses it is forwarded by the row, bypassing any check of its
//! destination. (An index is compared with the number of rows in any case.) So labels are for
//! packets from routers and hosts that got them from this router. At the edge of the area, the
//! sender chooses the field, and it is treated as a random index whatever its bits:
//! [`Border::forward_from_outside`].
//!
//! # Which changes cause messages
//!
//! A router's own label for a destination does not depend on its neighbours' labels. If one of
//! these changes, a row is rewritten, and no other router is notified. So indices add four bytes to
//! an advertisement of a distance vector, and one message only for a destination that was removed
//! and returned in between, at equal cost and with another row. Link-state routers otherwise
//! exchange nothing about single destinations; they send their neighbours a label when a row is
//! allocated or freed.
//!
//! # Cost
//!
//! - There is one row per destination of an area, which must be a small network; [`Border`]
//!   connects it to others.
//! - All routers of the area take part. One that does not sends [`Label::NONE`], and looks packets
//!   up.
//! - A row takes 8 bytes on the fast path, and 16 for its generation and hold-down. The destination
//!   itself is stored with the row, in the tree that finds it, and in routing, which keeps the
//!   advertisements of each neighbour.
//!
//! # Shared media
//!
//! A port is a neighbour here: on a shared medium each router there is one, with labels of its own.
//! A multicast needs one label that all receivers understand: the designated router of a [`Medium`]
//! allocates it, and broadcasts it.
//!
//! # Related work
//!
//! Multiprotocol Label Switching is this idea, five years later: labels are allocated by the router
//! that receives the packets, distributed upstream, and swapped at each hop (RFC 3031, sections 3.4
//! and 3.13; 20 bits, RFC 3032). It has no generations, and binds labels to explicit paths as well
//! as to destinations.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995),
//! sections 4 and 4.1. Generations, hold-down and the procedure after a restart are ours: the paper
//! does not discuss stale indices.

mod border;
mod distance_vector;
mod error;
mod label;
mod link_state;
mod medium;
mod table;
mod topology;

pub use border::{Border, BorderRoute};
pub use distance_vector::{Advertisement, DistanceVector};
pub use error::{InsertError, LabelError, NoLabel, RouterError, Stale};
pub use label::{Label, Labels};
pub use link_state::{LinkState, Message};
pub use medium::{Binding, Medium};
pub use table::{Hop, Port, Table};
pub use topology::{RouterId, RouterLink, RouterState};
