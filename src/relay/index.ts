export { initRelay, initSql, startRelay } from './start-relay.ts';
