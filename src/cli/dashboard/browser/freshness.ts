/** Whether what is shown can be trusted: the one badge of the page. */

import type { WindowSnapshot } from "../../../screens/mod.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { duration } from "./texts.ts";

export interface Freshness {
  readonly level: "live" | "loading" | "stale" | "lost";
  readonly text: string;
}

export interface Shown {
  /** The time since the server last answered how it is doing. */
  readonly ageMs: number;
  /** Whether the last question to the server failed. */
  readonly isLost: boolean;
  /** Whether the server has denied it. */
  readonly isRefused: boolean;
  readonly resources: readonly ResourceState[];
  /** The state of the window that is shown, if there is one. */
  readonly window: WindowSnapshot<unknown>["state"] | undefined;
  readonly nowMs: number;
}

/** The page asks the server every two seconds. */
const SILENT_MS = 10_000;
/** The longest lag, as for `/readyz` of the server, which fails after this time without contact. */
const MOST_LAG_MS = 120_000;

/** Never `live` while anything that is shown may be old. */
export function freshnessOf({ ageMs, isLost, isRefused, resources, window, nowMs }: Shown): Freshness {
  if (isLost && isRefused) return { level: "lost", text: `Refused · ${duration(ageMs)}` };
  if (isLost || ageMs > SILENT_MS) return { level: "lost", text: `Connection lost · ${duration(ageMs)}` };
  if (window === "refused") return { level: "lost", text: "Refused" };
  const saved = resources.flatMap(({ restored }) =>
    restored === undefined ? [] : [nowMs - restored.savedAtMs]
  );
  if (saved.length > 0) return { level: "stale", text: `Snapshot · ${duration(Math.max(...saved))} old` };
  const lags = resources.flatMap(({ lagMs = 0, attempt, synced }) =>
    synced && (attempt > 0 || lagMs + ageMs > MOST_LAG_MS) ? [lagMs + ageMs] : []
  );
  if (lags.length > 0) return { level: "stale", text: `Stale · ${duration(Math.max(...lags))} old` };
  if (resources.some(({ synced }) => !synced)) {
    const isFailing = resources.some(({ attempt }) => attempt > 0);
    return isFailing ? { level: "stale", text: "No contact" } : { level: "loading", text: "Syncing" };
  }
  if (window === "stale" || window === "closed") return { level: "stale", text: "Stale" };
  if (window === "connecting") return { level: "loading", text: "Loading" };
  return { level: "live", text: "Live" };
}
