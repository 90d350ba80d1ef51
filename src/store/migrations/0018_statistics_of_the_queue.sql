-- The plans of the queue do not rest on its statistics (docs/adr/0011-plans-for-a-full-queue.md), and under load a
-- twentieth of it changes many times a minute: to sample it each time took as much processor as to vacuum it.
alter table posthorn.queue set (autovacuum_analyze_threshold = 1000000);
