//! The methods of `ConnectionId`: indices, the capacity, and memory.

use flowtable::demux::{
    Arrival::{Ack, Data},
    ConnectionId, Demux, DemuxError, NotFound, RejectedPcb,
};

#[test]
fn a_connection_id_is_an_index() {
    let mut connections = ConnectionId::new(10);
    connections.insert(9, 90).unwrap();
    connections.insert(0, 10).unwrap();
    assert_eq!(connections.len(), 2);
    for (id, pcb) in [(0, Some(10)), (1, None), (9, Some(90)), (10, None), (u32::MAX, None)] {
        for arrival in [Data, Ack] {
            let found = connections.lookup(&id, arrival);
            assert_eq!((found.pcb.copied(), found.examined), (pcb, u32::from(pcb.is_some())));
        }
    }
    assert_eq!(connections.remove(&10), Err(NotFound));
    assert_eq!(connections.remove(&9), Ok(90));
    assert_eq!(connections.remove(&9), Err(NotFound));
    assert_eq!(connections.len(), 1);
}

#[test]
fn a_connection_id_past_the_capacity_is_refused() {
    let refused = |connections: &mut ConnectionId<u32>, id| {
        let refused = connections.insert(id, 5).unwrap_err();
        assert_eq!(refused, RejectedPcb { refused: 5, reason: DemuxError::NoSuchId }, "{id}");
    };
    let mut none = ConnectionId::new(0);
    let mut ten = ConnectionId::new(10);
    for id in [10, 11, u32::MAX - 1, u32::MAX] {
        refused(&mut none, id);
        refused(&mut ten, id);
    }
    refused(&mut none, 0);
    // The greatest number is not an ID.
    refused(&mut ConnectionId::new(u32::MAX), u32::MAX);
    assert_eq!((none.len(), ten.len()), (0, 0));
    ten.insert(9, 5).unwrap();
}

#[test]
fn a_connection_id_is_refused_if_allocation_fails() {
    // 2^48 bytes exceed the address space of a process.
    let mut connections = ConnectionId::new(u32::MAX);
    let refused = connections.insert(u32::MAX - 1, [7_u8; 1 << 16]).unwrap_err();
    assert_eq!((refused.reason, refused.refused[0]), (DemuxError::NoMemory, 7));
    assert_eq!((connections.len(), connections.lookup(&(u32::MAX - 1), Data).pcb), (0, None));
    // Smaller IDs are accepted as before, and allocate for themselves only.
    connections.insert(3, [8; 1 << 16]).unwrap();
    assert_eq!(
        connections.insert(u32::MAX - 1, [9; 1 << 16]).unwrap_err().reason,
        DemuxError::NoMemory
    );
    assert_eq!(connections.remove(&3).map(|pcb| pcb[0]), Ok(8));
}
