export { initRelay, initSql } from './init.ts';
export { startRelay } from './start-relay.ts';
