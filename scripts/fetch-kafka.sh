#!/usr/bin/env bash
# Fetches the jars of Kafka (45 MB) with Maven into node_modules/.cache/kafka, for test/extended/kafka. Does nothing if they are there.
# Without Java, Maven or a network it says so, and those tests are skipped.
set -uo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
target="$root/node_modules/.cache/kafka"

[ -d "$target" ] && exit 0
jars=$(mktemp -d)
log=$(mktemp)
trap 'rm -rf "$jars" "$log"' EXIT
if timeout 300 mvn -q -B -f "$root/test/support/kafka/pom.xml" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$jars" > "$log" 2>&1; then
  mkdir -p "$root/node_modules/.cache" && mv "$jars" "$target" && chmod 755 "$target"
else
  tail -3 "$log" >&2
  echo 'The jars of Kafka could not be fetched (no Maven or no network): the tests with Kafka are skipped.' >&2
fi
exit 0
