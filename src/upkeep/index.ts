export { Measurements } from './measurements.ts';
export { StatsKeeper } from './stats-keeper.ts';
export { Upkeep } from './upkeep.ts';
