/**
 * A fetch function that answers as the test says, and records its requests.
 * @module
 */

import type { FetchFunction } from "@listwatch/cache/client";

/** One request. */
export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly query: Record<string, string>;
  readonly headers: Headers;
  /** The headers as they were given: a name may be there more than once. */
  readonly headerPairs: readonly (readonly [string, string])[];
  readonly body: string;
  readonly redirect: string | undefined;
}

/** The function and its memory. */
export interface Recorder {
  readonly fetch: FetchFunction;
  readonly asked: Asked[];
  readonly urls: string[];
}

/** Makes one; answers are given in order, the last one for ever. */
export function recorder(...answers: (Response | (() => Response | Promise<Response>))[]): Recorder {
  const asked: Asked[] = [];
  const urls: string[] = [];
  const pending = [...answers];
  const fetch: FetchFunction = async (url, init = {}) => {
    const { pathname, search, searchParams } = new URL(url);
    urls.push(url);
    asked.push({
      method: init.method ?? "GET",
      target: pathname + search,
      query: Object.fromEntries(searchParams),
      headers: new Headers(init.headers),
      headerPairs: init.headers as [string, string][],
      body: init.body === undefined ? "" : await new Response(init.body).text(),
      redirect: init.redirect,
    });
    const answer = pending.length > 1 ? pending.shift()! : pending[0];
    if (typeof answer === "function") return await answer();
    answer.headers.get("Content-Type"); // Deno 2.9 gives a clone no headers unless they were read before
    return answer.clone();
  };
  return { fetch, asked, urls };
}

/** A list that a server would answer. */
export function podList(...names: string[]): Response {
  return Response.json({
    kind: "PodList",
    apiVersion: "v1",
    metadata: { resourceVersion: "7" },
    items: names.map((name) => ({ metadata: { name, namespace: "shop", resourceVersion: "5" } })),
  });
}
