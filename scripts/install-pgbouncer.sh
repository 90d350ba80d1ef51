#!/usr/bin/env bash
# Installs PgBouncer for the tests of poolers, from the distribution. Where that is not possible they are skipped.
set -uo pipefail

command -v pgbouncer > /dev/null && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" -ne 0 ]; then
  echo 'No PgBouncer, and no way to install one here: the tests of poolers are skipped.' >&2
  exit 0
fi
log=$(mktemp)
# RUNLEVEL: the package must not start a service.
install() { RUNLEVEL=1 apt-get install -y -qq --no-install-recommends pgbouncer; }
if ! { install || { apt-get update -qq && install; }; } > "$log" 2>&1; then
  tail -5 "$log"
  echo 'PgBouncer could not be installed: the tests of poolers are skipped.' >&2
fi
rm -f "$log"
exit 0
