import { JsonBlock } from '../ui/code-block.tsx';
import { listSchemaFields, MAX_FIELDS, type SchemaField } from '../ui/schema-fields.ts';
import { type Column, Table } from '../ui/table.tsx';

const COLUMNS: readonly Column<SchemaField>[] = [
  { name: 'Field', render: ({ path }) => <span className="mono">{path}</span> },
  { name: 'Type', width: '28%', render: ({ type }) => type },
  { name: 'Required', width: 90, render: ({ isRequired }) => (isRequired ? 'yes' : 'no') },
  {
    name: 'Description',
    width: '32%',
    hideOnPhone: true,
    render: ({ description }) => description,
  },
];

/** The schema of a version: a table of its fields, and the JSON itself. */
export function VersionSchema({ schema, version }: { schema: unknown; version: string }) {
  if (schema == null) return <p className="faint">None.</p>;
  const fields = listSchemaFields(schema);
  const json = <JsonBlock text={JSON.stringify(schema, null, 2)} label={`schema of ${version}`} />;
  if (fields.length === 0) return json;
  return (
    <>
      <div className="schema-fields">
        <Table
          label={`Fields of ${version}`}
          rows={fields}
          getKey={({ path }) => path}
          columns={COLUMNS}
          empty={null}
        />
        {fields.length === MAX_FIELDS && <p className="faint">The first {MAX_FIELDS} fields.</p>}
      </div>
      <details>
        <summary>As JSON</summary>
        {json}
      </details>
    </>
  );
}
