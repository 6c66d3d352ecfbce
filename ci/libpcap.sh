#!/usr/bin/env bash
# Installs libpcap, which the tests of network interfaces and of filters need: without it, `cargo
# test --all-features` passes, and these tests print that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/functions

cat >"${TMPDIR:-/tmp}/libpcap-$$.c" <<'C'
#include <pcap.h>
int main(void) { return pcap_lib_version() == 0; }
C
trap 'rm -f "${TMPDIR:-/tmp}/libpcap-$$".*' EXIT
is_there() {
    cc "${TMPDIR:-/tmp}/libpcap-$$.c" -lpcap -o "${TMPDIR:-/tmp}/libpcap-$$.out"
}
if ! has_package libpcap-dev is_there; then
    echo "SKIPPED: network interfaces and filters, because libpcap-dev could not be installed"
    exit 77
fi
echo "libpcap is there"
