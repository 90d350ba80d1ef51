#!/usr/bin/env bash
# A browser for the console's tests, from the distribution. Where that is not possible the tests say so and are skipped.
set -uo pipefail

for name in chromium chromium-browser google-chrome-stable google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo 'No Chromium, and no way to install one here: the tests of the console will be skipped.'
  exit 0
fi
log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >"$log" 2>&1; then
  tail -5 "$log"
  echo 'Chromium could not be installed: the tests of the console will be skipped.'
fi
rm -f "$log"
