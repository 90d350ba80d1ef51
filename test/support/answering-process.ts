/** A process with an HTTP server: reports its port, then each request, and answers 30 ms later. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    process.send?.('got it');
    setTimeout(() => response.end('ok'), 30);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
