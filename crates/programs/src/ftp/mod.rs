//! A firewall for FTP: data connections that are expected, since control connections announce them.
//!
//! ```text
//!     session ─► segment ─► Firewall: FlowCache, Expectations ─► Report
//!     packets              announcement: the socket in a payload
//! ```

pub mod announcement;
pub mod firewall;
pub mod options;
pub mod report;
pub mod segment;
pub mod session;
