/** A body that is too large is answered with 413, and clients in several languages can read that answer. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { missingProgram, needs } from '../support/needs.ts';
import { ADMIN_KEY, usePosthorn } from '../support/posthorn.ts';

// A process of its own: a client in the same process would never send while the server answers.
const posthorn = usePosthorn();
const MB = 1_000_000;
const run = promisify(execFile);

const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
const PATHS = ['/v1/endpoints', '/v1/events'];
/** Several times: whether a client sees a reset is a race. */
const TIMES = 5;

async function* chunksOf(bytes: number): AsyncGenerator<Buffer> {
  const chunk = Buffer.alloc(MB, ' ');
  for (let sent = 0; sent < bytes; sent += MB) yield chunk;
}

describe.each([8 * MB, 60 * MB])('413 of %d bytes is readable', (bytes) => {
  test('with fetch', async () => {
    for (let n = 0; n < TIMES; n += 1)
      for (const path of PATHS) {
        const body = Buffer.alloc(bytes, ' ');
        const answer = await fetch(`${posthorn.url}${path}`, { method: 'POST', headers, body });
        expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([413, 'too_large']);
      }
  });

  test('with undici, with and without a length', async () => {
    for (let n = 0; n < TIMES; n += 1)
      for (const body of [Buffer.alloc(bytes, ' '), Readable.from(chunksOf(bytes))]) {
        const answer = await request(`${posthorn.url}/v1/events`, { method: 'POST', headers, body });
        expect([answer.statusCode, ((await answer.body.json()) as { code: string }).code]).toEqual([
          413,
          'too_large',
        ]);
      }
  });

  test('with Python', needs(missingProgram('python3')), async () => {
    const { stdout } = await run('python3', ['-c', PYTHON, posthorn.url, ADMIN_KEY, `${bytes}`, `${TIMES}`]);
    expect(stdout.trim().split('\n')).toEqual(Array(TIMES).fill('413 too_large'));
  });

  test('with Go', { timeout: 180_000, ...needs(missingProgram('go')) }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'posthorn-go-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'main.go'), GO);
    const args = ['run', join(folder, 'main.go'), posthorn.url, ADMIN_KEY, `${bytes}`, `${TIMES}`];
    const { stdout } = await run('go', args);
    expect(stdout.trim().split('\n')).toEqual(Array(TIMES).fill('413 too_large'));
  });
});

const PYTHON = `
import json, sys, urllib.request, urllib.error
url, key, size, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for _ in range(times):
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    request = urllib.request.Request(url + "/v1/events", b" " * size, headers)
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["code"])
`;

const GO = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

func main() {
	size, _ := strconv.Atoi(os.Args[3])
	times, _ := strconv.Atoi(os.Args[4])
	for range times {
		body := bytes.Repeat([]byte(" "), size)
		request, _ := http.NewRequest("POST", os.Args[1]+"/v1/events", bytes.NewReader(body))
		request.Header.Set("authorization", "Bearer "+os.Args[2])
		request.Header.Set("content-type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		var problem struct{ Code string }
		json.NewDecoder(answer.Body).Decode(&problem)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, problem.Code)
	}
}
`;
