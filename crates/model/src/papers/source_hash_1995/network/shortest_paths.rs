//! Shortest paths, computed from the whole network at once: the reference for routers.

/// A directed link: from, to, cost.
pub type Edge = (usize, usize, u32);

/// Bellman-Ford: the cost from each router to the nearest of the owners, if one is reachable.
pub fn bellman_ford(routers: usize, edges: &[Edge], owners: &[usize]) -> Vec<Option<u32>> {
    let mut costs: Vec<Option<u32>> =
        (0..routers).map(|r| owners.contains(&r).then_some(0)).collect();
    for _ in 0..routers {
        for &(from, to, cost) in edges {
            if let Some(rest) = costs[to] {
                costs[from] = Some(costs[from].map_or(cost + rest, |own| own.min(cost + rest)));
            }
        }
    }
    costs
}

/// Floyd-Warshall: the cost between all pairs of routers.
pub fn floyd_warshall(routers: usize, edges: &[Edge]) -> Vec<Vec<Option<u32>>> {
    let mut costs = vec![vec![None; routers]; routers];
    for (r, row) in costs.iter_mut().enumerate() {
        row[r] = Some(0);
    }
    for &(from, to, cost) in edges {
        costs[from][to] = Some(costs[from][to].map_or(cost, |other: u32| other.min(cost)));
    }
    for via in 0..routers {
        for from in 0..routers {
            for to in 0..routers {
                if let (Some(first), Some(second)) = (costs[from][via], costs[via][to]) {
                    let sum = first + second;
                    costs[from][to] = Some(costs[from][to].map_or(sum, |other| other.min(sum)));
                }
            }
        }
    }
    costs
}
