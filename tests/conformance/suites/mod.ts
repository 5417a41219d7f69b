/**
 * The suites by the name that their case files carry.
 * @module
 */

import type { Case } from "./harness.ts";
import { runHeapCase } from "./heap.ts";
import { runRetryBackoffCase } from "./retry_backoff.ts";
import { runSelectorsCase } from "./selectors.ts";
import { runWorkqueueCase } from "./workqueue.ts";

/** How to run a case of each suite; it rejects at the first step that differs from the record. */
export const suites: Readonly<Record<string, (caze: Case) => Promise<void>>> = {
  heap: runHeapCase,
  retry_backoff: runRetryBackoffCase,
  selectors: runSelectorsCase,
  workqueue: runWorkqueueCase,
};
