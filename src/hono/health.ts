/**
 * `/healthz`, `/livez` and `/readyz`.
 * @module
 */

import { formatGroupResource } from "../meta/resource.ts";
import { GUARD_HEADERS } from "./responses.ts";
import type { ServedInformer } from "./served_informer.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "text/plain; charset=utf-8",
  "Cache-Control": "no-cache, private",
  ...GUARD_HEADERS,
};

/** The process answers. */
export function alive(): Response {
  return new Response("ok", { headers: HEADERS });
}

// Bookmarks come about once a minute; a watch without any for 90 s is opened again, which counts as a contact.
const MAX_LAG_MS = 120_000;
// Without bookmarks a quiet watch is heard of when it ends, after 5 to 10 minutes.
const MAX_LAG_WITHOUT_BOOKMARKS_MS = 660_000;

/**
 * Why an informer's copy must not be relied on, at this moment: it has not synced, it has stopped, or its server was not
 * heard of for too long. `undefined` if it may be. By no timer: a program that was frozen meanwhile is found out by whoever asks.
 */
export function unreadiness(informer: ServedInformer, maxLagMs: number | undefined): string | undefined {
  const { phase, lagMs, hasNoBookmarks } = informer.status();
  if (!informer.hasSynced()) return `not synced, ${phase}`;
  if (phase === "stopped") return "stopped";
  const mostMs = maxLagMs ?? (hasNoBookmarks ? MAX_LAG_WITHOUT_BOOKMARKS_MS : MAX_LAG_MS);
  if (lagMs === undefined || lagMs <= mostMs) return undefined;
  return `API server not heard of for ${Math.round(lagMs / 1_000)} s, ${phase}`;
}

/**
 * 200 `ok` while every informer has synced and its server was heard of lately; otherwise 503, and which ones fail. With
 * `?verbose` each is named anyway. Names are told to those who may read them. What is not ready is served all the same.
 */
export function ready(
  served: Iterable<{
    readonly resource: { readonly group: string; readonly resource: string };
    readonly informer: ServedInformer;
  }>,
  options: {
    readonly verbose: boolean;
    readonly mayTell: boolean;
    /** How long ago a server may have been heard of. */
    readonly maxLagMs: number | undefined;
  },
): Response {
  const lines = ["[+]ping ok"];
  let isReady = true;
  for (const { resource, informer } of served) {
    const name = `informer/${formatGroupResource(resource)}`;
    const why = unreadiness(informer, options.maxLagMs);
    lines.push(why === undefined ? `[+]${name} ok` : `[-]${name} failed: ${why}`);
    isReady &&= why === undefined;
  }
  if (isReady) {
    const text = options.verbose ? `${lines.join("\n")}\nreadyz check passed\n` : "ok";
    return new Response(text, { headers: HEADERS });
  }
  if (!options.mayTell) return new Response("readyz check failed\n", { status: 503, headers: HEADERS });
  return new Response(`${lines.join("\n")}\nreadyz check failed\n`, { status: 503, headers: HEADERS });
}
