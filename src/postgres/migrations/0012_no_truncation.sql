-- These grow and are emptied all the time, and commits write to them. Giving empty pages back to the file system would
-- take a lock that no commit can pass, for space that is needed again a moment later.
alter table posthorn.queue set (vacuum_truncate = off);
alter table posthorn.outbox set (vacuum_truncate = off);
alter table posthorn.stats_journal set (vacuum_truncate = off);
alter table posthorn.operational_notes set (vacuum_truncate = off);
