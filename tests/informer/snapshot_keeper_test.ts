import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SnapshotChange } from "@listwatch/cache/informer";
import { SnapshotKeeper } from "../../src/informer/snapshot/content.ts";
import type { SnapshotContext } from "../../src/informer/snapshot/storage.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";

/** A keeper of a store, which says after each event at which versions the store and its watch are. */
function newKeeper() {
  let version = "5";
  const changes: SnapshotChange[] = [];
  const held = { lastStoreSyncResourceVersion: () => version, listKeys: () => [], getByKey: () => undefined };
  const context = {
    name: "pods",
    store: { held, holding: {} },
    quarantine: { isRepaired: true, losses: 0, keys: new Map() },
    clock: new FakeClock(),
    reflector: () => ({ status: () => ({}) }),
  } as unknown as SnapshotContext<unknown>;
  const storage = {
    savesInTurn: true,
    load: () => undefined,
    save: (change: SnapshotChange) => void changes.push(change),
  };
  const options = { intervalMs: 1_000, stopTimeoutMs: 1_000 };
  const keeper = new SnapshotKeeper(storage, context, options, () => undefined);
  return async (
    reached: string,
    type: "bookmark" | "byState" | "updated" | "replaced" | "gap",
  ): Promise<[store: string, watch: string]> => {
    version = reached;
    const resourceVersion = reached;
    if (type === "bookmark") keeper.gather({ type, resourceVersion });
    else if (type === "byState") keeper.gather({ type: "bookmark", resourceVersion, byState: true });
    else if (type === "updated") keeper.gather({ type, key: "a", object: {}, oldObject: {} });
    else {
      keeper.gather({
        type: "replaced",
        resourceVersion,
        changes: [],
        ...(type === "gap" && { isGap: true }),
      });
    }
    await (context.clock as FakeClock).advance(1_000);
    const { resourceVersion: store, watchedVersion } = changes.at(-1)!;
    return [store, watchedVersion ?? store];
  };
}

describe("SnapshotKeeper", () => {
  it("saves where the watch is while proofs by state are further, up to an event or a list that has come as far", async () => {
    for (const last of ["bookmark", "replaced"] as const) {
      const after = newKeeper();
      assert.deepEqual(await after("5", "replaced"), ["5", "5"]);
      assert.deepEqual(await after("9", "byState"), ["9", "5"]);
      assert.deepEqual(await after("9", "updated"), ["9", "5"], "a late event");
      assert.deepEqual(await after("12", "byState"), ["12", "5"]);
      assert.deepEqual(await after("12", "gap"), ["12", "5"], "events that have changed nothing any more");
      assert.deepEqual(await after("12", last), ["12", "12"]);
      assert.deepEqual(await after("14", "byState"), ["14", "12"]);
      assert.deepEqual(await after("15", "updated"), ["15", "15"]);
    }
  });
});
