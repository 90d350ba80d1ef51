export { decide, expiresAt, isSuccess, signalOf } from './decide.ts';
export { Settler } from './settler.ts';
export { TaskRunner } from './tasks.ts';
