-- Headers of endpoints are sealed. Finds the rows of earlier versions that have them in plain text, which upkeep seals.
create index endpoints_plain_headers on posthorn.endpoints (id) where config ? 'headers';

-- API keys end in a checksum that only Posthorn can compute, so that guesses are refused without a query. The secret is no
-- credential: with it one can only make keys that do not exist. It never changes, because keys must stay valid.
create table posthorn.key_checksum (
  is_only boolean primary key default true check (is_only),
  secret  bytea not null check (length(secret) = 32)
);
insert into posthorn.key_checksum (secret)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Keys of earlier versions have none. Every process knows the hashes of these.
alter table posthorn.api_keys add column has_checksum boolean not null default false;
create index api_keys_without_checksum on posthorn.api_keys (created_at) where not has_checksum and revoked_at is null;
