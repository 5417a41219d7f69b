/**
 * The shared context of the living cluster's parts.
 * @module
 */

import type { ClusterWriter } from "./cluster_writer.ts";
import type { Dice } from "./dice.ts";
import type { Events } from "./events.ts";
import type { Timers } from "./timers.ts";

/** What each part of the living cluster works with. */
export interface ClusterContext {
  readonly writer: ClusterWriter;
  readonly dice: Dice;
  readonly timers: Timers;
  readonly events: Events;
}
