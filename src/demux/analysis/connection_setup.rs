//! The experiment in which thousands of connections are set up at once.

use super::{CHAINS, TpcaError};

/// The paper's other experiment: connections that are set up all at once and send five messages each.
///
/// Each takes 13 packets: three to set it up, five messages, five acknowledgements. The paper counts each of them
/// as if all PCBs were there from the first one on, and none were remembered.
///
/// # Example
///
/// ```
/// use flowtable::demux::analysis::{ConnectionSetup, TpcaError};
///
/// // What took BSD 906 seconds for 3600 connections, and Sequent 193 for 5040.
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
    /// Packets of a connection.
    const PACKETS: u64 = 13;

    /// So many connections, in 19 chains.
    ///
    /// # Errors
    ///
    /// If there are no connections.
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

    /// The same with so many chains.
    ///
    /// # Errors
    ///
    /// If there are none.
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

    /// Packets of all connections.
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

    /// PCBs that BSD's list examines for all packets: half of the list for each.
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

    /// PCBs that Sequent's chains examine for all packets: half of a chain for each, and at least half a PCB.
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
