import type { EventType, EventTypeSettings } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { Checkbox, findFieldError, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { parseOptionalJson } from '../ui/json-text.ts';
import { fromLocalInput, toLocalInput } from '../ui/time-range.ts';
import { showToast } from '../ui/toasts.tsx';
import { VALIDATION_MODES, type ValidationChoice } from './validation-modes.ts';

const toText = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2));

/** Edits the event type, or adds one if none is given. */
export function EventTypeForm({ type, onClose }: { type?: EventType; onClose: () => void }) {
  const [name, setName] = useState(type?.name ?? '');
  const [description, setDescription] = useState(type?.description ?? '');
  const [schema, setSchema] = useState(toText(type?.schema));
  const [example, setExample] = useState(toText(type?.example));
  const [isDeprecated, setDeprecated] = useState(type?.deprecated ?? false);
  const [sunset, setSunset] = useState(type?.sunset_at == null ? '' : toLocalInput(type.sunset_at));
  const [validation, setValidation] = useState<ValidationChoice>(type?.validation ?? '');
  const save = async (): Promise<void> => {
    await callApi('PUT', `/v1/event-types/${encodeURIComponent(name)}`, {
      description,
      schema: parseOptionalJson(schema) as EventType['schema'],
      example: parseOptionalJson(example),
      deprecated: isDeprecated,
      sunset_at: sunset === '' ? null : fromLocalInput(sunset),
      validation: validation === '' ? null : validation,
    } satisfies EventTypeSettings);
    showToast('Saved');
    onClose();
  };
  return (
    <FormDialog
      title={type === undefined ? 'Add an event type' : name}
      submitLabel="Save"
      wide
      onClose={onClose}
      onSubmit={save}
    >
      {(error) => {
        const errorOf = (path: string) => findFieldError(error?.errors ?? [], path);
        return (
          <>
            {type === undefined && (
              <TextField
                label="Name"
                mono
                value={name}
                onChange={setName}
                placeholder="order.created"
                required
                error={errorOf('name')}
              />
            )}
            <TextField
              label="Description"
              value={description}
              onChange={setDescription}
              error={errorOf('description')}
            />
            <TextArea
              label="JSON Schema of the data (optional)"
              rows={8}
              value={schema}
              onChange={setSchema}
              error={errorOf('schema')}
            />
            <TextArea
              label="Example of the data (optional)"
              rows={6}
              value={example}
              onChange={setExample}
              error={errorOf('example')}
            />
            <SelectField
              label="Validation"
              options={VALIDATION_MODES}
              value={validation}
              onChange={setValidation}
              hint="Checks the data of published events against the latest version, or against the schema above if there is none."
              error={errorOf('validation')}
            />
            <Checkbox
              checked={isDeprecated}
              onChange={setDeprecated}
              hint="Posthorn still accepts and delivers its events. Deliveries announce that the type is deprecated."
            >
              Deprecated
            </Checkbox>
            <TextField
              type="datetime-local"
              label="Sunset (optional, your time zone)"
              value={sunset}
              onChange={setSunset}
              hint="When you plan to end the type. Deliveries announce this time. Nothing stops by itself."
              error={errorOf('sunset_at')}
            />
          </>
        );
      }}
    </FormDialog>
  );
}
