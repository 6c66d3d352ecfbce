//! The connection setup experiment: thousands of connections at once.

use super::{CHAINS, TpcaError};

/// The paper's other experiment: connections set up all at once that send five messages each.
///
/// Each has 13 packets: three of the handshake, five messages, five acknowledgements. The paper
/// counts as if all PCBs existed from the first packet on, and none were cached.
///
/// # Example
///
/// ```
/// use flowtable::demux::analysis::{ConnectionSetup, TpcaError};
///
/// // BSD took 906 seconds for 3600 connections, Sequent 193 for 5040.
/// let (bsd, sequent) = (ConnectionSetup::new(3600)?, ConnectionSetup::new(5040)?);
/// assert_eq!((bsd.packets(), bsd.bsd()), (46_800, 84_240_000.0));
/// assert_eq!((sequent.packets(), sequent.sequent().round()), (65_520, 8_690_021.0));
/// # Ok::<(), TpcaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSetup {
    /// n, at least 1.
    connections: u32,
    /// H, at least 1.
    chains: u32,
}

impl ConnectionSetup {
    /// Packets per connection.
    const PACKETS: u64 = 13;

    /// Creates an experiment with `connections` (n) and 19 chains.
    ///
    /// # Errors
    ///
    /// If `connections` is zero.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::{ConnectionSetup, TpcaError};
    /// assert_eq!(ConnectionSetup::new(0), Err(TpcaError::NoUsers));
    /// ```
    pub const fn new(connections: u32) -> Result<Self, TpcaError> {
        if connections == 0 {
            return Err(TpcaError::NoUsers);
        }
        Ok(Self { connections, chains: CHAINS })
    }

    /// Sets the number of chains (H).
    ///
    /// # Errors
    ///
    /// If `chains` is zero.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::{ConnectionSetup, TpcaError};
    /// let setup = ConnectionSetup::new(3600)?;
    /// assert_eq!(setup.with_chains(1)?.sequent(), setup.bsd());
    /// assert_eq!(setup.with_chains(0), Err(TpcaError::NoChains));
    /// # Ok::<(), TpcaError>(())
    /// ```
    pub const fn with_chains(self, chains: u32) -> Result<Self, TpcaError> {
        if chains == 0 {
            return Err(TpcaError::NoChains);
        }
        Ok(Self { chains, ..self })
    }

    /// Returns the packets of all connections.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::ConnectionSetup;
    /// assert_eq!(ConnectionSetup::new(3600)?.packets(), 46_800);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub const fn packets(self) -> u64 {
        Self::PACKETS * self.connections as u64
    }

    /// PCBs that BSD's list examines for all packets: half of the list per packet.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::ConnectionSetup;
    /// assert_eq!(ConnectionSetup::new(3600)?.bsd(), 84.24e6);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn bsd(self) -> f64 {
        self.packets() as f64 * f64::from(self.connections) / 2.0
    }

    /// PCBs that Sequent's chains examine for all packets: half of a chain per packet, at least
    /// half a PCB.
    ///
    /// # Example
    ///
    /// ```
    /// # use flowtable::demux::analysis::ConnectionSetup;
    /// assert_eq!((ConnectionSetup::new(5040)?.sequent() / 1e4).round(), 869.0);
    /// # Ok::<(), flowtable::demux::analysis::TpcaError>(())
    /// ```
    #[must_use]
    pub fn sequent(self) -> f64 {
        let chain = f64::from(self.connections) / f64::from(self.chains);
        self.packets() as f64 * chain.max(1.0) / 2.0
    }
}
