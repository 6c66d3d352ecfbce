//! Workloads of Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, 2006.

pub mod traffic;
