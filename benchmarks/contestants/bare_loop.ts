/**
 * The floor: a program that lists and watches by hand and does nothing else. It fetches, cuts the list at the
 * ends of its items and the watch at the ends of its lines, decodes, parses and puts into a Map. No
 * validation, no index, no handlers, nothing that survives an error.
 *
 * @module
 */

import { type Contestant, type Hooks, measure } from "./harness.ts";
import type { Task } from "../lib/measurement.ts";

interface Pod {
  metadata: { name: string; namespace: string; resourceVersion: string };
}

const [QUOTE, BACKSLASH, OPEN, CLOSE, NEWLINE] = [0x22, 0x5c, 0x7b, 0x7d, 0x0a];
const decoder = new TextDecoder();
const store = new Map<string, Pod>();
let resourceVersion = "";

/** Fetches, and calls `take` with what arrives, after what `take` left over of the last time. */
async function read(url: string, take: (bytes: Uint8Array) => number): Promise<void> {
  const response = await fetch(url);
  let rest = new Uint8Array(0);
  for await (const chunk of response.body!) {
    let bytes = chunk;
    if (rest.length > 0) {
      bytes = new Uint8Array(rest.length + chunk.length);
      bytes.set(rest);
      bytes.set(chunk, rest.length);
    }
    rest = bytes.subarray(take(bytes));
  }
}

async function list(server: string): Promise<void> {
  let [depth, start, at] = [0, 0, 0];
  let [isString, isHead] = [false, true];
  await read(`${server}/api/v1/pods`, (bytes) => {
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (isString) {
        if (byte === BACKSLASH) at++;
        else if (byte === QUOTE) isString = false;
      } else if (byte === QUOTE) isString = true;
      else if (byte === OPEN) {
        if (++depth === 2) start = at;
      } else if (byte === CLOSE && --depth === 1) {
        const object = JSON.parse(decoder.decode(bytes.subarray(start, at + 1)));
        // The list's own metadata is the first object in it.
        if (isHead) resourceVersion = object.resourceVersion;
        else store.set(`${object.metadata.namespace}/${object.metadata.name}`, object);
        isHead = false;
        start = at + 1;
      }
    }
    const taken = start;
    at -= taken;
    start = 0;
    return taken;
  });
}

async function watch(server: string, hooks: Hooks): Promise<void> {
  await read(`${server}/api/v1/pods?watch=true&resourceVersion=${resourceVersion}`, (bytes) => {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      const { object } = JSON.parse(decoder.decode(bytes.subarray(start, end)));
      store.set(`${object.metadata.namespace}/${object.metadata.name}`, object);
      hooks.onUpdate(object.metadata.resourceVersion);
      start = end + 1;
    }
    return start;
  });
}

function newContestant({ server }: Task): Contestant {
  return {
    async start(hooks) {
      await list(server);
      watch(server, hooks);
    },
    size: () => store.size,
  };
}

await measure(newContestant);
