#!/usr/bin/env bash
# Runs ConcurrentMap and ConcurrentRoutes under everything that looks for races, or for memory that is
# used after its time:
#
#   loom      all interleavings of a few steps, with at most two preemptions: the models in src/concurrent
#   shuttle   interleavings at random, of some hundred steps
#   thread    ThreadSanitizer: accesses that nothing puts in an order
#   address   AddressSanitizer: memory that is not owned, and leaks
#   miri      undefined behaviour, and the weaker memory that the language allows
#
# concurrent.sh [PART…] runs these parts, or else all. Each gives up after LIMIT seconds, 300 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${LIMIT:-300}
host=x86_64-unknown-linux-gnu
skipped=0

skip() {
    echo "SKIPPED: $*"
    skipped=1
}

# The same sources as a package without the peers and tools of benches and examples: to compile those,
# five times over, would take longer than everything else.
root=$PWD/${CARGO_TARGET_DIR:-target}
[ "${CARGO_TARGET_DIR:-}" = "${CARGO_TARGET_DIR#/}" ] || root=$CARGO_TARGET_DIR
root+=/concurrent
package=$root/package
mkdir -p "$package"
ln -sfn "$PWD/src" "$package/src"
ln -sfn "$PWD/tests" "$package/tests"
cp Cargo.lock "$package"
awk '/^\[/ { dev = /dev-dependencies/; skip = /^\[\[/ }
    skip || dev && !/^\[|^(proptest|rand) / { next }
    { print }
    END { print "\n[workspace]" }' Cargo.toml >"$package/Cargo.toml"

export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_RELEASE_DEBUG=0
export PROPTEST_CASES=${PROPTEST_CASES:-4}

# part NAME COMMAND… runs it in the package, in a folder for what it compiles.
part() {
    local name=$1 start=$SECONDS status=0
    shift
    echo "-- $name"
    (cd "$package" && CARGO_TARGET_DIR=$root/$name timeout "$limit" "$@") || status=$?
    echo "-- $name took $((SECONDS - start)) s"
    case $status in
        0) ;;
        # So `timeout` says that time was up.
        124) skip "the rest of $name, because it took longer than $limit s" ;;
        *) exit "$status" ;;
    esac
}

# has_nightly COMMAND… says whether there is a nightly Rust that can do this; installs it if need be.
has_nightly() {
    "$@" >/dev/null 2>&1 || {
        timeout 300 rustup toolchain install nightly --profile minimal --no-self-update \
            --component miri,rust-src && "$@"
    }
}

has_sources() {
    [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]
}

has_target() {
    [ "$(rustc -vV | sed -n 's/^host: //p')" = "$host" ]
}

# The files whose names say so, as arguments of cargo test.
tests() {
    local file
    for file in "$@"; do
        [ ! -e "$file" ] || echo "--test $(basename "$file" .rs)"
    done
}

loom() {
    grep -rq 'mod loom_models' src/concurrent || { echo "there are no models" >&2 && exit 1; }
    RUSTFLAGS="--cfg crossbeam_loom" LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2} \
        part loom cargo test --release --features concurrent --lib loom
}

shuttle() {
    RUSTFLAGS="--cfg shuttle" part shuttle cargo test --features concurrent --test concurrent_shuttle
}

thread() {
    if ! has_target || ! has_nightly has_sources; then
        skip "ThreadSanitizer, because this machine is not $host or has no nightly Rust with rust-src"
        return
    fi
    # There is nothing to suppress: ThreadSanitizer knows no fences, and crossbeam-epoch, which has some,
    # takes stronger loads instead when it is compiled for it. The rest has none.
    # shellcheck disable=SC2046
    RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS=halt_on_error=1 \
        part thread cargo +nightly test -Zbuild-std --target "$host" --features concurrent \
        $(tests tests/concurrent_guarantees.rs tests/concurrent_routes.rs)
}

address() {
    if ! has_target || ! has_nightly cargo +nightly --version; then
        skip "AddressSanitizer, because this machine is not $host or has no nightly Rust"
        return
    fi
    # shellcheck disable=SC2046
    RUSTFLAGS=-Zsanitizer=address part address cargo +nightly test --target "$host" \
        --features concurrent $(tests tests/concurrent_*.rs)
}

miri() {
    if ! has_nightly cargo +nightly miri --version; then
        skip "Miri, because it could not be installed"
        return
    fi
    # crossbeam-epoch breaks the rules of Stacked Borrows, has pointers in numbers, and never gives its last
    # garbage back.
    # shellcheck disable=SC2046
    MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-permissive-provenance" \
        part miri cargo +nightly miri test --features concurrent \
        $(tests tests/concurrent_{model,guarantees,misuse}.rs)
}

parts=("$@")
[ $# -gt 0 ] || parts=(loom shuttle thread address miri)
for name in "${parts[@]}"; do
    case $name in
        loom | shuttle | thread | address | miri) "$name" ;;
        *) echo "no such part: $name" >&2 && exit 2 ;;
    esac
done
[ "$skipped" = 0 ] || exit 77
