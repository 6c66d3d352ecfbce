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
//! | 2 | F(T) = 1 - e^(-aT) | |
//! | 3 | N(T) = (N - 1) (1 - e^(-aT)) | [`users_within`](Tpca::users_within) |
//! | 4 | f(T) = a e^(-aT) | |
//! | 5 | (N - 1) (2/3 - e^(-3aR) / 6) | [`move_to_front`](Tpca::move_to_front): `entry` |
//! | | N(2R) | `ack` |
//! | 6 | the mean of these two | `mean` |
//! | 7, 8 | Sequent: 1 + (N² - H²) / 2NH | [`sequent`](Tpca::sequent): `entry` |
//! | 9 | p = e^(-2aR (N/H - 1)) | [`train_probability`](Tpca::train_probability) |
//! | 10 | p + (1 - p) (N/H + 1) / 2 | [`sequent`](Tpca::sequent): `ack` |
//! | 11 | the mean of 8 and 10 | `mean` |
//!
//! Primed equations are corrections of ours:
//!
//! | | corrects | method |
//! |--:|---|---|
//! | 5' | 5: users enter nothing while they wait | [`move_to_front_in_a_closed_loop`]: `entry` |
//! | | N(2R), likewise | `ack` |
//! | 6' | 6: the mean of these two | `mean` |
//! | 10' | 10: counts the probe that misses | [`sequent_counting_the_probe`]: `ack` |
//! | 11' | 11: the mean of 8 and 10' | `mean` |
//!
//! [`move_to_front_in_a_closed_loop`]: Tpca::move_to_front_in_a_closed_loop
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
//! use flowtable::demux::analysis::Tpca;
//!
//! let bank = Tpca::new(2000, 0.2);
//! assert_eq!(bank.bsd().round(), 1001.0);
//! assert_eq!(bank.move_to_front().mean().round(), 549.0);
//! assert_eq!(bank.sequent().mean().round(), 53.0);
//! // More chains save more than any reordering.
//! assert!(Tpca { chains: 100, ..bank }.sequent().mean() < 9.0);
//! ```
//!
//! # Paper
//!
//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets* (1992), section 3.

/// The default number of chains: the paper's.
const CHAINS: u32 = 19;
/// The default transactions per second of thinking: in TPC/A, users think for ten seconds.
const RATE: f64 = 0.1;

/// A TPC/A workload: users, their rate, the response time, and the number of hash chains.
///
/// Times are in seconds, costs in PCBs per packet. The [module](self) lists the equations, which
/// are not numbers outside the ranges of the fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tpca {
    /// N, at least 1.
    pub users: u32,
    /// R, not negative.
    pub response_time: f64,
    /// a, the transactions of a user per second of thinking, positive.
    pub rate: f64,
    /// H, at least 1. Chains in excess of the number of users are empty, and ignored.
    pub chains: u32,
}

/// The costs of a transaction: PCBs that are examined for its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// The cost of an entry.
    pub entry: f64,
    /// The cost of an acknowledgement.
    pub ack: f64,
}

impl Costs {
    /// Returns the cost per packet.
    #[must_use]
    pub const fn mean(self) -> f64 {
        (self.entry + self.ack) / 2.0
    }
}

impl Tpca {
    /// Creates a workload of `users` (N) with a response time in seconds (R), 0.1 transactions per
    /// second and user, and 19 chains.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::analysis::Tpca;
    ///
    /// // Costs depend on the product of rate and time only.
    /// let (bank, hasty) = (Tpca::new(2000, 0.2), Tpca { rate: 0.2, ..Tpca::new(2000, 0.1) });
    /// assert!((hasty.move_to_front().mean() - bank.move_to_front().mean()).abs() < 1e-9);
    /// // Chains without a user cost nothing.
    /// let few = Tpca::new(10, 0.2);
    /// assert_eq!([10, 1000].map(|chains| Tpca { chains, ..few }.sequent().mean()), [1.0; 2]);
    /// ```
    #[must_use]
    pub const fn new(users: u32, response_time: f64) -> Self {
        Self { users, response_time, rate: RATE, chains: CHAINS }
    }

    /// Equation 1: PCBs that BSD's list examines per packet.
    ///
    /// It examines the cached PCB, and in N - 1 of N cases half of the list.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// assert_eq!(Tpca::new(1, 0.2).bsd(), 1.0);
    /// assert_eq!(Tpca::new(2000, 0.2).bsd().round(), 1001.0);
    /// ```
    #[must_use]
    pub fn bsd(self) -> f64 {
        let users = f64::from(self.users);
        1.0 + (users - 1.0) / users * (users + 1.0) / 2.0
    }

    /// Equation 3, N(T): the mean number of other users with an entry within `t` seconds, which are
    /// not negative.
    ///
    /// The mean of a binomial distribution: the paper's sum over the users is (N - 1) F(T), where
    /// F(T) is the probability that a user thinks for less than T seconds (equation 2).
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2);
    /// assert_eq!(bank.users_within(10.0).round(), 1264.0);
    /// assert_eq!(bank.users_within(f64::INFINITY), 1999.0);
    /// ```
    #[must_use]
    pub fn users_within(self, t: f64) -> f64 {
        self.others() * -(-self.rate * t).exp_m1()
    }

    /// Equations 5 and 6, and N(2R): PCBs in front of the PCB of a packet, in the list that moves
    /// to the front.
    ///
    /// The PCBs in front of the PCB of an entry belong to the other users who sent a packet while
    /// this one thought for T seconds: an entry, or the acknowledgement of an entry made R earlier.
    /// Such entries were made within 2T seconds if T is below R, and within T + R otherwise. So the
    /// result is the mean of N(2T) or N(T + R) over the density of T (equation 4).
    ///
    /// The PCBs in front of the PCB of an acknowledgement belong to the users who sent an entry or
    /// an acknowledgement while this one waited: these made an entry within 2R.
    ///
    /// The paper compares the mean with [`bsd`](Self::bsd), although one more PCB is examined.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let front = Tpca::new(2000, 0.2).move_to_front();
    /// assert_eq!([front.entry, front.ack, front.mean()].map(f64::round), [1019.0, 78.0, 549.0]);
    /// ```
    #[must_use]
    pub fn move_to_front(self) -> Costs {
        let entry = self.others() * (2.0 / 3.0 - (-3.0 * self.waiting()).exp() / 6.0);
        Costs { entry, ack: self.users_within(2.0 * self.response_time) }
    }

    /// Equations 5' and 6': PCBs in front of the PCB of a packet, in the list that moves to the
    /// front, where users enter nothing while they wait.
    ///
    /// The PCBs in front of the PCB of an entry belong to the other users who sent a packet while
    /// this one thought for T seconds. Another user sent none if it thought all that time, with
    /// probability e^(-aT) / (1 + aR), or waited all that time, with probability
    /// a (R - T) / (1 + aR) if T is below R. The mean over the density of T is
    /// (N - 1) (1 - (aR - 1/2 + e^(-aR)) / (1 + aR)). For an acknowledgement, another user sent no
    /// packet while this one waited if it thought all that time: (N - 1) (1 - e^(-aR) / (1 + aR)).
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let slow = Tpca::new(2000, 2.0);
    /// assert_eq!(slow.move_to_front_in_a_closed_loop().mean().round(), 885.0);
    /// assert_eq!(slow.move_to_front().mean().round(), 904.0);
    /// ```
    #[must_use]
    pub fn move_to_front_in_a_closed_loop(self) -> Costs {
        let waiting = self.waiting();
        let silent = (-waiting).exp();
        let entry = self.others() * (1.0 - (waiting - 0.5 + silent) / (1.0 + waiting));
        Costs { entry, ack: self.others() * (1.0 - silent / (1.0 + waiting)) }
    }

    /// Equations 7, 8, 10 and 11: PCBs that Sequent's chains examine per packet, without the probe
    /// of an acknowledgement that misses.
    ///
    /// An entry costs as much as any packet if packets arrive in random order.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2);
    /// let chains = bank.sequent();
    /// let tenths = [chains.entry, chains.ack, chains.mean()].map(|cost| (10.0 * cost).round());
    /// assert_eq!(tenths, [536.0, 523.0, 530.0]);
    /// // A single chain is BSD's list.
    /// assert_eq!(Tpca { chains: 1, ..bank }.sequent().entry, bank.bsd());
    /// ```
    #[must_use]
    pub fn sequent(self) -> Costs {
        let counting = self.sequent_counting_the_probe();
        // An acknowledgement that misses has one probe more.
        Costs { ack: counting.ack - (1.0 - self.train_probability()), ..counting }
    }

    /// Equations 10' and 11': PCBs that Sequent's chains examine per packet, with every probe.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let cost = Tpca::new(2000, 0.2).sequent_counting_the_probe().mean();
    /// assert_eq!((10.0 * cost).round(), 535.0);
    /// ```
    #[must_use]
    pub fn sequent_counting_the_probe(self) -> Costs {
        let length = chain_length(self.users, self.chains);
        let scan = (length + 1.0) / 2.0;
        let entry = 1.0 + (1.0 - 1.0 / length) * scan;
        Costs { entry, ack: 1.0 + (1.0 - self.train_probability()) * scan }
    }

    /// Equation 9, p: the probability that no other packet of the chain arrives between an entry
    /// and its acknowledgement, whose PCB is then cached.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::Tpca;
    /// let bank = Tpca::new(2000, 0.2);
    /// assert!((bank.train_probability() - 0.0154).abs() < 0.00005);
    /// assert!(Tpca { chains: 1, ..bank }.train_probability() < 1.9e-35);
    /// ```
    #[must_use]
    pub fn train_probability(self) -> f64 {
        (-2.0 * self.waiting() * (chain_length(self.users, self.chains) - 1.0)).exp()
    }

    /// N - 1.
    fn others(self) -> f64 {
        f64::from(self.users) - 1.0
    }

    /// aR.
    const fn waiting(self) -> f64 {
        self.rate * self.response_time
    }
}

/// N/H, but at least 1: a chain that is searched has a PCB.
fn chain_length(users: u32, chains: u32) -> f64 {
    (f64::from(users) / f64::from(chains)).max(1.0)
}

/// The paper's other experiment: connections set up all at once that send five messages each.
///
/// Each has 13 packets: three of the handshake, five messages, five acknowledgements. The paper
/// counts as if all PCBs existed from the first packet on, and none were cached.
///
/// # Example
///
/// ```
/// use flowtable::demux::analysis::ConnectionSetup;
///
/// // BSD took 906 seconds for 3600 connections, Sequent 193 for 5040.
/// let [bsd, sequent] =
///     [3600, 5040].map(|connections| ConnectionSetup { connections, chains: 19 });
/// assert_eq!((bsd.packets(), bsd.bsd()), (46_800, 84_240_000.0));
/// assert_eq!((sequent.packets(), sequent.sequent().round()), (65_520, 8_690_021.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSetup {
    /// n.
    pub connections: u32,
    /// H, at least 1.
    pub chains: u32,
}

impl ConnectionSetup {
    /// Packets per connection.
    const PACKETS: u64 = 13;

    /// Returns the packets of all connections.
    #[must_use]
    pub const fn packets(self) -> u64 {
        Self::PACKETS * self.connections as u64
    }

    /// PCBs that BSD's list examines for all packets: half of the list per packet.
    #[must_use]
    pub fn bsd(self) -> f64 {
        self.packets() as f64 * f64::from(self.connections) / 2.0
    }

    /// PCBs that Sequent's chains examine for all packets: half of a chain per packet, at least
    /// half a PCB.
    #[must_use]
    pub fn sequent(self) -> f64 {
        self.packets() as f64 * chain_length(self.connections, self.chains) / 2.0
    }
}
