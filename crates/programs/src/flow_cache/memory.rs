//! The memory of a run: what can be had is found out before the first packet.

use capture::Opening;
use flowtable::flow_cache::{Config, ConfigError};

use super::mac_table::MacTable;

/// Memory that a flow needs at most in the cache, of IPv4 or IPv6, without large slack: measured
/// with some millions of flows, 190 to 230 bytes.
const FLOW: usize = 256;

/// Memory that a flow needs at the end, when flows are sorted by time.
const SORTED: usize = 24;

/// Memory for anything but the cache and the captures, such as buffers of the outputs.
const BUFFERS: usize = 8 << 20;

/// Memory of each of several workers: its queues, and its part of the others.
const WORKER: usize = 1 << 20;

/// A number of bytes, and how it was given.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) bytes: usize,
    pub(crate) text: String,
}

/// The memory that a run asks for.
pub(crate) struct Demand {
    /// Number of captures that may be open.
    pub(crate) captures: usize,
    /// Whether one of them may be compressed.
    pub(crate) is_compressed: bool,
    pub(crate) workers: usize,
    pub(crate) max_memory: Option<Limit>,
    /// Whether records have MAC addresses, which are in a table beside the cache.
    pub(crate) has_macs: bool,
    /// Whether the number of flows is a request, and not the default.
    pub(crate) is_capacity_given: bool,
}

impl Demand {
    /// Returns the length of the buffer of each capture: all of them have an eighth of the memory
    /// of the run at most, or 64 MiB, since all may be open at the same time.
    pub(crate) fn buffer_len(&self) -> usize {
        let all = self.max_memory.as_ref().map_or(64 << 20, |most| most.bytes / 8);
        (all / self.captures.max(1)).clamp(1 << 12, Opening::BUFFER)
    }

    /// Returns the memory of the largest decoder that is accepted: a quarter of the memory of the
    /// run, if that is limited.
    pub(crate) fn decoder_len(&self) -> usize {
        let quarter = |most: &Limit| (most.bytes / 4).max(Opening::BLOCK_DECODER);
        let limited = self.max_memory.as_ref().map(quarter);
        limited.map_or(Opening::WINDOW_DECODER, |memory| memory.min(Opening::WINDOW_DECODER))
    }

    /// Returns the memory for the buffers of all captures.
    fn buffers_len(&self) -> usize {
        self.captures * (self.buffer_len() + Opening::DECODER)
    }

    /// Returns the configuration of the cache with a memory limit that can be kept.
    ///
    /// # Errors
    ///
    /// A line with numbers, if the limit is too low, or if the memory for a requested capacity
    /// cannot be had.
    pub(crate) fn limited(&self, config: Config) -> Result<Config, String> {
        let invalid = |error: ConfigError| format!("memory: {error}");
        let workers = self.workers;
        let buffers = BUFFERS + self.buffers_len() + if workers > 1 { workers * WORKER } else { 0 };
        let wanted = buffers.saturating_add(config.flows().saturating_mul(FLOW + self.beside()));
        if let Some(Limit { bytes, text }) = &self.max_memory {
            let most = *bytes;
            let mut least = buffers + workers * Config::MIN_BYTES;
            if self.is_compressed {
                // The decoder has a quarter.
                least = (least + Opening::BLOCK_DECODER).max(least / 3 * 4 + 4);
            }
            if most <= least {
                return Err(format!("--max-memory {text}: must be more than {least} bytes"));
            }
            can_be_had(wanted.min(most)).map_err(|available| {
                format!("--max-memory {text}: only about {available} bytes are available")
            })?;
            let decoder = if self.is_compressed { self.decoder_len() } else { 0 };
            let for_cache = self.for_cache(most - buffers - decoder);
            return config.with_max_bytes(for_cache).map_err(invalid);
        }
        match can_be_had(wanted) {
            Ok(()) => Ok(config),
            Err(available) if self.is_capacity_given => {
                let flows = config.flows();
                Err(format!(
                    "--capacity {flows}: needs about {wanted} bytes, and about {available} are \
                     available (--max-memory limits the use of memory)"
                ))
            }
            Err(available) => {
                let available = available.saturating_sub(buffers);
                config.with_max_bytes(self.for_cache(available)).map_err(invalid)
            }
        }
    }

    /// Returns the memory that a flow needs beside the cache.
    const fn beside(&self) -> usize {
        SORTED + if self.has_macs { MacTable::FLOW } else { 0 }
    }

    /// Returns the part of the memory that the caches may use.
    fn for_cache(&self, bytes: usize) -> usize {
        (bytes / (FLOW + self.beside()) * FLOW).max(self.workers * Config::MIN_BYTES)
    }
}

/// Tries to allocate this much memory, which is not touched.
///
/// # Errors
///
/// The memory that can be had, within a factor of two.
fn can_be_had(bytes: usize) -> Result<(), usize> {
    let is_there = |bytes: usize| Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if is_there(bytes) {
        return Ok(());
    }
    let mut less = bytes / 2;
    while less > 0 && !is_there(less) {
        less /= 2;
    }
    Err(less)
}
