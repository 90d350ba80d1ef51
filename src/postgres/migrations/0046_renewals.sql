-- How often a worker has renewed its lease. A worker that finds a lower number knows that the database was set back. Times do not
-- tell, because other workers correct them after a wrong clock.
alter table posthorn.workers add column renewals bigint not null default 0;
