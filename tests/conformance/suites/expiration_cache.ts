import { newTTLStore } from "@listwatch/cache/compat";
import { FakeClock } from "@listwatch/cache/testing";
import { argument, type Case, unknownOp } from "./harness.ts";

import { runStoreSteps } from "./store.ts";
import { keyFuncOf } from "./values.ts";

/**
 * Runs a case of the suite `expiration_cache`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runExpirationCacheCase(caze: Case): Promise<void> {
  const clock = new FakeClock(1_000_000_000);
  const store = newTTLStore<unknown>(
    keyFuncOf(argument(caze.options, "keyFunc")),
    argument(caze.options, "ttlMs"),
    {
      clock,
    },
  );
  await runStoreSteps(
    caze,
    store,
    async (step) => step.op === "advance" ? await clock.jump(argument(step, "ms")) : unknownOp(step),
  );
}
