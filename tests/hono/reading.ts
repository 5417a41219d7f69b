import assert from "node:assert/strict";
import type { Hono } from "hono";

/** A body of JSON. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** Asks for JSON, and checks the status. */
export async function get(
  app: Hono,
  path: string,
  options: { status?: number; accept?: string } = {},
): Promise<Json> {
  const response = await app.request(
    path,
    options.accept === undefined ? {} : { headers: { Accept: options.accept } },
  );
  const text = await response.text();
  assert.equal(response.status, options.status ?? 200, text);
  assert.equal(response.headers.get("Content-Type"), "application/json");
  return JSON.parse(text);
}

/** The names of a list's items. */
export function names(list: Json): string[] {
  return list.items.map(({ metadata }: Json) =>
    metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name
  );
}

// As Node's readline, with which @kubernetes/client-node reads watches: https://nodejs.org/api/readline.html
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;

/** An open watch. */
export class WatchReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly response: Response;
  #rest = "";
  #events: Json[] = [];

  constructor(response: Response) {
    this.response = response;
    assert.ok(response.body);
    this.#reader = response.body.getReader();
  }

  /** Opens a watch that is answered 200. */
  static async open(app: Hono, path: string, accept?: string): Promise<WatchReader> {
    const response = await app.request(path, accept === undefined ? {} : { headers: { Accept: accept } });
    assert.equal(response.status, 200);
    return new WatchReader(response);
  }

  /** The next chunk's events; `undefined` at the end. */
  async chunk(): Promise<Json[] | undefined> {
    const { done, value } = await this.#reader.read();
    if (done) return undefined;
    const lines = (this.#rest + new TextDecoder().decode(value)).split(LINE_END);
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => JSON.parse(line));
  }

  /** The next so many events. */
  async events(count: number): Promise<Json[]> {
    while (this.#events.length < count) {
      const chunk = await this.chunk();
      assert.ok(chunk, `the watch ended after ${JSON.stringify(this.#events)}`);
      this.#events.push(...chunk);
    }
    return this.#events.splice(0, count);
  }

  /** The next so many events, in short: `ADDED shop/web-1 12`. */
  async lines(count: number): Promise<string[]> {
    return (await this.events(count)).map(line);
  }

  /** Everything up to the end, in short. */
  async toEnd(): Promise<string[]> {
    const lines = this.#events.splice(0).map(line);
    for (let chunk = await this.chunk(); chunk !== undefined; chunk = await this.chunk()) {
      lines.push(...chunk.map(line));
    }
    return lines;
  }

  /** Whether nothing is there to be read. Call it last: a read stays open. */
  async isSilent(): Promise<boolean> {
    if (this.#events.length > 0) return false;
    let answered = false;
    this.#reader.read().then(() => (answered = true), () => {});
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    return !answered;
  }

  /** The client goes. */
  async cancel(): Promise<void> {
    await this.#reader.cancel();
  }
}

function line({ type, object }: Json): string {
  if (type === "ERROR") return `ERROR ${object.code} ${object.reason}`;
  const { namespace, name, resourceVersion, annotations } = object.metadata;
  if (type === "BOOKMARK") {
    return `BOOKMARK ${resourceVersion}${
      annotations?.["k8s.io/initial-events-end"] === "true" ? " end" : ""
    }`;
  }
  return `${type} ${namespace ? `${namespace}/` : ""}${name} ${resourceVersion}`;
}
