#!/usr/bin/env bash
# Installs libpcap, which the tests of network interfaces and of filters need: without it, `cargo
# test --all-features` passes, and these tests print that they were skipped.
set -euo pipefail

cat >"${TMPDIR:-/tmp}/libpcap-$$.c" <<'C'
#include <pcap.h>
int main(void) { return pcap_lib_version() == 0; }
C
trap 'rm -f "${TMPDIR:-/tmp}/libpcap-$$".*' EXIT
is_there() {
    cc "${TMPDIR:-/tmp}/libpcap-$$.c" -lpcap -o "${TMPDIR:-/tmp}/libpcap-$$.out"
}
install() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo="sudo -n"
    timeout 300 $sudo apt-get install -y --no-install-recommends libpcap-dev ||
        { timeout 300 $sudo apt-get update &&
            timeout 300 $sudo apt-get install -y --no-install-recommends libpcap-dev; }
}
if ! { is_there || { install && is_there; }; } >/dev/null 2>&1; then
    echo "SKIPPED: network interfaces and filters, because libpcap-dev could not be installed"
    exit 77
fi
echo "libpcap is there"
