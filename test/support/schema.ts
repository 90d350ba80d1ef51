/**
 * The migrated schema as text, read from the catalogue, for `src/postgres/schema.snapshot.txt`. A review thus shows the
 * effect of a migration, not only its statements. Partitions are left out: they are copies of their parents.
 */
import pg from 'pg';

const OURS = `n.nspname = 'posthorn' and not c.relispartition`;

export async function describeSchema(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    // Makes PostgreSQL qualify every name.
    await client.query('set search_path = pg_catalog');
    const { rows: relations } = await client.query<Relation>(RELATIONS);
    const lines: Line[] = [];
    for (const text of [COLUMNS, CONSTRAINTS, INDEXES, TRIGGERS]) {
      lines.push(...(await client.query<Line>(text)).rows);
    }
    const { rows: functions } = await client.query<{ text: string }>(FUNCTIONS);
    const parts = relations.map(({ name, kind, extra }) =>
      [
        `${kind} ${name} ${extra}`.trimEnd(),
        ...lines.filter(({ relation }) => relation === name).map(({ text }) => `  ${text}`),
      ].join('\n'),
    );
    return `${[...parts, ...functions.map(({ text }) => text.trimEnd())].join('\n\n')}\n`;
  } finally {
    await client.end();
  }
}

interface Relation {
  name: string;
  kind: string;
  extra: string;
}
interface Line {
  relation: string;
  text: string;
}

const RELATIONS = `
  select c.relname as name,
         case c.relkind when 'r' then 'table' when 'p' then 'table' when 'S' then 'sequence' when 'v' then 'view'
                        when 'm' then 'materialized view' end as kind,
         concat_ws(' ', case when c.relkind = 'p' then 'partition by ' || pg_get_partkeydef(c.oid) end,
                        case when c.relpersistence = 'u' then 'unlogged' end,
                        case when c.reloptions is not null then 'with (' || array_to_string(c.reloptions, ', ') || ')' end,
                        (select format('%s start %s increment %s min %s max %s%s', s.data_type, s.start_value,
                                       s.increment_by, s.min_value, s.max_value, case when s.cycle then ' cycle' end)
                           from pg_sequences s where s.schemaname = n.nspname and s.sequencename = c.relname),
                        (select 'owned by ' || d.refobjid::regclass || '.' || a.attname
                           from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
                          where d.objid = c.oid and d.deptype = 'a' and c.relkind = 'S'),
                        case when c.relkind in ('v', 'm') then 'as ' || pg_get_viewdef(c.oid) end) as extra
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where ${OURS} and c.relkind in ('r', 'p', 'S', 'v', 'm')
   order by c.relkind = 'S', c.relname`;

const COLUMNS = `
  select c.relname as relation,
         concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
                   case when a.attgenerated <> '' then 'generated always as' when d.adbin is not null then 'default' end,
                   pg_get_expr(d.adbin, d.adrelid)) as text
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where ${OURS} and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
   order by c.relname, a.attnum`;

// PostgreSQL 18 lists "not null" among the constraints too; it is shown with its column.
const CONSTRAINTS = `
  select c.relname as relation, format('constraint %s %s', k.conname, pg_get_constraintdef(k.oid)) as text
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
   where ${OURS} and k.contype <> 'n'
   order by c.relname, k.contype = 'c', k.conname`;

const INDEXES = `
  select c.relname as relation,
         format('%sindex %s %s', case when x.indisunique then 'unique ' end, i.relname, regexp_replace(pg_get_indexdef(i.oid), '^.* USING ', '')) ||
         case when i.reloptions is not null then ' with (' || array_to_string(i.reloptions, ', ') || ')' else '' end as text
    from pg_index x
    join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
    join pg_namespace n on n.oid = c.relnamespace
   where ${OURS} and not exists (select from pg_constraint k where k.conindid = x.indexrelid and k.contype in ('p', 'u', 'x'))
   order by c.relname, i.relname`;

const FUNCTIONS = `
  select pg_get_functiondef(p.oid) as text
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
   where n.nspname = 'posthorn' and p.prokind in ('f', 'p')
   order by p.proname, p.oid::regprocedure::text`;

const TRIGGERS = `
  select c.relname as relation, pg_get_triggerdef(t.oid) as text
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
   where ${OURS} and not t.tgisinternal
   order by c.relname, t.tgname`;
