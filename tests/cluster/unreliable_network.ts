/**
 * A network that can lose what watches send, and break.
 * @module
 */

import type { FetchFunction } from "@listwatch/cache/client";

/** A request that was made. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly timeMs: number;
}

/**
 * A `fetch` between client and server. As in a real network, bytes that are lost are never followed by
 * others: a stream that has lost some can only break.
 */
export class UnreliableNetwork {
  readonly requests: SeenRequest[] = [];
  readonly #fetch: FetchFunction;
  readonly #streams = new Set<{ isLossy: boolean; break(): void }>();
  #isDown = false;

  constructor(fetch: FetchFunction) {
    this.#fetch = fetch;
  }

  /** Makes a request. */
  readonly fetch: FetchFunction = async (address, init) => {
    const url = new URL(address);
    this.requests.push({ method: init?.method ?? "GET", url, timeMs: performance.now() });
    if (this.#isDown) throw new TypeError("the network is down");
    const response = await this.#fetch(address, init);
    if (url.searchParams.get("watch") !== "true" || response.body === null) return response;
    return new Response(this.#carry(response.body), response);
  };

  /** The requests that were for a list, watch, or page of a list. */
  count(of: "list" | "page" | "watch"): number {
    return this.requests.filter(({ method, url: { searchParams } }) =>
      method === "GET" &&
      (searchParams.get("watch") === "true" ? "watch" : searchParams.has("continue") ? "page" : "list") === of
    ).length;
  }

  /** Makes open watches deliver nothing from now on; their connections stay up. */
  loseEvents(): void {
    for (const stream of this.#streams) stream.isLossy = true;
  }

  /** Breaks the watches that are open, and refuses all requests. */
  goDown(): void {
    this.#isDown = true;
    for (const stream of this.#streams) stream.break();
  }

  /** Takes requests again. */
  comeBack(): void {
    this.#isDown = false;
  }

  #carry(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const streams = this.#streams;
    return new ReadableStream<Uint8Array>({
      start(controller) {
        const stream = {
          isLossy: false,
          break() {
            streams.delete(stream);
            controller.error(new TypeError("the connection was reset by peer"));
            reader.cancel().catch(() => {});
          },
        };
        streams.add(stream);
        // Read without waiting for the consumer: a lossy stream must
        // not hold up the others of its connection.
        const pump = async () => {
          try {
            for (;;) {
              const { done, value } = await reader.read();
              if (!streams.has(stream)) return;
              if (done && stream.isLossy) return stream.break();
              if (done) {
                streams.delete(stream);
                return controller.close();
              }
              if (!stream.isLossy) controller.enqueue(value);
            }
          } catch (error) {
            if (streams.delete(stream)) controller.error(error);
          }
        };
        pump();
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }
}
