//! What the machine says of itself. Where it says nothing, so do we.

use std::fs::read_to_string;

/// Its processor and its pages.
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

/// The pages that memory comes in.
fn pages() -> String {
    let modes = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    match modes.split(['[', ']']).nth(1) {
        Some("always") => "2 MiB pages where they fit (always)".into(),
        Some(mode) => format!("4 KiB pages ({mode}; nobody here asks for larger ones)"),
        None => "unknown pages".into(),
    }
}

/// Pages that the process gets by touching them while it does something, as far as the system tells.
pub fn page_faults_of(work: impl FnOnce()) -> u64 {
    let before = page_faults();
    work();
    page_faults().zip(before).map_or(0, |(after, before)| after - before)
}

/// Pages that this process has got by touching them.
pub fn page_faults() -> Option<u64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // Behind the name in brackets, which may be anything, the tenth of all fields is the eighth.
    stat.rsplit_once(") ")?.1.split(' ').nth(7)?.parse().ok()
}
