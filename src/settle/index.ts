export { Settler } from './settler.ts';
export { TaskRunner } from './tasks.ts';
