/**
 * An API server behind a socket of its own, which counts the requests.
 * @module
 */

import { isProof } from "../whole_lists.ts";

/** A request that the upstream received. */
export interface CountedRequest {
  readonly kind: "list" | "watch" | "stream" | "other";
  readonly url: string;
  /** The status of the answer, or 410 if the first event of a watch was one. */
  status: number;
}

/** An API server, as workerd reaches it. */
export class CountedUpstream implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  /** In the order of arrival. */
  readonly requests: CountedRequest[] = [];

  /** @param fetch Answers. */
  constructor(fetch: (request: Request) => Promise<Response>) {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      const counted: CountedRequest = { kind: kindOf(request), url: request.url, status: 0 };
      this.requests.push(counted);
      // Sent without the signal: a client that leaves cancels the body.
      const { method, url, headers } = request;
      const response = await fetch(new Request(url, { method, headers }));
      counted.status = response.status;
      if (counted.kind !== "watch" || response.body === null) return response;
      const body = response.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            if (new TextDecoder().decode(chunk).includes('"type":"ERROR"')) counted.status = 410;
            controller.enqueue(chunk);
          },
        }),
      );
      return new Response(body, response);
    });
  }

  /** The URL, such as `http://127.0.0.1:24680`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** How many requests of a kind there were. */
  count(kind: CountedRequest["kind"]): number {
    return this.requests.filter((request) => request.kind === kind).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function kindOf(request: Request): CountedRequest["kind"] {
  const { searchParams, pathname } = new URL(request.url);
  if (request.headers.get("Accept")?.includes("PartialObjectMetadata")) return "other";
  // What says which cluster it is, and what proves that a read is fresh, at most 100 objects.
  if (!pathname.startsWith("/api") || pathname.endsWith("/namespaces/kube-system")) return "other";
  if (searchParams.get("watch") === null) {
    return isProof(searchParams.get("limit")) ? "other" : "list";
  }
  return searchParams.get("sendInitialEvents") === "true" ? "stream" : "watch";
}
