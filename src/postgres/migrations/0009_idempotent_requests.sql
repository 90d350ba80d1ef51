-- Answers to requests with an Idempotency-Key, so that the same request gets the same answer. Publishing has keys of
-- its own. A row is first a claim: one process carries the request out, others see that. Answers hold secrets that
-- are shown only once (of endpoints, API keys), so all of them are sealed.
create table posthorn.idempotent_requests (
  id            uuid primary key,             -- of the claim: who lost it does not write an answer
  owner         text not null,                -- the API key that made the request
  key           text not null,
  fingerprint   bytea not null,               -- of method, address and body
  claimed_until timestamptz not null,         -- without an answer by then its process is taken for dead
  expires_at    timestamptz not null,
  key_id        text,                         -- of the encryption key
  answer        bytea,                        -- null: under way
  unique (owner, key),
  check ((key_id is null) = (answer is null))
);
create index idempotent_requests_expiry on posthorn.idempotent_requests (expires_at);
