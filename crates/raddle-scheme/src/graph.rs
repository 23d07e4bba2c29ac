//! Strongly connected components, without recursion.
//!
//! Tarjan, *Depth-First Search and Linear Graph Algorithms*, 1972, with the call stack made explicit: state graphs are
//! far deeper than any thread's stack.

/// The component of each node. Components are numbered in reverse topological order: an edge never leads from a
/// component to one with a higher number.
pub fn components(next: &[Vec<u32>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let count = next.len();
    let mut index = vec![UNSEEN; count];
    let mut low = vec![0u32; count];
    let mut component = vec![UNSEEN; count];
    let mut stack: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, usize)> = Vec::new();
    let (mut counter, mut found) = (0, 0);
    for root in 0..count as u32 {
        if index[root as usize] != UNSEEN {
            continue;
        }
        calls.push((root, 0));
        while let Some(&mut (node, ref mut at)) = calls.last_mut() {
            let v = node as usize;
            if *at == 0 {
                index[v] = counter;
                low[v] = counter;
                counter += 1;
                stack.push(node);
            }
            if let Some(&to) = next[v].get(*at) {
                *at += 1;
                if index[to as usize] == UNSEEN {
                    calls.push((to, 0));
                } else if component[to as usize] == UNSEEN {
                    low[v] = low[v].min(index[to as usize]);
                }
                continue;
            }
            calls.pop();
            if let Some(&(caller, _)) = calls.last() {
                low[caller as usize] = low[caller as usize].min(low[v]);
            }
            if low[v] == index[v] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: two nodes are in one component when each reaches the other.
    fn naive(next: &[Vec<u32>]) -> Vec<Vec<bool>> {
        let n = next.len();
        let mut reach = vec![vec![false; n]; n];
        for (v, row) in reach.iter_mut().enumerate() {
            let mut work = vec![v as u32];
            while let Some(node) = work.pop() {
                if !std::mem::replace(&mut row[node as usize], true) {
                    work.extend(&next[node as usize]);
                }
            }
        }
        reach
    }

    #[test]
    fn agrees_with_mutual_reachability() {
        let mut seed = 12345u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..500 {
            let n = 1 + random(9);
            let mut graph = vec![Vec::new(); n as usize];
            for _ in 0..random(20) {
                graph[random(n) as usize].push(random(n) as u32);
            }
            let (fast, slow) = (components(&graph), naive(&graph));
            for a in 0..n as usize {
                for b in 0..n as usize {
                    assert_eq!(fast[a] == fast[b], slow[a][b] && slow[b][a], "{graph:?}");
                }
                graph[a].iter().for_each(|&b| assert!(fast[b as usize] <= fast[a], "{graph:?}"));
            }
        }
    }

    #[test]
    fn a_long_path_needs_no_stack() {
        let n = 1_000_000;
        let graph: Vec<Vec<u32>> = (0..n).map(|v| if v + 1 < n { vec![v + 1] } else { vec![] }).collect();
        assert_eq!(components(&graph).len(), n as usize);
    }
}
