/**
 * What is between a client and the API server: it passes requests on, counts them, and spoils the answers.
 * @module
 */

import type { ServerFetch } from "@listwatch/cache/testing";
import {
  type InterceptOptions,
  type Interceptor,
  InterceptorChain,
  type RecordedRequest,
  recordRequest,
} from "../../src/testing/faults.ts";
import { realClock } from "../../src/util/clock.ts";
import { fixture, pem } from "../../tests/sockets/certificates.ts";

/** The path of the authority of a gate's certificate. */
export const AUTHORITY: string = fixture("ca.crt");

/** Watches whose bytes come in small pieces, with a pause after each. */
export interface Dribble {
  readonly bytes: number;
  readonly pauseMs: number;
}

/** An HTTPS server, for HTTP/1.1 and HTTP/2, in front of an API server. */
export class Gate implements AsyncDisposable {
  /** The requests that came, oldest first. */
  readonly requests: RecordedRequest[] = [];
  readonly port: number;
  readonly #fetch: ServerFetch;
  readonly #interceptors = new InterceptorChain();
  readonly #streams = new Set<WatchStream>();
  readonly #closing = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #watchLimitMs: number | undefined;
  #dribble: Dribble | undefined;

  constructor(fetch: ServerFetch) {
    this.#fetch = fetch;
    this.#server = Deno.serve({
      hostname: "127.0.0.1",
      port: 0,
      cert: pem("server.crt"),
      key: pem("server.key"),
      signal: this.#closing.signal,
      onListen() {},
      onError: () => new Response(null, { status: 502 }),
    }, (request, info) => this.#answer(request, info));
    this.port = this.#server.addr.port;
  }

  /** Adds a function between clients and API server; the result removes it. */
  intercept(interceptor: Interceptor, options: InterceptOptions = {}): () => void {
    return this.#interceptors.add(interceptor, options);
  }

  /**
   * Calls `then` when the next event of an open watch has been
   * sent by half. Nothing more is sent on that watch.
   */
  halveNextEvent(then: () => void): void {
    for (const stream of this.#streams) stream.halveNextEvent(then);
  }

  /** Sends a line on each open watch, and ends it. */
  endWatches(line = ""): void {
    for (const stream of this.#streams) stream.end(line);
  }

  /** Ends new watches cleanly after this time, and open ones at once; `undefined` for no limit. */
  limitWatches(ms: number | undefined): void {
    this.#watchLimitMs = ms;
    if (ms !== undefined) this.endWatches();
  }

  /** How watches are sent from now on; `undefined`: as they come. */
  dribble(dribble: Dribble | undefined): void {
    this.#dribble = dribble;
    for (const stream of this.#streams) stream.dribble = dribble;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of this.#streams) stream.end("");
    this.#closing.abort();
    await this.#server.finished;
  }

  async #answer(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    const record = recordRequest(request, performance.now());
    this.requests.push(record);
    const response = await this.#interceptors.run(request, record, {
      signal: this.#closing.signal,
      clock: realClock,
      serve: (served) => this.#fetch(served, info),
    });
    const headers = new Headers(response.headers);
    // Without this, Deno may compress, and hold back events for that.
    headers.set("Cache-Control", "no-cache, private, no-transform");
    const { status, statusText, body } = response;
    const carried = record.isWatch && status === 200 && body !== null ? this.#carry(body) : body;
    return new Response(carried, { status, statusText, headers });
  }

  #carry(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const stream = new WatchStream(body, () => this.#streams.delete(stream));
    stream.dribble = this.#dribble;
    this.#streams.add(stream);
    if (this.#watchLimitMs !== undefined) {
      const timer = setTimeout(() => stream.end(""), this.#watchLimitMs);
      stream.ended.then(() => clearTimeout(timer));
    }
    return stream.body;
  }
}

const NEWLINE = 10;

/** The answer of one watch. */
class WatchStream {
  readonly body: ReadableStream<Uint8Array>;
  /** Resolves at the end, however it comes. */
  readonly ended: Promise<void>;
  dribble: Dribble | undefined;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #end: () => void;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isEnded = false;
  #onHalf: (() => void) | undefined;

  constructor(source: ReadableStream<Uint8Array>, onEnd: () => void) {
    this.#reader = source.getReader();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = () => {
      if (this.#isEnded) return;
      this.#isEnded = true;
      this.#reader.cancel().catch(() => {});
      onEnd();
      resolve();
    };
    this.body = new ReadableStream({
      start: (controller) => void (this.#controller = controller),
      cancel: () => this.#end(),
    });
    this.#pump();
  }

  halveNextEvent(then: () => void): void {
    this.#onHalf = then;
  }

  end(line: string): void {
    if (this.#isEnded) return;
    if (line !== "") this.#controller.enqueue(new TextEncoder().encode(line));
    this.#end();
    this.#controller.close();
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (this.#isEnded) return;
        if (done) return this.end("");
        if (this.#onHalf !== undefined) return this.#sendHalf(value, this.#onHalf);
        await this.#send(value);
      }
    } catch (error) {
      if (this.#isEnded) return;
      this.#end();
      this.#controller.error(error);
    }
  }

  async #send(chunk: Uint8Array): Promise<void> {
    let sent = 0;
    while (this.dribble !== undefined && sent < chunk.length && !this.#isEnded) {
      const { bytes, pauseMs } = this.dribble;
      this.#controller.enqueue(chunk.slice(sent, sent + bytes));
      sent += bytes;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    if (sent < chunk.length && !this.#isEnded) this.#controller.enqueue(chunk.slice(sent));
  }

  #sendHalf(chunk: Uint8Array, then: () => void): void {
    const start = chunk.lastIndexOf(NEWLINE, chunk.length - 2) + 1;
    this.#controller.enqueue(chunk.slice(0, start + Math.floor((chunk.length - start) / 2)));
    // What follows is dropped; the connection stays until `then` does something to it.
    this.#end();
    // The half is on its way first.
    setTimeout(then, HALF_MS);
  }
}

const HALF_MS = 50;
