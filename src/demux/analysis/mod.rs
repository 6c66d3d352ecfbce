//! Analytical costs of the lists: the equations of McKenney and Dove in closed form.
//!
//! TPC/A is a benchmark that models a bank. A teller enters a transaction, the server responds R
//! seconds later, the teller's host acknowledges the response, and the teller thinks until the next
//! transaction, for 1/a seconds on average. So each transaction brings the server two packets, of
//! one connection among N:
//!
//! ```text
//!     teller    ──think──┐                 ┌──think──
//!                        │ entry           │ ack        a = 0.1 transactions per second and user,
//!     server  ───────────▼────── R ────────▼────────    so 2000 users make 200 per second
//!                      lookup            lookup
//! ```
//!
//! The cost of a structure is the mean number of PCBs that it examines per packet.
//!
//! | | | method |
//! |--:|---|---|
//! | 1 | BSD: 1 + (N² - 1) / 2N | [`bsd`](Tpca::bsd) |
//! | 2 | F(T) = 1 - e^(-aT) | [`think_time_cdf`](Tpca::think_time_cdf) |
//! | 3 | N(T) = (N - 1) (1 - e^(-aT)) | [`users_within`](Tpca::users_within) |
//! | 4 | f(T) = a e^(-aT) | [`density`](Tpca::density) |
//! | 5 | (N - 1) (2/3 - e^(-3aR) / 6) | [`move_to_front_entry`](Tpca::move_to_front_entry) |
//! | | N(2R) | [`move_to_front_ack`](Tpca::move_to_front_ack) |
//! | 6 | the mean of these two | [`move_to_front`](Tpca::move_to_front) |
//! | 7, 8 | Sequent: 1 + (N² - H²) / 2NH | [`sequent_ignoring_trains`] |
//! | 9 | p = e^(-2aR (N/H - 1)) | [`train_probability`](Tpca::train_probability) |
//! | 10 | p + (1 - p) (N/H + 1) / 2 | [`sequent_ack`](Tpca::sequent_ack) |
//! | 11 | the mean of 8 and 10 | [`sequent`](Tpca::sequent) |
//!
//! Primed equations are corrections of ours:
//!
//! | | corrects | method |
//! |--:|---|---|
//! | 5' | 5: users enter nothing while they wait | [`move_to_front_entry_in_a_closed_loop`] |
//! | | N(2R), likewise | [`move_to_front_ack_in_a_closed_loop`] |
//! | 6' | 6: the mean of these two | [`move_to_front_in_a_closed_loop`] |
//! | 10' | 10: counts the probe that misses | [`sequent_ack_counting_the_probe`] |
//! | 11' | 11: the mean of 8 and 10' | [`sequent_counting_the_probe`] |
//!
//! [`sequent_ignoring_trains`]: Tpca::sequent_ignoring_trains
//! [`move_to_front_entry_in_a_closed_loop`]: Tpca::move_to_front_entry_in_a_closed_loop
//! [`move_to_front_ack_in_a_closed_loop`]: Tpca::move_to_front_ack_in_a_closed_loop
//! [`move_to_front_in_a_closed_loop`]: Tpca::move_to_front_in_a_closed_loop
//! [`sequent_ack_counting_the_probe`]: Tpca::sequent_ack_counting_the_probe
//! [`sequent_counting_the_probe`]: Tpca::sequent_counting_the_probe
//!
//! The paper has a sum for (3) and integrals for (5). Both have the closed forms above; tests
//! compare the two. [`ConnectionSetup`] is the paper's other experiment.
//!
//! # Left open by the paper
//!
//! - A probe of the cached PCB counts as one PCB in (1), (7) and (8). (10) omits it where it
//!   misses. [`Demux`](super::Demux) counts every probe, which gives (10') and (11').
//! - (5) and (6) count the PCBs *in front* of the one that is found. One more is examined.
//! - Chains have equal lengths. Under a random hash they do not, which costs half a PCB more on
//!   average: more lookups search the longer chains.
//! - TPC/A truncates think times at 100 seconds. The equations do not, and ignore 0.05 % of the
//!   time.
//! - The loop is *closed*: a user who waits for a response enters nothing. By the text,
//!   transactions may follow each other arbitrarily closely, which would be an open loop, where the
//!   cost of an entry does not depend on R. (5) describes almost a closed one: users wait, but
//!   enter as often as if they thought all the time. In (5') and (6') they enter only when they
//!   think.
//! - A hit ratio is not the goal. Three packets instead of one per message make it 2/3, but a
//!   transaction examines as many PCBs as before.
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
//! // More chains save more than any reordering.
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

/// The default number of chains: the paper's.
const CHAINS: u32 = 19;
/// The default transactions per second of thinking: in TPC/A, users think for ten seconds.
const RATE: f64 = 0.1;

/// A TPC/A workload: users, their rate, the response time, and the number of hash chains.
///
/// Times are in seconds, costs in PCBs per packet. The [module](self) lists the equations.
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

/// The error of an invalid workload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TpcaError {
    /// The number of users, or of connections, is zero.
    NoUsers,
    /// The number of chains is zero.
    NoChains,
    /// A response time that is negative, infinite or not a number.
    Time(f64),
    /// A rate that is not positive, infinite or not a number.
    Rate(f64),
}

impl fmt::Display for TpcaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUsers => f.write_str("the number of users is zero"),
            Self::NoChains => f.write_str("the number of chains is zero"),
            Self::Time(time) => write!(f, "{time} s is not a valid response time"),
            Self::Rate(rate) => write!(f, "{rate} per second is not a valid rate of transactions"),
        }
    }
}

impl Error for TpcaError {}

impl Tpca {
    /// Creates a workload of `users` (N) with a response time in seconds (R), 0.1 transactions per
    /// second and user, and 19 chains.
    ///
    /// # Errors
    ///
    /// If `users` is zero, or the time is negative, infinite or not a number.
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

    /// Sets the transactions of a user per second of thinking (a).
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
    /// // Costs depend on the product of rate and time only.
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

    /// Sets the number of chains (H). Chains in excess of the number of users are empty, and
    /// ignored.
    ///
    /// # Errors
    ///
    /// If `chains` is zero.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::analysis::{Tpca, TpcaError};
    ///
    /// let small = Tpca::new(10, 0.2)?;
    /// assert_eq!(small.with_chains(10)?.sequent(), 1.0);
    /// assert_eq!(small.with_chains(1000)?.sequent(), 1.0);
    /// assert_eq!(small.with_chains(0), Err(TpcaError::NoChains));
    /// # Ok::<(), TpcaError>(())
    /// ```
    pub fn with_chains(self, chains: u32) -> Result<Self, TpcaError> {
        if chains == 0 {
            return Err(TpcaError::NoChains);
        }
        Ok(Self { chains, ..self })
    }

    /// Equation 1: PCBs that BSD's list examines per packet.
    ///
    /// It examines the cached PCB, and in N - 1 of N cases half of the list.
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

    /// The hit ratio of BSD's cached PCB: 1/N.
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

    /// Equation 2, F(T): the probability that a user thinks for less than `t` seconds.
    ///
    /// It is 0 if `t` is negative, and not a number if `t` is not.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// assert!((bank.think_time_cdf(10.0) - 0.632).abs() < 0.001);
    /// assert_eq!(bank.think_time_cdf(-1.0), 0.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn think_time_cdf(self, t: f64) -> f64 {
        if t < 0.0 { 0.0 } else { -(-self.rate * t).exp_m1() }
    }

    /// Equation 3, N(T): the mean number of other users with an entry within `t` seconds.
    ///
    /// The mean of a binomial distribution: the paper's sum over the users is (N - 1) F(T).
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
        (f64::from(self.users) - 1.0) * self.think_time_cdf(t)
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

    /// Equation 5: PCBs in front of the PCB of an entry, in the list that moves to the front.
    ///
    /// They belong to the other users who sent a packet while this one thought for T seconds: an
    /// entry, or the acknowledgement of an entry made R earlier. Such entries were made within 2T
    /// seconds if T is below R, and within T + R otherwise. So the result is the mean of N(2T) or
    /// N(T + R) over the density of T.
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

    /// N(2R): PCBs in front of the PCB of an acknowledgement, in the list that moves to the front.
    ///
    /// They belong to the users who sent an entry or an acknowledgement while this one waited:
    /// these made an entry within 2R.
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

    /// Equation 6: PCBs in front of the PCB of a packet, in the list that moves to the front.
    ///
    /// The paper compares this with [`bsd`](Self::bsd), although one more PCB is examined.
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

    /// Equation 5': PCBs in front of the PCB of an entry, in the list that moves to the front,
    /// where users enter nothing while they wait.
    ///
    /// They belong to the other users who sent a packet while this one thought for T seconds.
    /// Another user sent none if it thought all that time, with probability e^(-aT) / (1 + aR), or
    /// waited all that time, with probability a (R - T) / (1 + aR) if T is below R. The mean over
    /// the density of T is (N - 1) (1 - (aR - 1/2 + e^(-aR)) / (1 + aR)).
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

    /// PCBs in front of the PCB of an acknowledgement, in the list that moves to the front, where
    /// users enter nothing while they wait: (N - 1) (1 - e^(-aR) / (1 + aR)).
    ///
    /// Another user sent no packet while this one waited if it thought all that time.
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

    /// Equation 6': PCBs in front of the PCB of a packet, in the list that moves to the front,
    /// where users enter nothing while they wait.
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

    /// Equations 7 and 8: PCBs that Sequent's chains examine per packet, if packets arrive in
    /// random order.
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

    /// The hit ratio of the cached PCBs of Sequent's chains, if packets arrive in random order:
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

    /// Equation 9, p: the probability that no other packet of the chain arrives between an entry
    /// and its acknowledgement, whose PCB is then cached.
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

    /// Equation 10: PCBs that Sequent's chains examine per acknowledgement, without the probe that
    /// misses.
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

    /// Equation 11: PCBs that Sequent's chains examine per packet, without the probe of an
    /// acknowledgement that misses.
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

    /// Equation 10': PCBs that Sequent's chains examine per acknowledgement, with every
    /// probe.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2)?;
    /// let missed = bank.sequent_ack_counting_the_probe() - bank.sequent_ack();
    /// assert!((missed - (1.0 - bank.train_probability())).abs() < 1e-9);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent_ack_counting_the_probe(self) -> f64 {
        1.0 + (1.0 - self.train_probability()) * self.miss_scan()
    }

    /// Equation 11': PCBs that Sequent's chains examine per packet, with every probe.
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

    /// N/H, but at least 1: a chain that is searched has a PCB.
    fn chain_length(self) -> f64 {
        (f64::from(self.users) / f64::from(self.chains)).max(1.0)
    }

    /// The mean number of PCBs examined to find one in its chain.
    fn miss_scan(self) -> f64 {
        (self.chain_length() + 1.0) / 2.0
    }
}
