import { InMemoryApiServer, type InMemoryApiServerOptions } from "@listwatch/cache/testing";

/** Any JSON. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** A request to a server in memory; a body is sent as JSON. */
export async function call(
  server: InMemoryApiServer,
  method: string,
  path: string,
  options: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
): Promise<{ readonly status: number; readonly body: Json; readonly headers: Headers }> {
  const { body, headers } = options;
  const response = await server.fetch(`http://in-memory${path}`, {
    method,
    headers: { ...(body !== undefined && { "Content-Type": "application/json" }), ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** A PATCH. */
export function patch(
  server: InMemoryApiServer,
  path: string,
  body: unknown,
  type: "merge" | "json" | "strategic-merge" = "merge",
): ReturnType<typeof call> {
  return call(server, "PATCH", path, { body, headers: { "Content-Type": `application/${type}-patch+json` } });
}

/** Reads a watch event by event. */
export class WatchReader {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #events: Json[] = [];
  /** The sizes of the chunks that came. */
  readonly chunkSizes: number[] = [];
  #rest = "";

  constructor(response: Response) {
    this.response = response;
    this.#reader = response.body!.getReader();
  }

  /** The next events, so many of them; fewer if the watch ends. */
  async take(count: number): Promise<Json[]> {
    while (this.#events.length < count) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { done, value } = await this.#reader.read();
      if (done) break;
      this.chunkSizes.push(value.byteLength);
      const lines = (this.#rest + this.#decoder.decode(value, { stream: true })).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) this.#events.push(JSON.parse(line));
    }
    return this.#events.splice(0, count);
  }

  /** Everything up to the end. */
  rest(): Promise<Json[]> {
    return this.take(Infinity);
  }

  /** What came after the last whole line. */
  get tail(): string {
    return this.#rest;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** Opens a watch. */
export async function watch(
  server: InMemoryApiServer,
  path: string,
  init?: RequestInit,
): Promise<WatchReader> {
  return new WatchReader(await server.fetch(`http://in-memory${path}`, init));
}

/** `ADDED shop/web-1 12`, for each event. */
export function summary(events: readonly Json[]): string[] {
  return events.map(({ type, object }) => {
    const { namespace, name, resourceVersion } = object.metadata ?? {};
    const key = name === undefined ? "" : namespace === undefined ? name : `${namespace}/${name}`;
    return [type, key, type === "ERROR" ? object.reason : resourceVersion].filter((part) => part !== "").join(
      " ",
    );
  });
}

/** Runs a test with a server, and closes it. */
export async function withServer(
  options: InMemoryApiServerOptions,
  body: (server: InMemoryApiServer) => Promise<void> | void,
): Promise<void> {
  const server = new InMemoryApiServer(options);
  try {
    await body(server);
  } finally {
    server.close();
  }
}

export const INITIAL_EVENTS =
  "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
