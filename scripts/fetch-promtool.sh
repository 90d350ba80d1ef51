#!/usr/bin/env bash
# Brings promtool for the tests of the alert rules: unpacked from Debian's package, so that nothing is installed and no
# service is started. Does nothing if there is one; where there is none to be had, says so and lets those tests be skipped.
set -uo pipefail
target="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/node_modules/.cache/prometheus"

if command -v promtool > /dev/null || [ -x "$target/usr/bin/promtool" ]; then exit 0; fi

package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
download() { (cd "$package" && timeout 120 apt-get -qq download prometheus > /dev/null 2>&1); }
{ download || { timeout 120 apt-get -qq update > /dev/null 2>&1 && download; }; } \
  && mkdir -p "$target" && dpkg -x "$package"/prometheus_*.deb "$target" && rm -f "$target/usr/bin/prometheus" \
  || echo 'promtool cannot be had here (no apt, no rights or no network): the tests of the alert rules are skipped' >&2
exit 0
