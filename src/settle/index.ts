export { Settler } from './settler.ts';
export { TaskRunner } from './task-runner.ts';
