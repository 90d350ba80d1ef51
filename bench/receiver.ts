/**
 * A minimal receiver: answers 200 and counts requests. `/fail…` answers 500, `/hang…` never answers, `/slow/25000…`
 * answers 200 after that many milliseconds. The parent process asks for the counts.
 */
import { createServer } from 'node:net';

const OK_RESPONSE = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
const HEADER_END = Buffer.from('\r\n\r\n');
const CONTENT_LENGTH = /content-length: (\d+)/i;
const SENT_AT = /"sent":(\d+(?:\.\d+)?)/;

let received = 0;
let latencies: number[] = [];
let isRecording = false;

const server = createServer({ noDelay: true }, (socket) => {
  let buffered: Buffer = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    for (;;) {
      const headerEnd = buffered.indexOf(HEADER_END);
      if (headerEnd === -1) return;
      const head = buffered.toString('latin1', 0, headerEnd);
      const length = Number(CONTENT_LENGTH.exec(head)?.[1] ?? 0);
      const end = headerEnd + 4 + length;
      if (buffered.length < end) return;
      const path = head.slice(5, head.indexOf(' ', 5));
      if (isRecording) {
        const sent = SENT_AT.exec(buffered.toString('latin1', headerEnd + 4, Math.min(end, headerEnd + 400)));
        if (sent !== null && path.startsWith('/ok'))
          latencies.push(performance.timeOrigin + performance.now() - Number(sent[1]));
      }
      buffered = buffered.subarray(end);
      received += 1;
      if (path.startsWith('/hang')) continue;
      if (path.startsWith('/slow/')) {
        setTimeout(() => socket.write(OK_RESPONSE), Number(path.split('/')[2]));
        continue;
      }
      if (path.startsWith('/fail')) socket.write('HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n');
      else socket.write(OK_RESPONSE);
    }
  });
});

server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port });
});
process.on('message', (message: { ask?: 'count' | 'latencies'; record?: boolean }) => {
  if (message.record !== undefined) {
    isRecording = message.record;
    latencies = [];
  }
  if (message.ask === 'count') process.send?.({ count: received });
  if (message.ask === 'latencies') {
    process.send?.({ latencies });
    latencies = [];
  }
});
process.on('disconnect', () => process.exit(0));
