#!/usr/bin/env bash
# Builds versitygw, an S3 server, for the tests of the archive. Does nothing if it is there. If it cannot be built, the script says so,
# and those tests are skipped.
set -uo pipefail
target="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/node_modules/.cache/versitygw"

if command -v versitygw > /dev/null || [ -x "$target/versitygw" ]; then exit 0; fi

GOBIN="$target" timeout 900 go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 > /dev/null 2>&1 \
  || echo 'Could not build versitygw (no Go or no network): the test of the archive with it is skipped' >&2
exit 0
