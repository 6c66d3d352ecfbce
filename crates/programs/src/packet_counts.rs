//! Packets of captures, counted: how many have a flow, and why the others have none.

use std::collections::{BTreeMap, BTreeSet};

use capture::{NotIp, Packet, Reject};

use crate::counts::form;
use crate::program::failure::{Failure, Kind};

/// Counts of packets with and without a flow.
#[derive(Clone, Debug, Default)]
pub struct PacketCounts {
    all: u64,
    /// Packets without a flow, by reason.
    rejects: BTreeMap<Reject, u64>,
    /// The first link types of packets without a flow.
    links: BTreeSet<u16>,
}

impl PacketCounts {
    /// Maximum number of reasons that are counted apart: a crafted capture has many protocols.
    const MAX_REASONS: usize = 1000;

    /// Number of protocols and link types that a message names.
    const SHOWN: usize = 3;

    /// Number of unusable packets that are tolerated in a capture of many.
    const FEW: u64 = 10;

    /// Counts a packet with a flow.
    #[inline]
    pub const fn count_usable(&mut self) {
        self.all += 1;
    }

    /// Counts a packet of this link type, and returns it if it has a flow.
    #[inline]
    pub fn count<'a>(
        &mut self,
        packet: &'a Result<Packet, Reject>,
        link: u16,
    ) -> Option<&'a Packet> {
        self.count_usable();
        packet.as_ref().map_err(|reason| self.reject(*reason, link)).ok()
    }

    fn reject(&mut self, reason: Reject, link: u16) {
        if self.links.len() < Self::SHOWN {
            self.links.insert(link);
        }
        let is_new = !self.rejects.contains_key(&reason);
        let reason = match is_new && self.rejects.len() >= Self::MAX_REASONS {
            true => Reject::NotIp(NotIp::Other),
            false => reason,
        };
        *self.rejects.entry(reason).or_default() += 1;
    }

    /// Returns the reasons of packets without a flow, each with its number of packets.
    pub fn rejects(&self) -> impl Iterator<Item = (Reject, u64)> {
        self.rejects.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Returns the number of packets without a flow for such a reason.
    pub fn rejected(&self, is_such: impl Fn(Reject) -> bool) -> u64 {
        self.rejects().filter(|(reason, _)| is_such(*reason)).map(|(_, count)| count).sum()
    }

    /// Returns a failure if a part of the packets that matters could not be used. Protocols that
    /// never carry IP do not matter.
    pub fn verdict(&self) -> Result<(), Failure> {
        match self.unsupported() {
            Some(why) => Err(Failure::new(Kind::Input, why)),
            None => Ok(()),
        }
    }

    fn unsupported(&self) -> Option<String> {
        let links = self.rejects.keys().filter_map(|reason| match reason {
            Reject::UnknownLink(link) => Some(link.to_string()),
            _ => None,
        });
        let links: Vec<String> = links.collect();
        if !links.is_empty() {
            return Some(format!("link types that are not supported: {}", links.join(", ")));
        }
        let unknown = self.rejected(Reject::is_unknown);
        // A few are tolerated, unless there is little else.
        let tolerated = (self.all / 2).min(Self::FEW.max(self.all / 100));
        if unknown > tolerated {
            let kinds = self.rejects.keys().filter(|reason| reason.is_unknown());
            let kinds: Vec<String> = kinds.take(Self::SHOWN).map(Reject::to_string).collect();
            let kinds = kinds.join(", ");
            return Some(format!("{unknown} packets of protocols that are not supported: {kinds}"));
        }
        let malformed = self.rejected(Reject::is_malformed);
        if malformed > Self::FEW && malformed > self.all / 2 {
            return Some(format!("{malformed} packets are malformed, or of another link type"));
        }
        self.without_ip()
    }

    /// Returns a message if there is no IP, but frames that look like one of another link type, and
    /// next to no known protocol.
    fn without_ip(&self) -> Option<String> {
        // Zeros look like a null SAP.
        const NULL: Reject = Reject::NotIp(NotIp::Sap(0));
        let all = self.all;
        let doubtful = self.rejected(|reason| reason == NULL || reason.is_unknown());
        let malformed = self.rejected(Reject::is_malformed);
        let rejected = self.rejected(|_| true);
        let known = rejected - doubtful - malformed;
        if rejected < all || doubtful == 0 || known > all / 100 {
            return None;
        }
        let packets = form(all, "packet", "packets");
        let links: Vec<String> = self.links.iter().map(u16::to_string).collect();
        Some(match &links[..] {
            [link] => format!("no IP in {all} {packets}: is link type {link} right?"),
            links => {
                let links = links.join(", ");
                format!("no IP in {all} {packets}: are link types {links} right?")
            }
        })
    }
}
