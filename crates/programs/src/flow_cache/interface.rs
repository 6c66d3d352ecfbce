//! The packets of a network interface, as the bytes of a pcap that has no end.
//!
//! A packet socket of Linux delivers a copy of each packet that the interface sends or receives.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// An opened interface.
pub(crate) struct Interface {
    pub(crate) bytes: Box<dyn Read>,
    /// Packets that the kernel has dropped, since the program was too slow.
    pub(crate) dropped: Rc<Cell<u64>>,
}

/// Opens an interface.
///
/// # Errors
///
/// If there is no such interface, its link type is unknown, or the process has no permission.
#[cfg(all(feature = "interface", target_os = "linux"))]
pub(crate) fn open(name: &str) -> io::Result<Interface> {
    let packets = packets::Packets::open(name)?;
    let dropped = packets.dropped();
    Ok(Interface { bytes: Box::new(packets), dropped })
}

/// Fails: the program was built without packet sockets.
#[cfg(not(all(feature = "interface", target_os = "linux")))]
pub(crate) fn open(_: &str) -> io::Result<Interface> {
    Err(io::Error::other("needs Linux, and a build with `--features interface`"))
}

#[cfg(all(feature = "interface", target_os = "linux"))]
mod packets {
    use std::cell::Cell;
    use std::io::{self, IoSliceMut, Read};
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::rc::Rc;
    use std::time::{Duration, SystemTime};

    use nix::errno::Errno;
    use nix::libc;
    use nix::sys::socket::{
        AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
        bind, recvmsg, setsockopt, socket, sockopt,
    };
    use nix::sys::time::TimeSpec;

    use crate::input::is_readable;

    /// A packet socket, read as a pcap with nanoseconds.
    pub(super) struct Packets {
        socket: OwnedFd,
        at: LinkAddr,
        /// Buffers for a message: its first bytes, and its control messages.
        packet: Vec<u8>,
        control: Vec<u8>,
        /// Bytes of the pcap, and how many of them were read.
        pcap: Vec<u8>,
        read: usize,
        dropped: Rc<Cell<u64>>,
        /// The counter of the kernel, which has 32 bits.
        dropped_before: u32,
    }

    impl Packets {
        /// Bytes of a packet that are read: the headers.
        const SNAP_LEN: usize = 512;

        /// Bytes of packets that wait in the kernel, at most.
        const QUEUE: usize = 32 << 20;

        pub(super) fn open(name: &str) -> io::Result<Self> {
            let at = address(name)?;
            let link = link_type(at.hatype())?;
            let flags = SockFlag::SOCK_CLOEXEC;
            let all = SockProtocol::EthAll;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, all)?;
            bind(socket.as_raw_fd(), &at)?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            setsockopt(&socket, sockopt::RxqOvfl, &1)?;
            // Beyond the limit of the system only with a further permission.
            if setsockopt(&socket, sockopt::RcvBufForce, &Self::QUEUE).is_err() {
                setsockopt(&socket, sockopt::RcvBuf, &Self::QUEUE)?;
            }
            let packet = vec![0; Self::SNAP_LEN];
            let control = nix::cmsg_space!(TimeSpec, u32);
            let (pcap, dropped) = (header(link), Rc::default());
            Ok(Self { socket, at, packet, control, pcap, read: 0, dropped, dropped_before: 0 })
        }

        pub(super) fn dropped(&self) -> Rc<Cell<u64>> {
            Rc::clone(&self.dropped)
        }

        /// Appends the next packet to the pcap. Returns whether there was one.
        fn receive(&mut self) -> io::Result<bool> {
            let mut parts = [IoSliceMut::new(&mut self.packet)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let socket = self.socket.as_raw_fd();
            let message =
                match recvmsg::<LinkAddr>(socket, &mut parts, Some(&mut self.control), flags) {
                    Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
                    message => message?,
                };
            let mut time = None;
            for part in message.cmsgs()? {
                match part {
                    ControlMessageOwned::ScmTimestampns(at) => time = Some(Duration::from(at)),
                    ControlMessageOwned::RxqOvfl(count) => {
                        let more = count.wrapping_sub(self.dropped_before);
                        self.dropped.set(self.dropped.get() + u64::from(more));
                        self.dropped_before = count;
                    }
                    _ => {}
                }
            }
            // Before it was bound, the socket received the packets of all interfaces. A packet of
            // the loopback interface is sent, and then received.
            let is_counted = message.address.is_none_or(|from| {
                from.ifindex() == self.at.ifindex()
                    && (self.at.hatype() != libc::ARPHRD_LOOPBACK
                        || from.pkttype() != libc::PACKET_OUTGOING)
            });
            let length = message.bytes;
            if is_counted {
                self.append(time, length);
            }
            Ok(true)
        }

        /// Appends a record with the buffered packet, which had this length.
        fn append(&mut self, time: Option<Duration>, length: usize) {
            let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let time = time.unwrap_or_else(|| now().unwrap_or_default());
            let packet = &self.packet[..length.min(Self::SNAP_LEN)];
            // A time has 32 bits in a pcap, until 2106.
            let seconds = time.as_secs() as u32;
            for field in [seconds, time.subsec_nanos(), packet.len() as u32, length as u32] {
                self.pcap.extend(field.to_be_bytes());
            }
            self.pcap.extend(packet);
        }
    }

    impl Read for Packets {
        /// Reads packets that have arrived; waits for one for a limited time.
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.read == self.pcap.len() {
                self.pcap.clear();
                self.read = 0;
                if !is_readable(&self.socket)? {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                while self.pcap.len() < buffer.len() && self.receive()? {}
                if self.pcap.is_empty() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
            let rest = &self.pcap[self.read..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.read += count;
            Ok(count)
        }
    }

    /// Returns the address of an interface.
    fn address(name: &str) -> io::Result<LinkAddr> {
        let mut all = nix::ifaddrs::getifaddrs()?.filter(|one| one.interface_name == name);
        let address = all.find_map(|one| one.address?.as_link_addr().copied());
        address.ok_or_else(|| io::Error::other("there is no such interface"))
    }

    /// Returns the link type of the packets of an interface with hardware addresses of this type.
    fn link_type(hardware: u16) -> io::Result<u32> {
        const ETHERNET: u32 = 1;
        const RAW: u32 = 101;
        match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(ETHERNET),
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT
            | libc::ARPHRD_IPGRE => Ok(RAW),
            other => {
                let why = format!("its hardware type {other} is not supported; use tcpdump");
                Err(io::Error::other(why))
            }
        }
    }

    /// Returns the header of a pcap with nanoseconds.
    fn header(link: u32) -> Vec<u8> {
        let fields = [0xa1b2_3c4d, 2 << 16 | 4, 0, 0, Packets::SNAP_LEN as u32, link];
        fields.into_iter().flat_map(u32::to_be_bytes).collect()
    }
}
