export { EndpointStats } from './endpoint-stats.ts';
export { type Measured, Measurements } from './measurements.ts';
export { Upkeep } from './upkeep.ts';
