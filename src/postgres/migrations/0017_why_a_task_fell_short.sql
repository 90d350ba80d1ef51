-- Of those that failed: how many belong to endpoints that are disabled or deleted.
alter table posthorn.tasks add column failed_off int not null default 0;
