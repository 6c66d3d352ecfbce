//! Ephemeral state processing: packets that carry one small instruction, which routers execute on their
//! [ephemeral state](crate::ephemeral).
//!
//! Receivers of a multicast cannot all answer: a million answers arrive at one sender. If routers could add them up on
//! the way, one would. So a packet names a few bindings by their tags and says what to do with them; each router on
//! its way does that, and then forwards the packet or drops it. What it leaves is gone a lifetime later, whoever sent
//! it.
//!
//! ```text
//!     source ◂── 3 ──┐                    COLLECT  count, result, sum, 1
//!                    │ result = 2 + 1 = 3, all have come: forward
//!                 router ◂── 1 ── receiver
//!                    ▴
//!                    2                    a packet goes on with the result of all below
//!                    │ result = 1 + 1 = 2, all have come: forward
//!                 router ◂── 1 ── receiver            result = 1, one more to come: drop
//!                    ▴
//!                    └────── 1 ── receiver
//! ```
//!
//! | instruction | does | is forwarded |
//! |---|---|---|
//! | [`COUNT`](Instruction::Count) | adds one to a counter | as long as the counter is not above the threshold |
//! | [`COMPARE`](Instruction::Compare) | binds a tag to the packet's value, if that compares with the one it has | if it does, or there was none |
//! | [`COLLECT`](Instruction::Collect) | joins the packet's value to a result, and counts down | when the counter is zero, with the result |
//! | [`RCHILD`](Instruction::RChild) | marks who has sent it in a set of children | if it was not marked already, with the router's identity |
//! | [`RCOLLECT`](Instruction::RCollect) | joins the packet's value to a result, once for each child | when all children of the set have sent theirs, with the result and the router's identity |
//!
//! [`execute()`] does that. COUNT with threshold 1 tells a router how many are below it, and COLLECT needs that number.
//! A packet that the network duplicates is counted twice by both, so the result may be wrong, or never come.
//! RCHILD and RCOLLECT are the *robust* pair: they know who has sent what, and duplicates change nothing.
//!
//! # Which children RCOLLECT waits for
//!
//! Those that RCHILD has marked at this router in the same set: one packet from each child first, and the values when
//! all of these have had the time to arrive. A set is a binding like all others, 64 bits, of which a child has
//! four at most, by a hash of its identity and of the computation's: a Bloom filter. A child whose bits all belong to
//! others, too, is taken for one that has come already, and its value is missing in the result. That befalls one of
//! so many children, at a router, with a probability of
//!
//! | children | 2 | 4 | 8 | 12 | 16 |
//! |---|--:|--:|--:|--:|--:|
//! | one of them is missed | 0.00002 | 0.001 | 0.036 | 0.2 | 0.5 |
//!
//! The same children have other bits in another computation. Whoever wants to be sure asks again, and takes the larger
//! one of two counts: neither a duplicate nor a false positive nor a loss makes one too large.
//!
//! # What holds
//!
//! - A packet takes bounded work: at most three bindings are looked for, five times in all, and two are created. There are
//!   no loops but those of look-ups.
//! - No instruction lets a binding live longer. To write does not.
//! - An instruction that cannot be executed leaves the bindings as they were. Its packet gets the error bit, and is
//!   forwarded; no router after that executes it, and whoever receives it knows. That is so if the store is
//!   full, or if a binding is missing that must be there.
//! - Arithmetic saturates. Nothing that a packet says can cause a panic.
//! - Tags are secrets: who does not know a tag of 64 random bits cannot touch its binding. All tags that an instruction
//!   names may be the same, which is of no use; it does in the order in which it is described what it does.
//!
//! # On the wire
//!
//! Numbers are in network byte order. All are aligned to eight bytes if the packet is.
//!
//! ```text
//!      0               1               2               3
//!     ┌───────────────┬───────────────┬───────────────┬───────────────┐
//!     │  version = 1  │  instruction  │ flags         │   operator    │
//!     ├───────────────┼───────────────┼───────────────┴───────────────┤
//!     │ words of this │   protocol    │ checksum of this              │
//!     ├───────────────┴───────────────┴───────────────────────────────┤
//!     │                          computation                          │
//!     │                                                               │
//!     ├───────────────────────────────────────────────────────────────┤
//!     │           operands: 64 bits each, the threshold 32            │
//!     └───────────────────────────────────────────────────────────────┘
//!
//!     flags          ┌───┬───────────┬───────┬────────┬───────┐
//!                    │ E │ 0 0 0 0   │ output│ centre │ input │       E: an error has occurred
//!                    └───┴───────────┴───────┴────────┴───────┘
//! ```
//!
//! | | number | operator | operands | bytes |
//! |---|--:|---|---|--:|
//! | COUNT | 1 | 0 | tag, threshold | 28 |
//! | COMPARE | 2 | [`Relation`] | tag, value | 32 |
//! | COLLECT | 3 | [`Operation`] | count, result, value | 40 |
//! | RCHILD | 4 | 0 | children, child | 32 |
//! | RCOLLECT | 5 | [`Operation`] | children, reported, result, child, value | 56 |
//!
//! The words are those of 32 bits, and must be as many as the instruction has: there is nothing between the operands
//! and what is behind. The checksum is that of IP, over these words alone. The protocol says what is behind, as in IP:
//! an instruction that is *piggybacked* stands in front of a datagram, and the protocol is that of the datagram; a
//! packet of its own has [`NOTHING_BEHIND`](EspPacket::NOTHING_BEHIND). What is behind is not looked at.
//!
//! A word that is 0x0000 and becomes 0xffff, and the other way round, is what the checksum does not see, as well as words
//! that change places. Any other change of a single byte, or of bits within 16, is seen.
//!
//! The smallest is COUNT: with the headers of IPv4 and Ethernet it has 62 bytes, as the paper's smallest packet has.
//!
//! # Price
//!
//! Look-ups, of which one takes 5 words of 32 bits for each entry examined; creation takes 5 more, reading and writing 2
//! each. `cl` are the entries examined:
//!
//! | | the binding is there | it is created |
//! |---|--:|--:|
//! | COUNT | 5 cl + 4 | 5 cl + 9 |
//! | COMPARE, drops / forwards | 5 cl + 2 / 5 cl + 4 | 5 cl + 7 |
//!
//! # Paper
//!
//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services* (2002). **This is a
//! reconstruction.** What of the paper could be had tells of the instructions by name, of what stores and
//! instructions cost, of location bits, and of a computation's identity; neither what each instruction does step by
//! step nor the format of packets. So
//!
//! - the format is ours, down to the numbers. It does not interoperate with theirs.
//! - that instructions forward or drop, and abort with an error bit, is theirs; the rules of the table above are ours
//!   where the names do not say them, as is which children RCOLLECT waits for, and that routers put their own identity
//!   where a child's was.
//! - the computation's identity is theirs; that it changes the bits of children is ours.

mod execute;
mod instruction;
mod packet;

pub use execute::{Action, Site, execute, execute_observed};
pub use instruction::{Instruction, Operation, Relation, child_bits};
pub use packet::{EspPacket, Location, Locations, PacketError};
