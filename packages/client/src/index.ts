/**
 * The client for Posthorn's API.
 *
 *   const posthorn = new Posthorn({ url: 'https://posthorn.example.com', key: process.env.POSTHORN_KEY });
 *   await posthorn.events.publish({ type: 'order.created', data: { order_id: 1001 } });
 */
import { Resources } from './generated.ts';
import { type PosthornOptions, Transport } from './transport.ts';

export class Posthorn extends Resources {
  constructor(options: PosthornOptions) {
    super(new Transport(options));
  }
}

export {
  ConnectionError,
  PosthornError,
  ProblemError,
  TimeoutError,
  UnexpectedAnswerError,
} from './errors.ts';
export type * from './generated.ts';
export type { Page, PageRequest } from './resource.ts';
export type { PosthornOptions, RequestOptions } from './transport.ts';
