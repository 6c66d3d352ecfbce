//! The name of the CPU, the size of pages, and page faults, as far as the system provides them.

use std::fs::read_to_string;

/// Returns the CPU and the kind of pages.
pub fn name() -> String {
    format!("{}; {}", cpu(), pages())
}

fn cpu() -> String {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown CPU");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.trim())
}

/// Returns the mode of transparent huge pages.
fn pages() -> String {
    let modes = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    match modes.split(['[', ']']).nth(1) {
        Some("always") => "2 MiB pages where they fit (always)".into(),
        Some(mode) => format!("4 KiB pages ({mode}; larger ones are not requested)"),
        None => "unknown pages".into(),
    }
}

/// Returns the page faults during `work`; 0 where the system does not provide them.
pub fn page_faults_of(work: impl FnOnce()) -> u64 {
    let before = page_faults();
    work();
    page_faults().zip(before).map_or(0, |(after, before)| after - before)
}

/// Returns the minor page faults of this process.
pub fn page_faults() -> Option<u64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // The tenth field. Counting starts after the name in brackets, which may contain spaces.
    stat.rsplit_once(") ")?.1.split(' ').nth(7)?.parse().ok()
}
