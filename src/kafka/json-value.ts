/** The JSON value of a record. Parts of it are cut out as bytes, so that big integers and key order survive. */

/** Returns the bytes of the fields of a JSON object. Null: the text is JSON, but not an object. Throws if it is not JSON. */
export type ReadFields = (json: Buffer) => ReadonlyMap<string, Buffer> | null;

export class JsonValue {
  readonly #readFields: ReadFields;
  readonly #bytes: Buffer;
  #fields: ReadonlyMap<string, Buffer> | null | undefined;

  constructor(bytes: Buffer, readFields: ReadFields) {
    this.#bytes = bytes;
    this.#readFields = readFields;
  }

  /** Null: not an object. Also if the value is not JSON at all: the accept stage reports that better. */
  get fields(): ReadonlyMap<string, Buffer> | null {
    if (this.#fields === undefined) {
      try {
        this.#fields = this.#readFields(this.#bytes);
      } catch {
        this.#fields = null;
      }
    }
    return this.#fields;
  }

  /** Returns the bytes at a path, or null if there is nothing. */
  at(names: readonly string[]): Buffer | null {
    let bytes: Buffer = this.#bytes;
    let fields = names.length === 0 ? null : this.fields;
    for (const [index, name] of names.entries()) {
      const found = fields?.get(name);
      if (found === undefined) return null;
      bytes = found;
      // It is part of valid JSON, so this does not throw.
      if (index < names.length - 1) fields = this.#readFields(found);
    }
    return bytes;
  }

  /** Returns the text of a field of the object. Null: the field is missing or is not a string. */
  textOf(name: string): string | null {
    const bytes = this.fields?.get(name);
    return bytes === undefined ? null : textIn(bytes);
  }
}

/** Returns the text of a JSON string, or null. */
export function textIn(json: Buffer): string | null {
  const value: unknown = parse(json);
  return typeof value === 'string' ? value : null;
}

/** Returns the value of JSON text, or undefined if it is not JSON. */
export function parse(json: Buffer): unknown {
  try {
    return JSON.parse(json.toString());
  } catch {
    return undefined;
  }
}
