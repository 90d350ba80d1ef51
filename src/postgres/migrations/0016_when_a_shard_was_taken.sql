-- Since when its owner has it: what was made after that has been sent to by nobody else. Null: nobody has said.
alter table posthorn.shards add column taken_at timestamptz;
