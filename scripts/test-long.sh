#!/usr/bin/env bash
# Tests that take over an hour, to be run by hand: 500 storms in the simulation, 20,000 requests of the fuzzer, and 30 minutes of
# chaos for each of the systems: with Kafka only where scripts/fetch-kafka.sh has fetched it. MINUTES=n changes the last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
minutes=${MINUTES:-30}

SIMULATION_STORMS=500 SIMULATION_FIRST_SEED=10000 vitest run --project unit test/simulation/simulation.test.ts
FUZZ_RUNS=20000 vitest run --project extended test/extended/fuzz.test.ts
npm run -s chaos -- --minutes "$minutes"
npm run -s chaos -- --minutes "$minutes" --shop
if [ -d node_modules/.cache/kafka ]; then npm run -s chaos -- --minutes "$minutes" --backbone kafka; fi
