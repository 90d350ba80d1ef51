#!/usr/bin/env bash
# Installs Chromium from the distribution, for the console tests. If that is not possible, those tests are skipped.
set -uo pipefail

for name in chromium chromium-browser google-chrome-stable google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo 'Chromium is missing and cannot be installed without apt and root: the console tests will be skipped.'
  exit 0
fi
log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >"$log" 2>&1; then
  tail -5 "$log"
  echo 'Chromium could not be installed: the console tests will be skipped.'
fi
rm -f "$log"
