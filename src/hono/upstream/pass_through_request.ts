/**
 * A request that is sent on to the API server.
 * @module
 */

import type { UserInfo } from "../request/authorization.ts";
import type { ReadSettings } from "../read_settings.ts";
import type { Reader, Readers } from "../request/readers.ts";

/** One request, and its reader. */
export interface PassThroughRequest {
  /** The path below the mount, encoded. */
  readonly path: string;
  /** Whether the answer is one that lasts. */
  readonly isStream: boolean;
  readonly reader: Reader;
  readonly readers: Readers;
  readonly user: UserInfo | undefined;
  readonly settings: ReadSettings;
}

/** Calls `stop` when a watch of this request would have to end. Returns how to prevent it. */
export function afterLimit({ settings, user }: PassThroughRequest, stop: () => void): () => void {
  const { clock } = settings;
  const ofCredential = user?.expiresAtMs === undefined ? Infinity : user.expiresAtMs - clock.now();
  const timer = clock.setTimeout(
    stop,
    Math.max(0, Math.min(settings.watchLimitMs(), ofCredential, MAX_TIMER_MS)),
  );
  return () => clock.clearTimeout(timer);
}

// The longest delay of a timer.
const MAX_TIMER_MS = 2 ** 31 - 1;
