#!/usr/bin/env bash
# Links `no_std/` without std: for the host, where it also runs, and for bare metal.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions
cd no_std
target=${CARGO_TARGET_DIR:-target}

cargo build --locked
program=$target/debug/flowtable-no-std
"$program"
# Symbols of std are mangled as _ZN3std… or, in the other scheme, as …Cs<hash>_3std….
if nm "$program" | grep -E '_ZN3std|Cs[0-9A-Za-z]+_3std'; then
    echo "FAILED: $program contains std"
    exit 1
fi
# Only the start-up code and the memory functions that compilers call may be from libc.
allowed=' (w .*|U (__libc_start_main|mem(cpy|move|set|cmp)|bcmp)(@.*)?)$'
if nm --undefined-only "$program" | grep -vE "$allowed"; then
    echo "FAILED: $program needs more than memory functions"
    exit 1
fi

# add TARGET installs a target, unless it is there. One at a time: two rustup lose a line of the
# list of components, and the target whose line it is can never be installed again.
add() {
    ls "$(rustc --print target-libdir --target "$1")"/libcore-*.rlib >/dev/null 2>&1 ||
        flock Cargo.toml timeout 300 rustup target add "$1"
}

# bare TARGET builds for a target without an operating system.
bare() {
    if ! add "$1"; then
        skip "bare metal, because the target $1 could not be installed"
        return
    fi
    # Optimized, in the profile of firmware. There is no library with other symbols to link with.
    CARGO_TARGET_DIR=$target/$1 cargo build --locked --profile small --target "$1" || exit 1
    # The size in bytes of a program with eight structures.
    size "$target/$1/$1/small/flowtable-no-std" |
        awk -v build="$1" 'NR == 2 { print "size: " build ": " $1 " of code, " $2 " of data" }'
}
microcontroller() {
    bare thumbv7em-none-eabi
    # Tags are compared by NEON there.
    if add aarch64-unknown-none; then
        CARGO_TARGET_DIR=$target/aarch64 \
            cargo check --locked --target aarch64-unknown-none || exit 1
    else
        skip "NEON, because the target aarch64-unknown-none could not be installed"
    fi
}
kernel() { bare x86_64-unknown-none; }
both microcontroller kernel
[ "$skipped" = 0 ] || exit 77
