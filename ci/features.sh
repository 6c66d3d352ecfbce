#!/usr/bin/env bash
# Checks the library with every set of features, and runs the tests of what differs without `std`.
# Those of the default features and of all features are in `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each feature alone, and both conversions without `std`; ci/check.sh has all features. `concurrent`
# and `rayon` imply `std`; no code depends on two features.
for set in "" std papers concurrent serde ipnet rayon serde,ipnet; do
    echo "features: ${set:-none}"
    cargo clippy -p flowtable --lib --no-default-features --features "$set" -- -D warnings
done
# The tests with the default features are those with all features, without some modules.
cargo check --tests
# Without `std` only the seeds of hashes and the population counts of RouteTable differ. The tests
# of the modules are enough for the former.
without_std() {
    cargo test -p flowtable -p flowtable-tests --no-default-features "$@"
}
without_std --lib
without_std --test routes -- model::
