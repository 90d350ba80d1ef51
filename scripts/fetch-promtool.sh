#!/usr/bin/env bash
# Gets promtool for the tests of the alert rules. Unpacks Debian's package instead of installing it, so that no service
# starts. Does nothing if promtool is there. If it cannot get it, it says so, and those tests are skipped.
set -uo pipefail
target="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/node_modules/.cache/prometheus"

if command -v promtool > /dev/null || [ -x "$target/usr/bin/promtool" ]; then exit 0; fi

package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
download() { (cd "$package" && timeout 120 apt-get -qq download prometheus > /dev/null 2>&1); }
{ download || { timeout 120 apt-get -qq update > /dev/null 2>&1 && download; }; } \
  && mkdir -p "$target" && dpkg -x "$package"/prometheus_*.deb "$target" && rm -f "$target/usr/bin/prometheus" \
  || echo 'Could not download promtool (no apt, no permission or no network): the tests of the alert rules are skipped' >&2
exit 0
