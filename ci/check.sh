#!/usr/bin/env bash
# Checks format, lints and documentation; warnings are errors. `cargo test` runs the examples in it.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in fmt clippy; do
    cargo "$tool" --version >/dev/null 2>&1 || rustup component add "${tool/fmt/rustfmt}"
done
for manifest in Cargo.toml fuzz/Cargo.toml no_std/Cargo.toml; do
    cargo fmt --manifest-path "$manifest" --check
done
cargo clippy --all-targets --all-features -- -D warnings
# These are not among all targets: `cargo bench` alone does not run them.
cargo clippy --bench paper --bench peers --all-features -- -D warnings
cargo clippy --manifest-path no_std/Cargo.toml -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --document-private-items
