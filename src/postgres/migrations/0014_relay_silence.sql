-- How often a relay reports: one that has not done so for several times as long is down. 5: of versions that did not say.
alter table posthorn.relay_sources add column report_seconds float8 not null default 5;
