#!/usr/bin/env bash
# Installs Redis for the tests of several nodes, from the distribution. Where that is not possible they are skipped.
set -uo pipefail

command -v redis-server > /dev/null && exit 0
command -v valkey-server > /dev/null && exit 0
if ! command -v apt-get > /dev/null || [ "$(id -u)" -ne 0 ]; then
  echo 'No Redis, and no way to install one here: the tests with Redis are skipped.' >&2
  exit 0
fi
log=$(mktemp)
# RUNLEVEL: the package must not start a service.
install() { RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server; }
if ! { install || { apt-get update -qq && install; }; } > "$log" 2>&1; then
  tail -5 "$log"
  echo 'Redis could not be installed: the tests with Redis are skipped.' >&2
fi
rm -f "$log"
exit 0
