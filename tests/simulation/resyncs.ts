/**
 * Whether a handler receives resyncs on its period.
 * @module
 */

import type { HandlerProbe } from "./handler_probe.ts";

/**
 * What is wrong with the resyncs of a handler in a time without other events; `undefined` if nothing is. Its
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
    return key === undefined ? undefined : `received ${key} again, and has no resync period`;
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
