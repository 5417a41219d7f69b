import { deletionHandlingMetaNamespaceKey, silentLogger } from "@listwatch/cache";
import { MutationCache } from "@listwatch/cache/compat";
import { newIndexer } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";
import type { CaseHolding } from "../holdings.ts";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import { decodeValue, encodeValue, indexersOf, isSameValue, withoutOrder } from "./values.ts";

/**
 * Runs a case of the suite `mutation_cache`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runMutationCacheCase(caze: Case, { storage }: CaseHolding): Promise<void> {
  const { options } = caze;
  const clock = new FakeClock(1_000_000_000);
  const store = newIndexer<unknown>(
    deletionHandlingMetaNamespaceKey,
    indexersOf(argument(options, "indexers")),
    { ...(storage && { storage }) },
  );
  const cache = new MutationCache<unknown, string>(store, {
    ttlMs: argument(options, "ttlMs"),
    includeAdds: argument(options, "includeAdds"),
    ...(argument(options, "withIndexer") ? { indexer: store } : {}),
    clock,
    logger: silentLogger,
  });

  async function perform(step: Step): Promise<Outcome | void> {
    switch (step.op) {
      case "store.add":
        store.add(decodeValue(argument(step, "object")));
        return;
      case "store.update":
        store.update(decodeValue(argument(step, "object")));
        return;
      case "store.delete":
        store.delete(decodeValue(argument(step, "object")));
        return;
      case "mutation":
        return cache.mutation(decodeValue(argument(step, "object")));
      case "advance":
        return await clock.jump(argument(step, "ms"));
      case "getByKey": {
        const value = cache.getByKey(argument(step, "key"));
        return { exists: value !== undefined, value: encodeValue(value) };
      }
      case "byIndex":
        return { value: cache.byIndex(argument(step, "index"), argument(step, "value")).map(encodeValue) };
      default:
        return unknownOp(step);
    }
  }

  await runSteps(caze, perform, {
    compare: (_property, expected, actual) => isSameValue(expected, actual),
    normalise: (step, _property, value) => withoutOrder(step, value, deletionHandlingMetaNamespaceKey),
    failed: { exists: false, value: null },
  });
}
