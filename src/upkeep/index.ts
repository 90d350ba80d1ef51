export { EndpointStats } from './endpoint-stats.ts';
export { Upkeep } from './upkeep.ts';
