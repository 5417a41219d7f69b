/**
 * `/healthz`, `/livez` and `/readyz`.
 * @module
 */

import { GUARD_HEADERS, qualified } from "./responses.ts";
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

/**
 * 200 `ok` once every informer has synced; before that 503, and which ones have not. With `?verbose` each is named
 * anyway. Names are told to those who may read them. An informer that has lost its API server stays ready: it serves what it knows.
 */
export function ready(
  served: Iterable<{
    readonly resource: { readonly group: string; readonly resource: string };
    readonly informer: ServedInformer;
  }>,
  options: { readonly verbose: boolean; readonly mayTell: boolean },
): Response {
  const lines = ["[+]ping ok"];
  let isReady = true;
  for (const { resource, informer } of served) {
    const name = `informer/${qualified(resource)}`;
    if (informer.hasSynced()) {
      lines.push(`[+]${name} ok`);
    } else {
      isReady = false;
      lines.push(`[-]${name} failed: not synced, ${informer.status().phase}`);
    }
  }
  if (isReady) {
    const text = options.verbose ? `${lines.join("\n")}\nreadyz check passed\n` : "ok";
    return new Response(text, { headers: HEADERS });
  }
  if (!options.mayTell) return new Response("readyz check failed\n", { status: 503, headers: HEADERS });
  return new Response(`${lines.join("\n")}\nreadyz check failed\n`, { status: 503, headers: HEADERS });
}
