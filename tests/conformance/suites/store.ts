import { deletionHandlingMetaNamespaceKey, type Indexer } from "@listwatch/cache";
import { newIndexer, type Store, type Transaction, TransactionError } from "@listwatch/cache/store";
import type { CaseHolding } from "../holdings.ts";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import {
  decodeValue,
  decodeValues,
  encodeValue,
  indexersOf,
  isSameValue,
  type Json,
  keyFuncOf,
  transform,
  withoutOrder,
} from "./values.ts";

/**
 * Runs a case of the suite `store`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runStoreCase(
  caze: Case,
  { storage }: CaseHolding,
): Promise<void> {
  const { options } = caze;
  const indexer: Indexer<unknown> = newIndexer<unknown>(
    keyFuncOf(argument(options, "keyFunc")),
    indexersOf(argument(options, "indexers")),
    { ...(storage && { storage }), ...(argument(options, "transform") ? { transform } : {}) },
  );
  await runStoreSteps(caze, indexer, (step) => performOnIndexer(indexer, step));
}

/** Performs steps on a store; `perform` knows the ops beyond those that every store has. */
export async function runStoreSteps(
  caze: Case,
  store: Store<unknown>,
  perform: (step: Step) => Outcome | void | Promise<Outcome | void>,
): Promise<void> {
  await runSteps(caze, (step) => STORE_OPS.has(step.op) ? performOnStore(store, step) : perform(step), {
    // What is recorded of a message is its beginning.
    compare: (property, expected, actual) =>
      property === "message"
        ? (actual as string).startsWith(expected as string)
        : isSameValue(expected, actual),
    normalise: (step, _property, value) => withoutOrder(step, value, deletionHandlingMetaNamespaceKey),
    after: () => ({ lastStoreSyncResourceVersion: store.lastStoreSyncResourceVersion() }),
    failed: { exists: false, value: null },
  });
}

const STORE_OPS: ReadonlySet<string> = new Set([
  "add",
  "update",
  "delete",
  "replace",
  "resync",
  "bookmark",
  "lastStoreSyncResourceVersion",
  "get",
  "getByKey",
  "list",
  "listKeys",
]);

function performOnStore(store: Store<unknown>, step: Step): Outcome | void {
  switch (step.op) {
    case "add":
    case "update":
    case "delete":
      store[step.op](decodeValue(argument(step, "object")));
      return;
    case "replace":
      return store.replace(decodeValues(argument(step, "objects")), argument(step, "resourceVersion"));
    case "resync":
      return store.resync();
    case "bookmark":
      return store.bookmark(argument(step, "resourceVersion"));
    case "lastStoreSyncResourceVersion":
      return; // read after every step
    default:
      return lookUp(store, step);
  }
}

function performOnIndexer(indexer: Indexer<unknown>, step: Step): Outcome | void {
  const index = () => argument<string>(step, "index");
  const value = () => argument<string>(step, "value");
  switch (step.op) {
    case "transaction":
      return transaction(indexer, argument(step, "transactions"));
    case "index":
      return { value: indexer.index(index(), decodeValue(argument(step, "object"))).map(encodeValue) };
    case "byIndex":
      return { value: indexer.byIndex(index(), value()).map(encodeValue) };
    case "indexKeys":
      return { value: indexer.indexKeys(index(), value()) };
    case "listIndexFuncValues":
      return { value: indexer.listIndexFuncValues(index()) };
    case "addIndexers":
      indexer.addIndexers(indexersOf(argument(step, "indexers")));
      return;
    case "getIndexers":
      return { value: Object.keys(indexer.getIndexers()) };
    default:
      return unknownOp(step);
  }
}

function transaction(
  indexer: Indexer<unknown>,
  writes: readonly { readonly type: Transaction<unknown>["type"]; readonly object: Json }[],
): Outcome | void {
  try {
    indexer.transaction(writes.map(({ type, object }) => ({ type, object: decodeValue(object) })));
  } catch (error) {
    if (!(error instanceof TransactionError)) throw error;
    return {
      error: error.code,
      successfulIndices: error.successfulIndices,
      totalTransactions: error.totalTransactions,
      failures: error.errors.length,
      message: error.message,
    };
  }
}
