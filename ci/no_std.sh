#!/usr/bin/env bash
# Links `no_std/` without std: for the host, where it also runs, and for bare metal.
set -euo pipefail
cd "$(dirname "$0")/../no_std"
target=${CARGO_TARGET_DIR:-target}

for profile in dev release; do
    cargo build --locked --profile "$profile"
    program=$target/${profile/dev/debug}/flowtable-no-std
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
done

skipped=0
for bare in thumbv7em-none-eabi x86_64-unknown-none; do
    if timeout 300 rustup target add "$bare"; then
        cargo build --locked --target "$bare"
        cargo build --locked --release --target "$bare"
        cargo build --locked --profile small --target "$bare"
        # The size in bytes of a program with seven structures.
        for profile in release small; do
            size "$target/$bare/$profile/flowtable-no-std" |
                awk -v build="$bare, $profile" \
                    'NR == 2 { print "size: " build ": " $1 " of code, " $2 " of data" }'
        done
    else
        echo "SKIPPED: bare metal, because the target $bare could not be installed"
        skipped=77
    fi
done
exit "$skipped"
