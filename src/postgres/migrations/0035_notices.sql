-- Notices (docs/notices.md, docs/adr/0019-notifiers.md). A notifier is an endpoint whose configuration has `notifier`.
create index endpoints_notifiers on posthorn.endpoints (id) where config ? 'notifier';

-- Notices that wait for the end of their notifier's window: of one type, about one tenant. They become one message.
create table posthorn.notice_digests (
  endpoint_id uuid not null,                   -- the notifier
  type        text not null,
  tenant      text not null,                   -- the tenant that they are about; empty: the whole deployment
  since       timestamptz not null default now(),
  count       bigint not null,
  reports     bigint not null,
  items       jsonb not null,                  -- the first few
  primary key (endpoint_id, type, tenant)
);
create index notice_digests_tenant on posthorn.notice_digests (tenant);

-- Confirmations that were sent, to limit them. The address is a hash, and a row is deleted after a day.
create table posthorn.confirmation_mails (
  tenant       text not null,
  address_hash bytea not null,
  event_id     uuid not null,
  sent_at      timestamptz not null default now()
);
create index confirmation_mails_address on posthorn.confirmation_mails (address_hash);
create index confirmation_mails_tenant on posthorn.confirmation_mails (tenant);

-- Attempts of earlier versions contain the values of custom headers. Upkeep redacts them, once: a new database has no row.
create table posthorn.attempts_redaction (
  is_only        boolean primary key default true check (is_only),
  -- Earlier versions run beside the first new one. Upkeep moves this time on while workers of them are registered, and begins then.
  until          timestamptz not null default now() + interval '1 hour',
  after_delivery uuid not null default '00000000-0000-0000-0000-000000000000',
  after_attempt  uuid not null default '00000000-0000-0000-0000-000000000000'
);
insert into posthorn.attempts_redaction (is_only) select true where exists (select from posthorn.attempts);

-- Earlier releases claim tasks of every kind, and treat those that they do not know as discards: a restore would discard dead
-- letters. So the database skips their claims. A worker that knows the kind repeats its id in `claimed_by`.
alter table posthorn.tasks add column claimed_by uuid;
create function posthorn.skip_update() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return null;
end $$;
revoke all on function posthorn.skip_update from public;
create trigger skip_claims_of_earlier_releases before update of runner on posthorn.tasks for each row
  when (new.kind not in ('replay', 'discard') and new.runner is not null
        and new.runner is distinct from old.runner and new.claimed_by is distinct from new.runner)
  execute function posthorn.skip_update();
