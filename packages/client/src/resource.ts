import type { Request, RequestOptions, Transport } from './transport.ts';

export interface Page<T> {
  readonly data: T[];
  /** Null: this is the last page. */
  readonly next_cursor: string | null;
}

/**
 * A lazy list: `await` fetches one page, `for await` fetches all items, page by page.
 *
 *   const { data } = await posthorn.endpoints.list({ limit: 10 });
 *   for await (const endpoint of posthorn.endpoints.list()) …
 */
export class PageRequest<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetchPage: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(fetchPage: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#fetchPage = fetchPage;
  }

  // biome-ignore lint/suspicious/noThenProperty: callers await it
  then<Result = Page<T>, Failure = never>(
    onPage?: ((page: Page<T>) => Result | PromiseLike<Result>) | null,
    onError?: ((error: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.#fetchPage(undefined).then(onPage, onError);
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

/** A group of operations. Its subclasses and their methods are generated. */
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
