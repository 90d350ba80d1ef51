/** The smallest receiver there is: reads the request, answers 200, counts. Counts go to the parent on request. */
import { createServer } from 'node:net';

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
const HEADER_END = Buffer.from('\r\n\r\n');
const LENGTH = /content-length: (\d+)/i;
const SENT_AT = /"sent":(\d+(?:\.\d+)?)/;

let received = 0;
let latencies: number[] = [];
let recordLatency = false;
const hanging = new Set(process.argv.slice(2));

const server = createServer({ noDelay: true }, (socket) => {
  let buffered: Buffer = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    for (;;) {
      const headerEnd = buffered.indexOf(HEADER_END);
      if (headerEnd === -1) return;
      const head = buffered.toString('latin1', 0, headerEnd);
      const length = Number(LENGTH.exec(head)?.[1] ?? 0);
      const end = headerEnd + 4 + length;
      if (buffered.length < end) return;
      const path = head.slice(5, head.indexOf(' ', 5));
      if (recordLatency) {
        const sent = SENT_AT.exec(buffered.toString('latin1', headerEnd + 4, Math.min(end, headerEnd + 400)));
        if (sent !== null && path.startsWith('/ok'))
          latencies.push(performance.timeOrigin + performance.now() - Number(sent[1]));
      }
      buffered = buffered.subarray(end);
      received += 1;
      if (path.startsWith('/hang') || hanging.has(path)) continue;
      if (path.startsWith('/fail')) socket.write('HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n');
      else socket.write(ANSWER);
    }
  });
});

server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port });
});
process.on('message', (message: { ask?: 'count' | 'latencies'; record?: boolean }) => {
  if (message.record !== undefined) {
    recordLatency = message.record;
    latencies = [];
  }
  if (message.ask === 'count') process.send?.({ count: received });
  if (message.ask === 'latencies') {
    process.send?.({ latencies });
    latencies = [];
  }
});
process.on('disconnect', () => process.exit(0));
