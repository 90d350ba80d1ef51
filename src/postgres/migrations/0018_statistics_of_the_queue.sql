-- The plans of the queue do not rest on its statistics (docs/adr/0011-plans-for-a-full-queue.md), and under load a
-- twentieth of it changes many times a minute: to sample it each time took as much processor as to vacuum it.
alter table posthorn.queue set (autovacuum_analyze_threshold = 1000000);
-- A sample taken while one endpoint's backlog fills it says that there is but one endpoint. To count what waits for any other, the list of
-- endpoints then walked through all of that backlog, once for each: 17 seconds for 50 endpoints and 300,000 waiting deliveries.
alter table posthorn.queue alter column endpoint_id set (n_distinct = -0.05);
alter table posthorn.dead_letters alter column endpoint_id set (n_distinct = -0.05);
analyze posthorn.queue;
analyze posthorn.dead_letters;

-- As new partitions are made (src/store/partitions.ts).
do $$
declare
  partition record;
begin
  for partition in select name from posthorn.partitions loop
    execute format('alter table posthorn.%I set (autovacuum_analyze_threshold = 10000,
                    autovacuum_analyze_scale_factor = 0.5, autovacuum_vacuum_insert_threshold = 100000)', partition.name);
  end loop;
end $$;
