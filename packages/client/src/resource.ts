import type { Request, RequestOptions, Transport } from './transport.ts';

export interface Page<T> {
  readonly data: T[];
  /** Null: this was the last page. */
  readonly next_cursor: string | null;
}

/**
 * A list that is asked for when it is used: `await` gives one page, `for await` everything, page by page.
 *
 *   const { data } = await posthorn.endpoints.list({ limit: 10 });
 *   for await (const endpoint of posthorn.endpoints.list()) …
 */
export class PageRequest<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetchPage: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(fetchPage: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#fetchPage = fetchPage;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting it is what it is for
  then<Done = Page<T>, Failed = never>(
    done?: ((page: Page<T>) => Done | PromiseLike<Done>) | null,
    failed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.#fetchPage(undefined).then(done, failed);
  }

  async *pages(): AsyncGenerator<Page<T>> {
    let cursor: string | undefined;
    do {
      const page = await this.#fetchPage(cursor);
      yield page;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const page of this.pages()) yield* page.data;
  }
}

/** A chapter of the API. The methods of each are generated. */
export class Resource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  protected async call<T>(
    method: string,
    path: string,
    request: Request,
    options?: RequestOptions,
  ): Promise<T> {
    return (await this.#transport.request(method, path, request, options)) as T;
  }

  protected pages<T>(
    method: string,
    path: string,
    request: Request,
    options?: RequestOptions,
  ): PageRequest<T> {
    return new PageRequest<T>((cursor) =>
      this.call(
        method,
        path,
        cursor === undefined ? request : { ...request, query: { ...request.query, cursor } },
        options,
      ),
    );
  }
}
