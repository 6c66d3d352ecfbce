//! Sets the `cfg` `libpcap` if the feature `interface` is on and a program can be linked with
//! libpcap: so a build with all features needs no libpcap.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(libpcap)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LIBPCAP_LIBDIR");
    if env::var_os("CARGO_FEATURE_INTERFACE").is_none() {
        return;
    }
    if is_linked() {
        println!("cargo:rustc-cfg=libpcap");
    } else {
        println!("cargo:warning=without libpcap there are no interfaces: install libpcap-dev");
        // It changes when libpcap is installed.
        if Path::new("/usr/include").exists() {
            println!("cargo:rerun-if-changed=/usr/include");
        }
    }
}

/// Returns whether the linker of this build finds libpcap.
fn is_linked() -> bool {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let source = folder.join("libpcap.rs");
    if fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut rustc = Command::new(env::var_os("RUSTC").expect("Cargo sets it"));
    rustc.args(["--edition=2024", "-l", "pcap", "-o"]).arg(folder.join("libpcap")).arg(source);
    rustc.arg("--target").arg(env::var_os("TARGET").expect("Cargo sets it"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    if let Some(folder) = env::var_os("LIBPCAP_LIBDIR") {
        rustc.arg("-L").arg(folder);
    }
    rustc.output().is_ok_and(|output| output.status.success())
}
