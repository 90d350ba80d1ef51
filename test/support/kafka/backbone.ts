/**
 * Runs the Posthorns of a project's tests with `POSTHORN_BACKBONE=kafka`: one broker for the whole test run, and a topic for each
 * database.
 */
import type { TestProject } from 'vitest/node';
import { onceForAllProjects } from '../once-for-all-projects.ts';
import { TestBroker } from './broker.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the broker. Undefined: Posthorn accepts events in PostgreSQL. */
    kafkaBackbone: string | undefined;
  }
}

export default async function provideKafkaBackbone(project: TestProject): Promise<() => Promise<void>> {
  const { value, release } = await onceForAllProjects('kafka', startBroker);
  project.provide('kafkaBackbone', value);
  return release;
}

async function startBroker(): Promise<{ value: string; end(): Promise<void> }> {
  const broker = await TestBroker.start();
  return { value: broker.address, end: () => broker.remove() };
}
