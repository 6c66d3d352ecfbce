//! On the host the linker is a C compiler: it adds the start-up code and libc, which has `memcpy`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo:rustc-link-arg-bins=-lc");
    }
}
