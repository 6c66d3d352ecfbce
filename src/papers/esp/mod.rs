//! Ephemeral state processing: packets that carry one short instruction, which routers execute on
//! their [ephemeral state](crate::ephemeral).
//!
//! The receivers of a multicast cannot all answer: a million answers would arrive at one sender. If
//! routers could add them up on the way, one would. So a packet names a few bindings by their tags
//! and carries an operation on them; each router on its way executes the operation, and then
//! forwards or drops the packet. The bindings expire one lifetime later, whichever sender created
//! them.
//!
//! ```text
//!     source ◂── 3 ──┐                    COLLECT  count, result, sum, 1
//!                    │ result = 2 + 1 = 3, count is 0: forward
//!                 router ◂── 1 ── receiver
//!                    ▴
//!                    2                    a forwarded packet carries the result of its subtree
//!                    │ result = 1 + 1 = 2, count is 0: forward
//!                 router ◂── 1 ── receiver            result = 1, count is 1: drop
//!                    ▴
//!                    └────── 1 ── receiver
//! ```
//!
//! | instruction | operation | forwarded |
//! |---|---|---|
//! | [`COUNT`] | increments a counter | while the counter is at most the threshold |
//! | [`COMPARE`] | binds a tag to a value | if the relation holds, or the tag was not bound |
//! | [`COLLECT`] | combines a value, decrements a counter | when that is zero, with the result |
//! | [`RCHILD`] | marks the sender in a set of children | if it was not marked before |
//! | [`RCOLLECT`] | combines a value, once per child | when all have reported, with the result |
//!
//! [`COUNT`]: Instruction::Count
//! [`COMPARE`]: Instruction::Compare
//! [`COLLECT`]: Instruction::Collect
//! [`RCHILD`]: Instruction::RChild
//! [`RCOLLECT`]: Instruction::RCollect
//!
//! [`execute()`] implements them. COUNT with threshold 1 counts the subtrees of a router, and
//! COLLECT needs that count. Both count a packet twice that the network duplicates, so the result
//! may be wrong, or never arrive. RCHILD and RCOLLECT are the *robust* pair: they record the
//! senders, and duplicates change nothing. They forward packets with the identity of the router in
//! place of the child's.
//!
//! # The children that RCOLLECT waits for
//!
//! RCOLLECT waits for the children that RCHILD has marked at this router in the same set: first one
//! RCHILD from each child, and the values when all of these have had time to arrive. A set is an
//! ordinary binding of 64 bits, of which a child sets at most four, by a hash of its identity and
//! of the computation's: a Bloom filter. A child whose bits are all set by others counts as
//! reported, and its value is missing in the result. The probability that this affects any child of
//! a router is
//!
//! | children | 2 | 4 | 8 | 12 | 16 |
//! |---|--:|--:|--:|--:|--:|
//! | one of them is missed | 0.00002 | 0.001 | 0.036 | 0.2 | 0.5 |
//!
//! A child has different bits in another computation. For more certainty, repeat the query and take
//! the larger of two counts: neither duplicates nor false positives nor losses can make one too
//! large.
//!
//! # Invariants
//!
//! - The work per packet is bounded: at most three bindings are found, in at most five lookups, and
//!   at most two are created. The only loops are in lookups.
//! - No instruction extends the life of a binding. Writes do not.
//! - An instruction that cannot be executed leaves the bindings unchanged: if the store is full, or
//!   a required binding is missing. Its packet is forwarded with the error bit set, and later
//!   routers do not execute it; the receiver can read the bit.
//! - Arithmetic saturates. No content of a packet can cause a panic.
//! - Tags are capabilities: without a tag of 64 random bits a sender cannot access its binding. The
//!   tags of an instruction may be equal, which is useless but defined: the steps are executed in
//!   the order of the description.
//!
//! # Packet format
//!
//! Fields are in network byte order. All are aligned to eight bytes if the packet is.
//!
//! ```text
//!      0               1               2               3
//!     ┌───────────────┬───────────────┬───────────────┬───────────────┐
//!     │  version = 1  │  instruction  │ flags         │   operator    │
//!     ├───────────────┼───────────────┼───────────────┴───────────────┤
//!     │ packet words  │   protocol    │ checksum of the packet        │
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
//! | | opcode | operator | operands | bytes |
//! |---|--:|---|---|--:|
//! | COUNT | 1 | 0 | tag, threshold | 28 |
//! | COMPARE | 2 | [`Relation`] | tag, value | 32 |
//! | COLLECT | 3 | [`Operation`] | count, result, value | 40 |
//! | RCHILD | 4 | 0 | children, child | 32 |
//! | RCOLLECT | 5 | [`Operation`] | children, reported, result, child, value | 56 |
//!
//! The length is in words of 32 bits and must match the instruction: there is no padding between
//! the operands and the payload. The checksum is the Internet checksum, over the packet without its
//! payload. The protocol is the IP protocol number of the payload: a *piggybacked* instruction
//! precedes a datagram, and has the protocol of the datagram; a packet without payload has
//! [`NO_NEXT_HEADER`](EspPacket::NO_NEXT_HEADER). The payload is not read.
//!
//! The checksum does not detect a word that changes from 0x0000 to 0xffff or back, nor words that
//! are exchanged. It detects any other change of a single byte, or of bits within 16.
//!
//! The smallest packet is COUNT: with the headers of IPv4 and Ethernet it has 62 bytes, as
//! the rates of the paper imply for its smallest one: 169 Mb/s of 340,000 packets a second.
//!
//! # Cost
//!
//! An instruction costs a few lookups. A lookup takes 5 words of 32 bits for each entry examined; a
//! creation takes 5 more, a read and a write 2 each. With `cl` entries examined:
//!
//! | | the binding exists | it is created |
//! |---|--:|--:|
//! | COUNT | 5 cl + 4 | 5 cl + 9 |
//! | COMPARE, drops / forwards | 5 cl + 2 / 5 cl + 4 | 5 cl + 7 |
//!
//! # Paper
//!
//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services*
//! (2002). **This is a reconstruction.** Only the end of the paper was available, from section 6
//! on. It names COMPARE and COUNT, and describes the costs of the store and of these two; it
//! contains neither the steps of instructions nor the format of packets. So the following is ours:
//!
//! - the format, including the opcodes. It does not interoperate with theirs.
//! - the effects of instructions, the rules of the table above, and the other three instructions.
//! - location bits, the error bit, and the identity of a computation.

mod execute;
mod instruction;
mod packet;

pub use execute::{Action, Site, execute, execute_observed};
pub use instruction::{Instruction, Operation, Relation, child_bits};
pub use packet::{EspPacket, Location, Locations, PacketError};
