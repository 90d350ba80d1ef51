import { useState } from 'react';
import { call } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useMay } from '../api/session.ts';
import type { EventType } from '../api/types.ts';
import { Badge, Button, Card, Empty, Notice, PageHead } from '../ui/basics.tsx';
import { Json } from '../ui/code.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { Check, errorAt, TextArea, TextField } from '../ui/fields.tsx';
import { PagedTable } from '../ui/table.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast } from '../ui/toasts.tsx';
import { PublishDialog } from './publish.tsx';
import { parseJson } from './test-event.tsx';

export function EventTypesPage() {
  usePageTitle('Event types');
  const may = useMay();
  const list = usePages<EventType>('/v1/event-types', ({ name }) => name);
  const [editing, setEditing] = useState<Partial<EventType> | null>(null);
  const [publishing, setPublishing] = useState<EventType | null>(null);
  const [shown, setShown] = useState<EventType | null>(null);
  const missing = list.error?.status === 404;
  return (
    <>
      <PageHead
        title="Event types"
        below={
          <p className="soft">
            The catalogue that consumers read: what there is, what it means, and what it looks like.
          </p>
        }
      >
        {may.admin && !missing && (
          <Button kind="primary" icon="plus" onClick={() => setEditing({})}>
            Add event type
          </Button>
        )}
      </PageHead>
      {missing ? (
        <Notice title="No catalogue here">This server does not offer /v1/event-types.</Notice>
      ) : (
        <Card>
          <PagedTable
            label="Event types"
            list={list}
            keyOf={({ name }) => name}
            rowHeight={51}
            empty={
              <Empty icon="types" title="The catalogue is empty">
                Events of any type can be published without it. Types that are described here get checked
                examples and a place where consumers find them.
              </Empty>
            }
            columns={[
              {
                name: 'Type',
                cell: (type) => (
                  <span className="cell-two">
                    <span className="mono truncate">{type.name}</span>
                    <span className="small faint truncate">{type.description}</span>
                  </span>
                ),
              },
              {
                name: 'State',
                width: 130,
                wideOnly: true,
                cell: (type) =>
                  type.deprecated ? (
                    <Badge tone="warn">Deprecated</Badge>
                  ) : type.schema == null ? (
                    <Badge>No schema</Badge>
                  ) : (
                    <Badge tone="good">Schema</Badge>
                  ),
              },
              {
                name: 'Actions',
                width: may.write ? 220 : 96,
                head: <span className="sr-only">Actions</span>,
                cell: (type) => (
                  <span className="row" style={{ justifyContent: 'flex-end' }}>
                    <Button kind="small" onClick={() => setShown(type)}>
                      Show
                    </Button>
                    {may.write && (
                      <Button kind="small" onClick={() => setPublishing(type)}>
                        Publish
                      </Button>
                    )}
                    {may.admin && (
                      <Button kind="small" onClick={() => setEditing(type)}>
                        Edit
                      </Button>
                    )}
                  </span>
                ),
              },
            ]}
          />
        </Card>
      )}
      {shown !== null && <TypeView type={shown} onClose={() => setShown(null)} />}
      {editing !== null && (
        <TypeDialog
          type={editing}
          onClose={() => {
            setEditing(null);
            void list.refresh();
          }}
        />
      )}
      {publishing !== null && (
        <PublishDialog
          type={publishing.name}
          {...(publishing.example != null && { example: JSON.stringify(publishing.example, null, 2) })}
          onClose={() => setPublishing(null)}
        />
      )}
    </>
  );
}

function TypeView({ type, onClose }: { type: EventType; onClose: () => void }) {
  return (
    <Dialog title={type.name} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="soft">{type.description}</p>
        <h3>Example</h3>
        {type.example == null ? (
          <p className="faint">None.</p>
        ) : (
          <Json text={show(type.example)} label="example" />
        )}
        <h3>JSON Schema</h3>
        {type.schema == null ? (
          <p className="faint">None.</p>
        ) : (
          <Json text={show(type.schema)} label="schema" />
        )}
      </div>
    </Dialog>
  );
}

const show = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2));
const read = (text: string): unknown => (text.trim() === '' ? null : parseJson(text));

function TypeDialog({ type, onClose }: { type: Partial<EventType>; onClose: () => void }) {
  const isNew = type.name === undefined;
  const [name, setName] = useState(type.name ?? '');
  const [description, setDescription] = useState(type.description ?? '');
  const [schema, setSchema] = useState(show(type.schema));
  const [example, setExample] = useState(show(type.example));
  const [deprecated, setDeprecated] = useState(type.deprecated ?? false);
  return (
    <FormDialog
      title={isNew ? 'Add an event type' : name}
      submit="Save"
      wide
      onClose={onClose}
      onSubmit={async () => {
        await call('PUT', `/v1/event-types/${encodeURIComponent(name)}`, {
          description,
          schema: read(schema),
          example: read(example),
          deprecated,
        });
        toast('Saved');
        onClose();
      }}
    >
      {(error) => {
        const errors = error?.errors ?? [];
        return (
          <>
            {isNew && (
              <TextField
                label="Name"
                mono
                value={name}
                onChange={setName}
                placeholder="order.created"
                required
                error={errorAt(errors, 'name')}
              />
            )}
            <TextField
              label="Description"
              value={description}
              onChange={setDescription}
              error={errorAt(errors, 'description')}
            />
            <TextArea
              label="JSON Schema of the data (optional)"
              rows={8}
              value={schema}
              onChange={setSchema}
              error={errorAt(errors, 'schema')}
            />
            <TextArea
              label="Example of the data (optional)"
              rows={6}
              value={example}
              onChange={setExample}
              error={errorAt(errors, 'example')}
            />
            <Check
              checked={deprecated}
              onChange={setDeprecated}
              hint="Still accepted; consumers see that they should move on."
            >
              Deprecated
            </Check>
          </>
        );
      }}
    </FormDialog>
  );
}
