export { Measurements } from './measurements.ts';
export { OperationalEvents } from './operational-events.ts';
export { StatsKeeper } from './stats-keeper.ts';
export { Upkeep } from './upkeep.ts';
