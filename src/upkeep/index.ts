export { Measurements, measureEach } from './measurements.ts';
export { OperationalEvents } from './operational-events.ts';
export { Recurring } from './recurring.ts';
export { StatsKeeper } from './stats-keeper.ts';
export { Upkeep } from './upkeep.ts';
