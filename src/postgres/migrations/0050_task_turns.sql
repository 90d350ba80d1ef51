-- When did a tenant have its last turn? Tasks that were cancelled before they had one are not in the index, so a tenant cannot hide
-- its last turn behind them.
create index tasks_last_turns on posthorn.tasks (tenant, updated_at)
  where claimed_by is not null and not state in ('queued', 'running');
