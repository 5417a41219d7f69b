// @ts-nocheck: inferring the types of JSON takes seconds; the list below says what they are
/**
 * Cases that were recorded from client-go by random steps, and by scripts around a difference that those found.
 * @module
 */

import type { CaseFile } from "../../suites/harness.ts";
import deltaFifo from "./delta_fifo.json" with { type: "json" };
import expirationCache from "./expiration_cache.json" with { type: "json" };
import fifo from "./fifo.json" with { type: "json" };
import filtering from "./filtering.json" with { type: "json" };
import heap from "./heap.json" with { type: "json" };
import keys from "./keys.json" with { type: "json" };
import mutationCache from "./mutation_cache.json" with { type: "json" };
import realFifo from "./real_fifo.json" with { type: "json" };
import reflector from "./reflector.json" with { type: "json" };
import retryBackoff from "./retry_backoff.json" with { type: "json" };
import selectors from "./selectors.json" with { type: "json" };
import sharedInformer from "./shared_informer.json" with { type: "json" };
import store from "./store.json" with { type: "json" };
import workqueue from "./workqueue.json" with { type: "json" };

/** Every file of this folder. */
export const fuzzedFiles: readonly CaseFile[] = [
  deltaFifo,
  expirationCache,
  fifo,
  filtering,
  heap,
  keys,
  mutationCache,
  realFifo,
  reflector,
  retryBackoff,
  selectors,
  sharedInformer,
  store,
  workqueue,
];
