/** Faults of what ported Go code needs. */

import type { SuiteMutation } from "../mutant.ts";

export const COMPAT_FAULTS: readonly SuiteMutation[] = [
  {
    name: "mutation cache: news of an object that cannot be compared throws",
    file: "src/compat/mutation_cache.ts",
    find: "    if (!isComparable(entry)) return stored;\n",
    replace: "",
    test: "tests/compat/mutation_cache_test.ts",
  },
  {
    name: "mutation cache: a repeated answer makes a write no younger",
    file: "src/compat/mutation_cache.ts",
    find: "if (order < 0) return;",
    replace: "if (order <= 0) return;",
    test: "tests/compat/mutation_cache_test.ts",
  },
  {
    name: "mutation cache: a write comes back after its object was deleted",
    file: "src/compat/mutation_cache.ts",
    find: "(order === 0 || entry.uid === held.uid)",
    replace: "order === 0",
    test: "tests/compat/mutation_cache_test.ts",
  },
  {
    name: "expiration cache: a transaction says nothing of writes without a key",
    file: "src/compat/expiration_cache.ts",
    find: "    if (keyed.error !== undefined) throw keyed.error;\n",
    replace: "",
    test: "tests/compat/expiration_cache_test.ts",
  },
  {
    name: "heap: a closed one takes objects that are put back",
    file: "src/compat/heap.ts",
    find: '    this.#assertOpen("add");\n    if (!',
    replace: "    if (!",
    test: "tests/compat/heap_test.ts",
  },
  {
    name: "backoff by key: a wall clock that is set back prolongs it",
    file: "src/compat/retries.ts",
    find: "sinceMs < 0 ? monotonicNow(clock) - entry.lastUpdateMs : sinceMs",
    replace: "sinceMs",
    test: "tests/compat/retries_test.ts",
  },
];
