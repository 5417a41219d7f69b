/**
 * Whether a handler receives resyncs on its period.
 * @module
 */

import type { HandlerProbe } from "./handler_probe.ts";

/** A time in which a handler is observed. */
export interface ResyncWindow {
  /** The objects that the handler knew all the time, unchanged. */
  readonly keys: readonly string[];
  readonly windowMs: number;
  /** How far apart the resyncs must be; 0 for a handler that wants none. */
  readonly intervalMs: number;
}

/**
 * What is wrong with the resyncs of a handler; `undefined` if nothing is. Its clock may tick at any moment of
 * the window, so one more or less than fit in is fine.
 */
export function differenceInResyncs(
  probe: HandlerProbe,
  { keys, windowMs, intervalMs }: ResyncWindow,
): string | undefined {
  if (intervalMs === 0) {
    const [key] = probe.resyncs.keys();
    return key === undefined ? undefined : `received ${key} again, and has no resync period`;
  }
  const count = Math.floor(windowMs / intervalMs);
  for (const key of keys) {
    const resyncs = probe.resyncs.get(key) ?? 0;
    if (resyncs < count - 1 || resyncs > count + 1) {
      return `had ${resyncs} resyncs of ${key} in ${windowMs} ms, each ${intervalMs} ms one`;
    }
  }
  return undefined;
}
