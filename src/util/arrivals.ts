/** Turns that are left to arriving clients. Only programs with a server have this file in their bundle. */

import { monotonicNow, nextTurn, realClock } from "./clock.ts";
import { giveWayBy } from "./turns.ts";

// As many connections are accepted between two turns of work; fewer where each has much to parse: a turn of
// work is 2 ms, and a flood of requests would leave lists nothing.
const MOST_ARRIVALS = 16;
const MOST_ARRIVING_MS = 8;

let arrivals = 0;

/** A client has connected, or has sent something that waits for others like it. */
export function arrived(): void {
  arrivals++;
  giveWayBy(afterArrivals);
}

/**
 * Resolves in a later turn of the event loop: while turns bring arrivals, after several of them. libuv
 * accepts one connection in a turn, so where each turn has work, a crowd that connects would wait for long.
 */
async function afterArrivals(): Promise<void> {
  const startMs = monotonicNow(realClock);
  for (let turn = 0; turn < MOST_ARRIVALS; turn++) {
    const before = arrivals;
    await nextTurn();
    if (arrivals === before || monotonicNow(realClock) - startMs >= MOST_ARRIVING_MS) return;
  }
}
