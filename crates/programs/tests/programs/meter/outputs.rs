//! Output files: what is there is kept, and a full disk ends nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, announce, pcap, udp};

use super::signals::{LiveRun, wait_for};
use crate::run::{HEADER, Run};

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    folder
}

fn text(path: &Path) -> String {
    path.to_str().expect("the build folder has a name in UTF-8").to_owned()
}

/// Returns a capture with a flow of one packet at each of these seconds.
fn flows_at(seconds: impl Iterator<Item = u32>) -> Vec<u8> {
    let frames: Vec<_> = seconds.map(|second| (second, udp(second as u16, 53, 0))).collect();
    let records: Vec<_> = frames.iter().map(|(second, frame)| (*second, 0, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
}

fn run(capture: &[u8], arguments: &[&str]) -> Run {
    Run::piped(capture, usize::MAX, arguments)
}

/// Returns the names of the files in a folder, and their rows without the header.
fn files(folder: &Path) -> Vec<(String, usize)> {
    let entries = fs::read_dir(folder).expect("it is a folder").flatten();
    let mut files: Vec<_> = entries
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).expect("it is text");
            assert!(text.starts_with(HEADER) && text.ends_with('\n'), "{entry:?}: {text}");
            assert_eq!(text.matches("src").count(), 1, "{entry:?} has one header");
            (entry.file_name().to_string_lossy().into_owned(), text.lines().count() - 1)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn records_are_appended_to_what_is_there() {
    let folder = folder("records are appended");
    let names = ["flows.csv", "flows.json", "flows.ipfix"].map(|name| text(&folder.join(name)));
    let arguments = ["--csv", &names[0], "--json", &names[1], "--ipfix", &names[2]];
    let capture = flows_at(1..=5);
    let mut lengths = Vec::new();
    for times in 1..=2 {
        assert_eq!(run(&capture, &arguments).code, Some(0));
        let texts =
            [&names[0], &names[1]].map(|name| fs::read_to_string(name).expect("it is text"));
        assert_eq!(texts[0].lines().count(), 1 + 5 * times);
        assert_eq!(texts[0].matches(HEADER).count(), 1);
        assert_eq!(texts[1].lines().count(), 5 * times);
        lengths.push(fs::metadata(&names[2]).expect("it was written").len());
    }
    assert_eq!(lengths[1], 2 * lengths[0], "the templates come again");
    // All is replaced on request.
    assert_eq!(run(&capture, &[&arguments[..], &["--overwrite"]].concat()).code, Some(0));
    assert_eq!(fs::read_to_string(&names[0]).expect("it is text").lines().count(), 6);
    assert_eq!(fs::metadata(&names[2]).expect("it was written").len(), lengths[0]);
}

/// An earlier run was ended by a loss of power: its last row, or the first one, is cut.
#[test]
fn a_cut_end_is_moved_to_another_file() {
    let folder = folder("a cut end");
    let capture = flows_at(1..=5);
    for (option, unit) in [("--csv", "rows"), ("--json", "lines"), ("--ipfix", "messages")] {
        let name = text(&folder.join(unit));
        let aside = format!("{name}.cut");
        let append = || run(&capture, &[option, &name]);
        assert_eq!(append().code, Some(0));
        let whole = fs::read(&name).expect("it was written");
        for cut in [1, 2, 3, 20, whole.len() - 20, whole.len() - 1] {
            fs::write(&name, &whole[..cut]).expect("it can be written");
            let _ = fs::remove_file(&aside);
            let ended = append();
            let message = format!(
                "flow_cache: {option} {name}: the last {} bytes are no whole {unit}, and are \
                 moved to {aside}",
                fs::metadata(&aside).expect("it was written").len()
            );
            assert_eq!((ended.code, ended.errors()), (Some(0), vec![&message[..]]), "{cut}");
            let [kept, moved] = [&name, &aside].map(|name| fs::read(name).expect("a file"));
            let before = cut - moved.len();
            assert_eq!([&whole[..before], &moved].concat(), &whole[..cut], "{unit}");
            // Then as if the end had never been there.
            fs::write(&name, &whole[..before]).expect("it can be written");
            let ended = append();
            assert_eq!((ended.code, ended.errors()), (Some(0), vec![]), "{unit}");
            assert!(fs::read(&name).expect("a file") == kept, "{unit} {cut}");
        }
    }
}

#[test]
fn a_file_of_something_else_is_refused_and_kept() {
    let folder = folder("a file of something else");
    let path = folder.join("letters");
    for (option, content) in [
        ("--csv", "src,dst,proto,sport,dport,packets,ip_bytes,first_ns,last_ns\n1,2,3\n"),
        ("--json", "Dear Sir\n"),
        ("--ipfix", "Dear Madam\n"),
        ("--ipfix", "\0\x0a\0\x06ok\0\x0bno"),
        ("--json", "{\"flow\":1}\n"),
    ] {
        fs::write(&path, content).expect("it can be written");
        let refused = run(&flows_at(1..=5), &[option, &text(&path)]);
        refused.assert_refused("--overwrite replaces it");
        assert_eq!(fs::read_to_string(&path).expect("it is text"), content);
    }
}

#[test]
fn files_follow_each_other_by_time() {
    let folder = folder("files by time");
    let pattern = text(&folder.join("flows-%Y%m%d-%H%M%S.csv"));
    // From 2023-11-14 22:13:20 on: a packet each 10 s, and each flow ends after a second.
    let capture = flows_at((0..10).map(|number| 1_700_000_000 + 10 * number));
    let arguments = ["--csv", &pattern, "--rotate-time", "60", "--idle", "1"];
    let expected = |times: usize| {
        [("flows-20231114-221300.csv", 3), ("flows-20231114-221400.csv", 7)]
            .map(|(name, rows)| (name.to_owned(), times * rows))
    };
    for times in 1..=2 {
        let ended = run(&capture, &arguments);
        assert_eq!((ended.code, ended.errors()), (Some(0), vec![]), "{ended:?}");
        assert_eq!(files(&folder), expected(times));
    }
}

#[test]
fn folders_of_a_pattern_are_created() {
    let folder = folder("folders of a pattern");
    let pattern = text(&folder.join("%Y/%m-%d/%H%M.csv"));
    let capture = flows_at((0..10).map(|number| 1_700_000_000 + 10 * number));
    let ended = run(&capture, &["--csv", &pattern, "--rotate-time", "60", "--idle", "1"]);
    assert_eq!((ended.code, ended.errors()), (Some(0), vec![]), "{ended:?}");
    let expected = [("2213.csv", 3), ("2214.csv", 7)].map(|(name, rows)| (name.to_owned(), rows));
    assert_eq!(files(&folder.join("2023/11-14")), expected);
}

#[test]
fn files_follow_each_other_by_size() {
    let folder = folder("files by size");
    let name = text(&folder.join("flows.csv"));
    let capture = flows_at(1..=3000);
    let run = run(&capture, &["--csv", &name, "--rotate-size", "64K"]);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    let files = files(&folder);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.starts_with(&["flows.csv", "flows.csv.1", "flows.csv.2"]), "{names:?}");
    assert_eq!(files.iter().map(|(_, rows)| rows).sum::<usize>(), 3000);
    for name in &names[..names.len() - 1] {
        let length = fs::metadata(folder.join(name)).expect("it was written").len();
        assert!((64 << 10..192 << 10).contains(&length), "{name}: {length}");
    }
}

#[test]
fn options_of_files_that_cannot_be_used_are_refused() {
    for (arguments, words) in [
        (&["--csv", "a.csv", "--csv", "b.csv"][..], "--csv is given twice"),
        (&["--csv", "a.csv", "--rotate-time", "60"], "--csv a.csv: with --rotate-time, the name"),
        (&["--csv", "%Y", "--rotate-time", "60", "--overwrite"], "--overwrite cannot be used"),
        (&["--csv", "%!", "--rotate-time", "60"], "--csv %!: an unknown conversion behind %"),
        (&["--csv", "%Y", "--rotate-time", "60"], "--csv %Y: with --rotate-time, the name needs"),
        (&["--csv", "%H%M", "--rotate-time", "59"], "--csv %H%M: with --rotate-time, the name"),
        (&["--csv", "%H", "--rotate-time", "86400"], "--csv %H: with --rotate-time, the name"),
        (&["--csv", "no/%s", "--rotate-time", "60"], "--csv no/%s: there is no folder no"),
        (&["--csv", "no/f", "--rotate-size", "1M"], "--csv no/f: there is no folder no"),
        (&["--csv", "%s", "--json", "%s", "--rotate-time", "60"], "is the file of --csv"),
        (&["--rotate-time", "60"], "--rotate-time has no effect without a FILE of --csv,"),
        (&["--rotate-size", "1M", "--csv", "-"], "--rotate-size has no effect without a FILE"),
        (&["--overwrite", "--ipfix", "127.0.0.1:9"], "--overwrite has no effect without a FILE"),
        (&["--community-id"], "--community-id has no effect without --csv or --json"),
        (&["--mac"], "--mac has no effect without --csv, --json or --ipfix"),
        (&["--biflow", "--csv", "-"], "--biflow has no effect without --ipfix"),
        (&["--domain", "1"], "--domain has no effect without --ipfix"),
        (&["--message-size", "512"], "--message-size has no effect without --ipfix"),
        (&["--capacity", "7", "--threshold", "8"], "--capacity and --threshold are one option"),
        (&["--rotate-time", "0"], "--rotate-time 0: not from 1 to"),
        (&["--rotate-size", "1X"], "--rotate-size 1X: "),
        (&["--message-size", "100"], "--message-size 100: not from 256 to 65507"),
        (&["--domain", "-1"], "--domain -1: "),
    ] {
        run(&flows_at(1..=5), arguments).assert_refused(words);
    }
}

/// Starts `setsid`, so that there is no terminal: as a service is started.
fn service(arguments: &[&str]) -> Option<LiveRun> {
    let has_setsid = Command::new("setsid").arg("true").output().is_ok();
    has_setsid.then(|| LiveRun::service(arguments))
}

#[test]
fn a_hangup_without_a_terminal_opens_files_again() {
    const TEST: &str = "a_hangup_without_a_terminal_opens_files_again";
    let folder = folder("files opened again");
    let (path, moved) = (folder.join("flows.csv"), folder.join("flows.csv.old"));
    let Some(mut run) = service(&["-", "--idle", "1", "--csv", &text(&path)]) else {
        return announce(TEST, format_args!("SKIPPED: there is no program `setsid`"));
    };
    let capture = flows_at((0..20).map(|second| 1_700_000_000 + second));
    let half = 24 + 10 * (16 + 42);
    run.write(&capture[..half]);
    wait_for(&path, "1700000005000000000");
    fs::rename(&path, &moved).expect("it can be renamed");
    run.signal("HUP");
    wait_for(&path, HEADER);
    run.write(&capture[half..]);
    wait_for(&path, "1700000015000000000");
    assert!(!run.has_ended());
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.code, Some(143), "{run:?}");
    let rows: usize = files(&folder).iter().map(|(_, rows)| rows).sum();
    assert_eq!(rows, 20, "{run:?}");
}

/// A full disk: a file system of a few pages, which only root can mount, in a namespace of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported_at_once_and_tried_again() {
    const TEST: &str = "a_full_disk_is_reported_at_once_and_tried_again";
    let folder = folder("a full disk");
    let script = "mount -t tmpfs -o size=8k tmpfs \"$1\" && shift && exec \"$@\"";
    let place = text(&folder);
    let mounted = ["unshare", "-m", "sh", "-c", script, "sh", &place];
    let probe = Command::new(mounted[0]).args(&mounted[1..]).arg("true").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return announce(TEST, format_args!("SKIPPED: no file system can be mounted"));
    }
    let csv = folder.join("flows.csv");
    let mut run = LiveRun::within(&mounted, &["-", "--idle", "1", "--csv", &text(&csv)]);
    let inside = PathBuf::from(format!("/proc/{}/root{}", run.id(), csv.display()));
    run.write(&flows_at((0..1000).map(|second| 1_700_000_000 + second)));
    run.wait_for_error("cannot be written: No space left on device");
    // Whole rows only, also on a full disk.
    let full = fs::read_to_string(&inside).expect("it can be read");
    assert!(full.ends_with('\n') && full.lines().count() > 10, "{full}");
    run.signal("USR1");
    run.wait_for_error("rows wait");
    // As logrotate does with `copytruncate`.
    let copied = full.lines().count();
    for _ in 0..100 {
        if run.errors().contains("is written again") {
            break;
        }
        let file = fs::OpenOptions::new().write(true).open(&inside);
        file.and_then(|file| file.set_len(0)).expect("it can be truncated");
        thread::sleep(Duration::from_millis(1200));
    }
    assert!(copied > 10 && run.errors().contains("is written again"), "{}", run.errors());
    run.signal("TERM");
    let run = run.end();
    assert_eq!(run.code, Some(143), "{run:?}");
    assert_eq!(run.stderr.matches("cannot be written").count(), 2, "{run:?}");
}
