/** How often an object that starts again and again may ask its API server. */

import { readState, rowsOf, SAVED, type SqlDatabase, writeState } from "./sql_database.ts";

/**
 * Notes in the database that an object starts, and returns how long it has to wait before its first request
 * to the API server, in milliseconds.
 *
 * A start that follows one which has saved something waits for nothing. The others may be a circle: what the
 * API server sends ends the object, as its storage is full or its memory too small, and the next request of a
 * reader starts it again, however many there are. So they are a second apart, then two, and so on.
 *
 * @param nowMs The wall clock, as no other continues from one start to the next.
 */
export function waitBeforeStart(sql: SqlDatabase, nowMs: number): number {
  const [row] = rowsOf(sql, "SELECT value FROM listwatch_state WHERE name = ?", SAVED);
  const saved = row?.[0] as string | undefined ?? "";
  const last = readState<Start>(sql, START);
  // One that has ended while it waited has asked nothing. The clock may have been set back since.
  const restMs = (last?.atMs ?? 0) - nowMs;
  if (restMs > 0 && restMs <= LONGEST_WAIT_MS) return restMs;
  const inVain = last?.saved === saved ? last.inVain + 1 : 0;
  const waitMs = inVain < 2 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** (inVain - 2), LONGEST_WAIT_MS);
  const leftMs = Math.min(waitMs, Math.max(0, waitMs + restMs));
  try {
    writeState(sql, START, { atMs: nowMs + leftMs, saved, inVain } satisfies Start);
  } catch {
    return LONGEST_WAIT_MS; // what cannot note that it starts can save nothing
  }
  return leftMs;
}

const START = "start";
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

interface Start {
  /** When it could ask its API server. */
  readonly atMs: number;
  /** What was saved then. */
  readonly saved: string;
  /** How many starts before it have saved nothing. */
  readonly inVain: number;
}
