/**
 * Whether a handler is told again what it knows, as often as it asked for.
 * @module
 */

import type { HandlerProbe } from "./handler_probe.ts";

/**
 * What is wrong with the resyncs of a handler in a time in which nothing else happened; `undefined` if nothing is. Its
 * clock may tick at any moment of that time, so one more or less than fit in is fine.
 *
 * @param intervalMs How far apart they must be; 0 for a handler that wants none.
 */
export function differenceInResyncs(
  probe: HandlerProbe,
  { windowMs, intervalMs }: { readonly windowMs: number; readonly intervalMs: number },
): string | undefined {
  if (intervalMs === 0) {
    const [key] = probe.resyncs.keys();
    return key === undefined ? undefined : `was told of ${key} again, and asked for no resync`;
  }
  const count = Math.floor(windowMs / intervalMs);
  for (const key of probe.known.keys()) {
    const resyncs = probe.resyncs.get(key) ?? 0;
    if (resyncs < count - 1 || resyncs > count + 1) {
      return `had ${resyncs} resyncs of ${key} in ${windowMs} ms, each ${intervalMs} ms one`;
    }
  }
  return undefined;
}
