-- Headers of endpoints are sealed. Finds the rows of earlier versions that have them in plain text, which upkeep seals.
create index endpoints_plain_headers on posthorn.endpoints (id) where config ? 'headers';
