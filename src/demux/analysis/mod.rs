//! What the lists cost, on paper: the equations of McKenney and Dove in closed form.
//!
//! TPC/A is the bank of benchmarks. A teller enters a transaction, the server answers R seconds later, the
//! teller's host acknowledges the answer, and the teller thinks until the next one, for 1/a seconds on
//! average. So each transaction brings the server two packets, of one connection among N:
//!
//! ```text
//!     teller    ──think──┐                 ┌──think──
//!                        │ entry           │ ack           a = 0.1 transactions a second for each of N users,
//!     server  ───────────▼────── R ────────▼────────       so 2000 users are 200 transactions a second
//!                     look-up           look-up
//! ```
//!
//! The cost of a structure is the number of PCBs that it examines for such a packet, on average.
//!
//! | | | method |
//! |--:|---|---|
//! | 1 | BSD: 1 + (N² - 1) / 2N | [`bsd`](Tpca::bsd) |
//! | 2 | F(T) = 1 - e^(-aT) | [`thought_less_than`](Tpca::thought_less_than) |
//! | 3 | N(T) = (N - 1) (1 - e^(-aT)) | [`users_within`](Tpca::users_within) |
//! | 4 | f(T) = a e^(-aT) | [`density`](Tpca::density) |
//! | 5 | (N - 1) (2/3 - e^(-3aR) / 6) | [`move_to_front_entry`](Tpca::move_to_front_entry) |
//! | | N(2R) | [`move_to_front_ack`](Tpca::move_to_front_ack) |
//! | 6 | the mean of these two | [`move_to_front`](Tpca::move_to_front) |
//! | 5', 6' | the same where nobody enters anything who waits | [`move_to_front_entry_in_a_closed_loop`](Tpca::move_to_front_entry_in_a_closed_loop), [`move_to_front_ack_in_a_closed_loop`](Tpca::move_to_front_ack_in_a_closed_loop), [`move_to_front_in_a_closed_loop`](Tpca::move_to_front_in_a_closed_loop) |
//! | 7, 8 | Sequent: 1 + (N² - H²) / 2NH | [`sequent_ignoring_trains`](Tpca::sequent_ignoring_trains) |
//! | 9 | p = e^(-2aR (N/H - 1)) | [`train_probability`](Tpca::train_probability) |
//! | 10 | p + (1 - p) (N/H + 1) / 2 | [`sequent_ack`](Tpca::sequent_ack) |
//! | 11 | the mean of 8 and 10 | [`sequent`](Tpca::sequent) |
//! | 10', 11' | with the probe that 10 forgets | [`sequent_ack_counting_the_probe`](Tpca::sequent_ack_counting_the_probe), [`sequent_counting_the_probe`](Tpca::sequent_counting_the_probe) |
//!
//! The paper has a sum for (3) and integrals for (5). Both have the closed forms above, which tests compare with
//! them. [`ConnectionSetup`] is the paper's other experiment.
//!
//! # Where the paper does not say what it counts
//!
//! - A probe of the remembered PCB counts as one PCB in (1), (7) and (8). (10) forgets it where it misses.
//!   Who counts honestly, as [`Demux`](super::Demux) does, gets (10') and (11').
//! - (5) and (6) count the PCBs *in front* of the one that is found. One more is examined.
//! - Chains are of equal length. Those of a random hash are not, which costs half a PCB more on average: a long
//!   chain is asked more often.
//! - Nobody thinks longer than 100 seconds. The equations leave that out, and 0.05 % of the time.
//! - The loop is *closed*: a user who waits for an answer enters nothing. The text lets transactions follow each
//!   other arbitrarily closely, which would be an open loop, where the cost of an entry does not depend on R. (5)
//!   is about the closed one, nearly: it has users wait, but enter as often as if they thought all the time.
//!   (5') and (6') have them enter only when they think.
//! - A hit ratio is not the goal. Three packets in place of one per message make it 2/3, and not one PCB fewer is
//!   examined for a transaction.
//!
//! # Example
//!
//! ```
//! use flowtable::demux::analysis::{Tpca, TpcaError};
//!
//! let bank = Tpca::new(2000, 0.2)?;
//! assert_eq!(bank.bsd().round(), 1001.0);
//! assert_eq!(bank.move_to_front().round(), 549.0);
//! assert_eq!(bank.sequent().round(), 53.0);
//! // More chains are the better half of the answer.
//! assert!(bank.with_chains(100)?.sequent() < 9.0);
//! # Ok::<(), TpcaError>(())
//! ```
//!
//! # Paper
//!
//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets* (1992), section 3.

mod connection_setup;

use core::error::Error;
use core::fmt;

pub use connection_setup::ConnectionSetup;

/// The paper's number of chains.
const CHAINS: u32 = 19;
/// Transactions of a user in a second of thinking: TPC/A has them think for ten seconds.
const RATE: f64 = 0.1;

/// A TPC/A workload: users, their rate, the response time, and chains to find their PCBs in.
///
/// Times are in seconds; costs are in PCBs for a packet. See the [module](self) for what is calculated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tpca {
    /// N, at least 1.
    users: u32,
    /// R, finite and not negative.
    response_time: f64,
    /// a, finite and positive.
    rate: f64,
    /// H, at least 1.
    chains: u32,
}

/// A workload that cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TpcaError {
    /// Without users nobody sends a packet.
    NoUsers,
    /// A PCB must be in some chain.
    NoChains,
    /// A response time that is negative, infinite or not a number.
    Time(f64),
    /// A rate that is not positive, infinite or not a number.
    Rate(f64),
}

impl fmt::Display for TpcaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUsers => f.write_str("there must be a user"),
            Self::NoChains => f.write_str("there must be a chain"),
            Self::Time(time) => write!(f, "{time} s is no time that a response takes"),
            Self::Rate(rate) => write!(f, "{rate} per second is no rate of transactions"),
        }
    }
}

impl Error for TpcaError {}

impl Tpca {
    /// So many users (N), who get their response after so many seconds (R): 0.1 transactions a second each,
    /// 19 chains.
    ///
    /// # Errors
    ///
    /// If there are no users, or the time is negative, infinite or not a number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::analysis::{Tpca, TpcaError};
    ///
    /// assert!(Tpca::new(2000, 0.2).is_ok());
    /// assert_eq!(Tpca::new(0, 0.2), Err(TpcaError::NoUsers));
    /// assert_eq!(Tpca::new(2000, -1.0), Err(TpcaError::Time(-1.0)));
    /// ```
    pub fn new(users: u32, response_time: f64) -> Result<Self, TpcaError> {
        if users == 0 {
            return Err(TpcaError::NoUsers);
        }
        if !response_time.is_finite() || response_time < 0.0 {
            return Err(TpcaError::Time(response_time));
        }
        Ok(Self { users, response_time, rate: RATE, chains: CHAINS })
    }

    /// The same with so many transactions of a user in a second of thinking (a).
    ///
    /// # Errors
    ///
    /// If the rate is not positive, infinite or not a number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::analysis::{Tpca, TpcaError};
    ///
    /// // Only the product of rate and time matters.
    /// let (hasty, bank) = (Tpca::new(2000, 0.1)?.with_rate(0.2)?, Tpca::new(2000, 0.2)?);
    /// assert!((hasty.move_to_front() - bank.move_to_front()).abs() < 1e-9);
    /// assert_eq!(bank.with_rate(0.0), Err(TpcaError::Rate(0.0)));
    /// # Ok::<(), TpcaError>(())
    /// ```
    pub fn with_rate(self, per_second: f64) -> Result<Self, TpcaError> {
        if !per_second.is_finite() || per_second <= 0.0 {
            return Err(TpcaError::Rate(per_second));
        }
        Ok(Self { rate: per_second, ..self })
    }

    /// The same with so many chains (H). Those beyond the number of users are empty, and count for nothing.
    ///
    /// # Errors
    ///
    /// If there are none.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::analysis::{Tpca, TpcaError};
    ///
    /// let few = Tpca::new(10, 0.2)?;
    /// assert_eq!(few.with_chains(10)?.sequent(), 1.0);
    /// assert_eq!(few.with_chains(1000)?.sequent(), 1.0);
    /// assert_eq!(few.with_chains(0), Err(TpcaError::NoChains));
    /// # Ok::<(), TpcaError>(())
    /// ```
    pub fn with_chains(self, chains: u32) -> Result<Self, TpcaError> {
        if chains == 0 {
            return Err(TpcaError::NoChains);
        }
        Ok(Self { chains, ..self })
    }

    /// Equation 1: PCBs that BSD's list examines for a packet.
    ///
    /// The remembered PCB, and in N - 1 of N cases half of the list.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(1, 0.2)?.bsd(), 1.0);
    /// assert_eq!(Tpca::new(2000, 0.2)?.bsd().round(), 1001.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn bsd(self) -> f64 {
        let users = f64::from(self.users);
        1.0 + (users - 1.0) / users * (users + 1.0) / 2.0
    }

    /// The part of packets for which BSD's remembered PCB is the right one: 1/N.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(2000, 0.2)?.bsd_hit_ratio(), 0.0005);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn bsd_hit_ratio(self) -> f64 {
        1.0 / f64::from(self.users)
    }

    /// Equation 2, F(T): the probability that a user thinks for less than `t` seconds. Nobody does for less
    /// than none. Not a number for a time that is none.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert!((bank.thought_less_than(10.0) - 0.632).abs() < 0.001);
    /// assert_eq!(bank.thought_less_than(-1.0), 0.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn thought_less_than(self, t: f64) -> f64 {
        if t < 0.0 { 0.0 } else { -(-self.rate * t).exp_m1() }
    }

    /// Equation 3, N(T): how many of the other users enter something within `t` seconds, on average.
    ///
    /// The mean of a binomial distribution, so the paper's sum over their number is (N - 1) F(T).
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert_eq!(bank.users_within(10.0).round(), 1264.0);
    /// assert_eq!(bank.users_within(f64::INFINITY), 1999.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn users_within(self, t: f64) -> f64 {
        (f64::from(self.users) - 1.0) * self.thought_less_than(t)
    }

    /// Equation 4, f(T): the density of the think time at `t` seconds, per second.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert_eq!(bank.density(0.0), 0.1);
    /// assert_eq!(bank.density(-1.0), 0.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn density(self, t: f64) -> f64 {
        if t < 0.0 { 0.0 } else { self.rate * (-self.rate * t).exp() }
    }

    /// Equation 5: PCBs in front of that of an entry, in the list that moves to the front.
    ///
    /// Those of others of whom a packet came while this user thought for T seconds: they entered something, or
    /// acknowledged what they had entered R before. The times of such entries are 2T seconds if T is below R, and
    /// T + R if it is not. So it is N of that, over all T by their density.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(2000, 0.2)?.move_to_front_entry().round(), 1019.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front_entry(self) -> f64 {
        let others = f64::from(self.users) - 1.0;
        others * (2.0 / 3.0 - (-3.0 * self.rate * self.response_time).exp() / 6.0)
    }

    /// N(2R): PCBs in front of that of an acknowledgement, in the list that moves to the front.
    ///
    /// Those of users who entered something while this one waited, or whose acknowledgement came: they entered
    /// within 2R.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(2000, 0.2)?.move_to_front_ack().round(), 78.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front_ack(self) -> f64 {
        self.users_within(2.0 * self.response_time)
    }

    /// Equation 6: PCBs in front of that of a packet, in the list that moves to the front.
    ///
    /// The paper compares this with [`bsd`](Self::bsd), though one more is examined.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(2000, 0.2)?.move_to_front().round(), 549.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front(self) -> f64 {
        (self.move_to_front_entry() + self.move_to_front_ack()) / 2.0
    }

    /// Equation 5': PCBs in front of that of an entry, in the list that moves to the front.
    ///
    /// Those of others of whom a packet came while this user thought for T seconds. Of another one there was
    /// none
    /// if that one thought all the time, with probability e^(-aT) / (1 + aR), or waited all the time, with
    /// a (R - T) / (1 + aR) if T is below R. With f(T) for the density of T this is
    /// (N - 1) (1 - (aR - 1/2 + e^(-aR)) / (1 + aR)).
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let slow = Tpca::new(2000, 2.0)?;
    /// assert_eq!(slow.move_to_front_entry_in_a_closed_loop().round(), 1135.0);
    /// assert_eq!(slow.move_to_front_entry().round(), 1150.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front_entry_in_a_closed_loop(self) -> f64 {
        let others = f64::from(self.users) - 1.0;
        let waiting = self.rate * self.response_time;
        others * (1.0 - (waiting - 0.5 + (-waiting).exp()) / (1.0 + waiting))
    }

    /// PCBs in front of that of an acknowledgement, in the list that moves to the front, where nobody enters
    /// anything who waits: (N - 1) (1 - e^(-aR) / (1 + aR)).
    ///
    /// Another user's packet did not come while this one waited if the other one thought all the time.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let slow = Tpca::new(2000, 2.0)?;
    /// assert_eq!(slow.move_to_front_ack_in_a_closed_loop().round(), 635.0);
    /// assert_eq!(slow.move_to_front_ack().round(), 659.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front_ack_in_a_closed_loop(self) -> f64 {
        let others = f64::from(self.users) - 1.0;
        let waiting = self.rate * self.response_time;
        others * (1.0 - (-waiting).exp() / (1.0 + waiting))
    }

    /// Equation 6': PCBs in front of that of a packet, in the list that moves to the front.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let slow = Tpca::new(2000, 2.0)?;
    /// assert_eq!(slow.move_to_front_in_a_closed_loop().round(), 885.0);
    /// assert_eq!(slow.move_to_front().round(), 904.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn move_to_front_in_a_closed_loop(self) -> f64 {
        let (entry, ack) = (
            self.move_to_front_entry_in_a_closed_loop(),
            self.move_to_front_ack_in_a_closed_loop(),
        );
        (entry + ack) / 2.0
    }

    /// Equations 7 and 8: PCBs that Sequent's chains examine, if packets come in no order at all.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert!((bank.sequent_ignoring_trains() - 53.6).abs() < 0.05);
    /// // A single chain is BSD's list.
    /// assert_eq!(bank.with_chains(1)?.sequent_ignoring_trains(), bank.bsd());
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_ignoring_trains(self) -> f64 {
        1.0 + (1.0 - self.sequent_hit_ratio()) * self.miss_scan()
    }

    /// The part of packets for which a chain's remembered PCB is the right one, if they come in no order at
    /// all:
    /// H/N, at most 1.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(2000, 0.2)?.sequent_hit_ratio(), 0.0095);
    /// assert_eq!(Tpca::new(3, 0.2)?.sequent_hit_ratio(), 1.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_hit_ratio(self) -> f64 {
        1.0 / self.chain_length()
    }

    /// Equation 9, p: the probability that no other packet of the chain comes between an entry and its
    /// acknowledgement, which then finds its PCB remembered.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert!((bank.train_probability() - 0.0154).abs() < 0.00005);
    /// assert!(bank.with_chains(1)?.train_probability() < 1.9e-35);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn train_probability(self) -> f64 {
        (-2.0 * self.rate * self.response_time * (self.chain_length() - 1.0)).exp()
    }

    /// Equation 10: PCBs that Sequent's chains examine for an acknowledgement, but for a probe in vain.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert!((Tpca::new(2000, 0.2)?.sequent_ack() - 52.3).abs() < 0.05);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_ack(self) -> f64 {
        let hit = self.train_probability();
        hit + (1.0 - hit) * self.miss_scan()
    }

    /// Equation 11: PCBs that Sequent's chains examine for a packet, but for a probe in vain by an
    /// acknowledgement.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert!((Tpca::new(2000, 0.2)?.sequent() - 53.0).abs() < 0.05);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent(self) -> f64 {
        (self.sequent_ignoring_trains() + self.sequent_ack()) / 2.0
    }

    /// Equation 10': PCBs that Sequent's chains examine for an acknowledgement.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// let in_vain = bank.sequent_ack_counting_the_probe() - bank.sequent_ack();
    /// assert!((in_vain - (1.0 - bank.train_probability())).abs() < 1e-9);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_ack_counting_the_probe(self) -> f64 {
        1.0 + (1.0 - self.train_probability()) * self.miss_scan()
    }

    /// Equation 11': PCBs that Sequent's chains examine for a packet.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert!((Tpca::new(2000, 0.2)?.sequent_counting_the_probe() - 53.5).abs() < 0.05);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_counting_the_probe(self) -> f64 {
        (self.sequent_ignoring_trains() + self.sequent_ack_counting_the_probe()) / 2.0
    }

    /// N/H, but at least 1: a chain that somebody is looked for in has a PCB.
    fn chain_length(self) -> f64 {
        (f64::from(self.users) / f64::from(self.chains)).max(1.0)
    }

    /// PCBs of a chain that are examined until one of them is found.
    fn miss_scan(self) -> f64 {
        (self.chain_length() + 1.0) / 2.0
    }
}
