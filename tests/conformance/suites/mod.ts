/**
 * The suites by the name that their case files carry.
 * @module
 */

import { runDeltaFIFOCase } from "./delta_fifo.ts";
import { runExpirationCacheCase } from "./expiration_cache.ts";
import { runFIFOCase } from "./fifo.ts";
import { runFilteringCase } from "./filtering.ts";
import type { RunHeldCase } from "../holdings.ts";
import { runHeapCase } from "./heap.ts";
import { runKeysCase } from "./keys.ts";
import { runMutationCacheCase } from "./mutation_cache.ts";
import { runRealFIFOCase } from "./real_fifo.ts";
import { runReflectorCase } from "./reflector.ts";
import { runRetryBackoffCase } from "./retry_backoff.ts";
import { runSelectorsCase } from "./selectors.ts";
import { runSharedInformerCase } from "./shared_informer.ts";
import { runStoreCase } from "./store.ts";
import { runWorkqueueCase } from "./workqueue.ts";

/** How to run a case of each suite; it rejects at the first step that differs from the record. */
export const suites: Readonly<Record<string, RunHeldCase>> = {
  delta_fifo: runDeltaFIFOCase,
  expiration_cache: runExpirationCacheCase,
  fifo: runFIFOCase,
  filtering: runFilteringCase,
  heap: runHeapCase,
  keys: runKeysCase,
  mutation_cache: runMutationCacheCase,
  real_fifo: runRealFIFOCase,
  reflector: runReflectorCase,
  retry_backoff: runRetryBackoffCase,
  selectors: runSelectorsCase,
  shared_informer: runSharedInformerCase,
  store: runStoreCase,
  workqueue: runWorkqueueCase,
};
