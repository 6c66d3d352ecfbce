//! Indices that are threaded through a network: the label of a packet *is* the row of the next router's table.
//!
//! A router that looks a destination up searches its table, though the router before has just searched its own for the
//! same. So let each entry say where the next router has its entry, and let packets carry that:
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
//! At each hop the label is taken out, the row is read, the row's label is written in. Nothing is searched, nothing is
//! hashed, no destination is compared: the paper counts 8 instructions, where a look-up by an index that the source
//! has chosen takes 20, and one by a hash 33. (Ours are more: see [`Table`].) Routing hands the labels out on the way:
//! who advertises a destination says the label of its own row with it.
//!
//! | | |
//! |---|---|
//! | [`Label`] | what a packet carries: 23 bits of index, 8 of generation, and one that says it is threaded |
//! | [`Labels`] | which rows are whose: an allocator with generations and hold-down |
//! | [`Table`] | a router's rows, and forwarding by them |
//! | [`DistanceVector`] | routing by what neighbours say (Bellman-Ford): labels come with the adverts |
//! | [`LinkState`] | routing by what everybody says (Dijkstra): labels are told to neighbours beside |
//! | [`Border`] | where an area ends: threaded packets by their rows, others by source hashing |
//!
//! # What goes wrong without generations
//!
//! A label names a row, and rows change hands. Let D vanish from router B, and let E have its row 4. A still has "row
//! 4" in its row for D until it hears of it, packets with 4 are under way, and a host may keep what it was told at
//! noon. All these packets are for D, and B would send them to E's network, over a row that is perfectly in order: in
//! a system that compares no destinations nobody notices. So rows have a *generation*, which is part of the label and
//! goes up when a row is freed. B compares nine bits and sees that the packet is not for this owner of the row; then
//! it looks up D in full, and the packet goes on with a fresh label, or is dropped if there is no way.
//!
//! **What is guaranteed.** A packet is forwarded by a label only if its row belongs to whom it belonged to when the
//! label was given, or was freed 256 times since, or a multiple of that. Let a label live for at most L after its row
//! is freed: the time until the neighbours have heard of it (convergence), the time that hosts go on with what they
//! were told, and the longest life of a packet. Then
//!
//! - with a hold-down of L, never: tags would not even be needed;
//! - with a hold-down of more than L / 256, never, as 256 hold-downs pass before a tag is there again;
//! - without hold-down, never unless a row changes hands 256 times within L.
//!
//! A router that restarts forgets generations: see [`Labels::new`] for what it should do.
//!
//! **What is not.** Labels are believed, and no secret: of the 2^8 generations of a row one is live, and a packet that
//! guesses it goes where the row leads, past whatever would have asked for its destination. (An index is compared
//! with the number of rows in any case.) So labels are for packets from routers and hosts that were told them.
//! Where others send, at the edge of the area, the field is theirs to choose, and is taken for a random index
//! whatever it says: [`Border::forward_from_outside`].
//!
//! # What tells of changes, and what does not
//!
//! A router's own label for a destination does not depend on its neighbours' labels. If one of these changes, a row is
//! rewritten, and nobody else hears of it. So indices add four bytes to an advert of a distance vector, and an advert
//! only for a destination that went and came back in between, at the same cost and with another row; link state
//! routers, which tell each other nothing about single destinations otherwise, tell their neighbours a label when a
//! row is made or freed.
//!
//! # Price
//!
//! - Rows are by destination, for all of an area. That is a small network; [`Border`] is for what is beyond.
//! - All routers of the area take part. One that does not says [`Label::NONE`], and is sent packets to look up.
//! - 8 bytes for a row on the fast path, and 16 for its generation and hold-down. Besides, the destination itself: with
//!   the row, in the tree that finds it, and in routing, which keeps what each neighbour said.
//!
//! # Media that several routers listen to
//!
//! A port is a neighbour here: on a shared medium each router there is one, with labels of its own. Packets to many at
//! once would need one label that all receivers understand: the paper lets the designated router of the medium give it
//! out of a range which the others keep free. There is nothing for that here.
//!
//! # Relatives
//!
//! Multiprotocol Label Switching is this idea, five years later: labels are given by the router that receives the
//! packets, told to those before it, and swapped at each hop (RFC 3031, sections 3.4 and 3.13; 20 bits, RFC 3032). It
//! has no generations, and binds labels for paths that somebody sets up as well as for destinations.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), on threaded indices.
//! Generations, hold-down and what to do after a restart are ours: the paper does not say what becomes of stale
//! indices.

mod border;
mod check;
mod distance_vector;
mod error;
mod label;
mod labels;
mod link_state;
mod router_state;
mod shortest_paths;
mod table;

pub use border::{Border, Way};
pub use check::Broken;
pub use distance_vector::{Advert, DistanceVector};
pub use error::{InsertError, LabelError, NoLabel, RouterError, Stale};
pub use label::Label;
pub use labels::Labels;
pub use link_state::{LinkState, Message};
pub use router_state::{RouterId, RouterState};
pub use table::{Hop, Port, Table};
