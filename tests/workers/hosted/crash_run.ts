/**
 * An object in workerd that is killed at random moments, while objects change and a client watches.
 * @module
 */

import assert from "node:assert/strict";
import type { KubernetesObject } from "@listwatch/cache";
import { metaNamespaceKey } from "@listwatch/cache";
import type { CountedUpstream } from "./counted_upstream.ts";

/** A workerd that serves an object. */
export interface CrashingHost {
  readonly url: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with the same data. */
  restart(): Promise<void>;
}

/** What a run needs. */
export interface CrashRunOptions {
  readonly host: CrashingHost;
  readonly upstream: CountedUpstream;
  /** Where the host serves what is written. */
  readonly path: string;
  /** One write of any kind. Returns the state that it made; `undefined` for a delete. */
  write(): Promise<KubernetesObject | undefined>;
  /** What the server has. */
  list(): Promise<readonly KubernetesObject[]>;
  /** How many times workerd is killed. */
  readonly kills: number;
  readonly random: () => number;
}

/** Runs it, and asserts that nothing was lost, invented, or shown and then lost. */
export async function crashRun(options: CrashRunOptions): Promise<void> {
  const { host, upstream, path, random } = options;
  const url = `${host.url}${path}`;
  const stop = new AbortController();
  const written = new Set<string>();
  await options.write().then((object) => object && written.add(stateOf(object)));
  await until(async () => assert.equal((await fetchList(url)).isSynced, true));
  const reader = new ResumingReader(url);
  const reading = reader.run(stop.signal);
  const writing = (async () => {
    while (!stop.signal.aborted) {
      const object = await options.write();
      if (object !== undefined) written.add(stateOf(object));
      await pause(random() * 10);
    }
  })();

  for (let kill = 1; kill <= options.kills; kill++) {
    await pause(20 + random() * 400);
    await host.kill();
    const seen = reader.highest;
    await pause(random() * 100);
    await host.restart();
    const { resourceVersion } = await until(() => fetchList(url));
    assert.ok(
      resourceVersion >= seen,
      `kill ${kill}: a reader had seen ${seen}, and ${resourceVersion} is left`,
    );
  }

  stop.abort();
  await writing;
  const expected = (await options.list()).map(stateOf).sort();
  await until(async () => assert.deepEqual((await fetchList(url)).states, expected));
  await reading;
  const last = new AbortController();
  const rest = reader.run(last.signal);
  await until(() => assert.deepEqual(reader.states(), expected, "the reader"));
  last.abort();
  await rest;
  const invented = [...reader.seen].filter((state) => !written.has(state));
  assert.deepEqual(invented, [], "states that were never written");
  const refused = upstream.requests.filter(({ kind, status }) => kind === "watch" && status === 410).length;
  const lists = upstream.requests.filter(({ kind }) => kind === "list" || kind === "stream");
  // One may be answered by a stream that is refused and a list.
  assert.ok(
    lists.length <= 1 + 2 * refused,
    `${lists.length} lists after ${refused} watches that were too old`,
  );
  console.log(
    `${options.kills} kills, ${written.size} states written, ${reader.watches} watches of the reader, ` +
      `${reader.lists} lists of the reader; upstream: ${lists.length} lists, ${
        upstream.count("watch")
      } watches, ${refused} of them 410`,
  );
}

/** A client that lists once, and resumes its watch where it was. */
class ResumingReader {
  readonly #url: string;
  readonly #objects = new Map<string, string>();
  #version = "";
  /** All states that it was shown. */
  readonly seen: Set<string> = new Set();
  lists = 0;
  watches = 0;
  highest = 0;

  constructor(url: string) {
    this.#url = url;
  }

  states(): string[] {
    return [...this.#objects.values()].sort();
  }

  async run(signal: AbortSignal): Promise<void> {
    // A body whose connection was cut in the moment of the abort may stay silent.
    const ended = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true })
    );
    while (!signal.aborted) {
      try {
        await Promise.race([this.#watch(signal), ended]);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      await pause(20);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    if (this.#version === "") await this.#list(signal);
    const query = `?watch=1&allowWatchBookmarks=true&resourceVersion=${this.#version}`;
    const response = await fetch(this.#url + query, { signal });
    if (response.status !== 200) return void await response.body?.cancel();
    this.watches++;
    let rest = "";
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (!this.#receive(JSON.parse(line))) return;
    }
  }

  // deno-lint-ignore no-explicit-any
  #receive({ type, object }: any): boolean {
    if (type === "ERROR") {
      assert.equal(object.code, 410, JSON.stringify(object));
      this.#version = "";
      return false;
    }
    this.#version = object.metadata.resourceVersion;
    if (type === "BOOKMARK") {
      this.highest = Math.max(this.highest, Number(this.#version));
      return true;
    }
    const key = metaNamespaceKey(object);
    if (type === "DELETED") assert.ok(this.#objects.delete(key), `${key} was deleted, which was not there`);
    else {
      assert.equal(this.#objects.has(key), type === "MODIFIED", `${type} of ${key}`);
      this.#objects.set(key, stateOf(object));
      this.seen.add(stateOf(object));
      this.highest = Math.max(this.highest, Number(this.#version));
    }
    return true;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const response = await fetch(this.#url, { signal });
    const list = await response.json();
    if (response.status !== 200) throw new Error(`the list was answered ${response.status}`);
    this.lists++;
    this.#version = list.metadata.resourceVersion;
    this.highest = Math.max(this.highest, Number(this.#version));
    this.#objects.clear();
    for (const item of list.items) {
      this.#objects.set(metaNamespaceKey(item), stateOf(item));
      this.seen.add(stateOf(item));
    }
  }
}

async function fetchList(url: string) {
  const response = await fetch(`${url}?resourceVersion=0`);
  const list = await response.json();
  assert.equal(response.status, 200, JSON.stringify(list));
  return {
    isSynced: response.headers.get("Cache-Synced") === "true",
    resourceVersion: Number(list.metadata.resourceVersion),
    states: list.items.map(stateOf).sort() as string[],
  };
}

/** An object at a version, in a word. */
function stateOf({ metadata }: KubernetesObject): string {
  return `${metadata?.namespace}/${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function until<R>(check: () => R | Promise<R>): Promise<R> {
  const untilMs = performance.now() + 120_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
    await pause(20);
  }
}
