/**
 * A client that reads lists page by page, from several connections at once: what `--million` measures with.
 * Runs on Node. Its argument is JSON. It prints one line of JSON.
 *
 * Pages are due at fixed times, whether or not those before them have come; the time of a
 * page is counted from when it was due, so that a server that answers nothing for a while
 * is late for each page that was due meanwhile.
 *
 * @module
 */

import { Agent, get, type IncomingMessage } from "node:http";
import process from "node:process";
import type { PageFigures, PageReaderArguments } from "../lib/million.ts";

const { url, paths, connections, seconds, perSecond } = JSON.parse(process.argv[2]) as PageReaderArguments;

const agent = new Agent({ keepAlive: true, maxSockets: connections });
/** The beginning of a list has its metadata, and with it the token of the next page. */
const HEAD_BYTES = 1_024;

interface Answer {
  readonly status: number;
  readonly bytes: number;
  readonly token: string | undefined;
}

function read(path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const answered = async (response: IncomingMessage) => {
      let head = "";
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Uint8Array>) {
        if (bytes < HEAD_BYTES) head += new TextDecoder().decode(chunk.subarray(0, HEAD_BYTES));
        bytes += chunk.length;
      }
      const token = /"continue":"([^"]*)"/.exec(head)?.[1];
      resolve({ status: response.statusCode ?? 0, bytes, token: token || undefined });
    };
    get(`${url}${path}`, { agent }, (response) => answered(response).catch(reject)).on("error", reject);
  });
}

const times: number[] = [];
const firstTimes: number[] = [];
let bytes = 0;
let refused = 0;
let ended = 0;
let nextPath = 0;
const intervalMs = perSecond === 0 ? 0 : 1_000 / perSecond;
const startMs = performance.now();
const endMs = startMs + seconds * 1_000;
let due = 0;

/** One list after the other, page by page. */
async function readLists(): Promise<void> {
  let list = "";
  let token: string | undefined;
  while (true) {
    const dueMs = intervalMs === 0 ? performance.now() : startMs + due++ * intervalMs;
    if (Math.max(dueMs, performance.now()) >= endMs) return;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (token === undefined) list = paths[nextPath++ % paths.length];
    const isFirst = token === undefined;
    const answer = await read(token === undefined ? list : `${list}&continue=${encodeURIComponent(token)}`);
    const tookMs = performance.now() - dueMs;
    bytes += answer.bytes;
    if (answer.status === 200) (isFirst ? firstTimes : times).push(tookMs);
    else refused++;
    // A refusal has the token of the rest of the list, as it is then.
    token = answer.token;
    if (token === undefined) ended++;
  }
}

await Promise.all(Array.from({ length: connections }, readLists));
const figures: PageFigures = {
  seconds: (performance.now() - startMs) / 1_000,
  times: times.concat(firstTimes).sort((a, b) => a - b),
  firstTimes: firstTimes.sort((a, b) => a - b),
  bytes,
  refused,
  ended,
};
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
