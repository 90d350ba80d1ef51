import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { endpointOf } from '../../test/support/lanes.ts';
import { shardOf } from '../domain/endpoint.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { LaneRegistry } from './lane-registry.ts';

const NOW = 1_800_000_000_000;
const endpoint = endpointOf({});
const laneOf = (id: Uuid): Lane => new Lane({ ...endpoint, id }, HEALTHY, null);

test('lanes are found by endpoint and by shard, and are removed with their shard', () => {
  const lanes = new LaneRegistry();
  const [first, second] = [laneOf(newId(NOW)), laneOf(newId(NOW))];
  lanes.addShard(first.shard);
  lanes.add(first);
  lanes.add(second);
  expect([lanes.size, ...lanes.all()]).toHaveLength(3);
  expect(lanes.get(first.id)).toBe(first);
  expect([...lanes.ofShard(first.shard)]).toContain(first);
  lanes.removeShard(first.shard);
  expect(lanes.get(first.id)).toBeUndefined();
  expect(lanes.hasShard(first.shard)).toBe(false);
  expect(lanes.size).toBe(first.shard === second.shard ? 0 : 1);
});

test('a lane that is closed late does not remove the one that took its place', () => {
  const lanes = new LaneRegistry();
  const id = newId(NOW);
  const late = laneOf(id);
  lanes.add(late);
  lanes.removeShard(shardOf(id));
  const next = laneOf(id);
  lanes.add(next);
  lanes.remove(late);
  expect(lanes.get(id)).toBe(next);
  lanes.remove(next);
  expect([lanes.size, lanes.get(id)]).toEqual([0, undefined]);
});

// Every worker has a lane for each endpoint of its shards, and most endpoints have nothing to send.
test('an idle lane takes no more than 500 bytes', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const lanes = new LaneRegistry();
  const count = 20_000;
  // The endpoints exist anyway.
  const endpoints = Array.from({ length: count }, () => ({ ...endpoint, id: newId(NOW) }));
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const each of endpoints) {
    const lane = new Lane(each, HEALTHY, null);
    lane.readProgress.begin();
    lane.readProgress.recordFresh(0, true);
    lane.readProgress.recordRetries(0, 0, true);
    lane.readProgress.end();
    lanes.add(lane);
  }
  collect();
  expect((process.memoryUsage().heapUsed - before) / count).toBeLessThan(500);
  expect(lanes.size).toBe(count);
});

test('lanes of two regions with the same endpoint shard are kept apart', () => {
  const lanes = new LaneRegistry();
  const [home, eu] = [newId(NOW), `${newId(NOW).slice(0, 34)}07`];
  const inDefault = new Lane({ ...endpoint, id: `${home.slice(0, 34)}07` }, HEALTHY, null);
  const inEu = new Lane({ ...endpoint, id: eu, shard: 256 + 7 }, HEALTHY, null);
  lanes.add(inDefault);
  lanes.add(inEu);
  expect([...lanes.ofShard(7)]).toEqual([inDefault]);
  expect([...lanes.ofShard(263)]).toEqual([inEu]);
  lanes.removeShard(7);
  expect([lanes.size, lanes.hasShard(7), lanes.hasShard(263)]).toEqual([1, false, true]);
  expect([lanes.get(inDefault.id), lanes.get(inEu.id)]).toEqual([undefined, inEu]);
});
