#!/usr/bin/env bash
# Checks the package as it is published: with the minimum Rust version, with the minimum versions of
# its dependencies, and for breaking changes since the last release.
set -euo pipefail
cd "$(dirname "$0")/.."
skipped=0
skip() {
    echo "SKIPPED: $*"
    skipped=77
}

# The package is unpacked outside of the workspace; it has no dev-dependencies that are unpublished.
version=$(sed -n '/^\[package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo package --package flowtable --no-verify --allow-dirty
package=$target/versions/package
rm -rf "$package" && mkdir -p "$package"
tar -xzf "$target/package/flowtable-$version.crate" -C "$package" --strip-components 1
cd "$package"
printf '\n[workspace]\n' >>Cargo.toml
export CARGO_TARGET_DIR=$target/versions

if cargo "+$oldest" --version >/dev/null 2>&1 ||
    timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update; then
    cargo "+$oldest" check --lib --all-features
else
    skip "the minimum Rust version, because the toolchain $oldest could not be installed"
fi
if cargo +nightly --version >/dev/null 2>&1 ||
    timeout 300 rustup toolchain install nightly --profile minimal --no-self-update; then
    cargo +nightly update -Z direct-minimal-versions
    cargo check --lib --all-features
else
    skip "the minimum versions of dependencies, because nightly Rust could not be installed"
fi
# Breaking changes are those since the tag of the last release.
cd - >/dev/null
release=$(git tag --list 'v*' --sort=-version:refname | head -n 1)
if [ -z "$release" ]; then
    echo "There is no release yet: any change may break."
elif ! cargo semver-checks --version >/dev/null 2>&1 &&
    ! timeout 900 cargo install cargo-semver-checks --locked --debug; then
    skip "breaking changes, because cargo-semver-checks could not be installed"
else
    cargo semver-checks --package flowtable --baseline-rev "$release" --all-features
fi
exit "$skipped"
