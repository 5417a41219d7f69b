import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { readApiOf } from "../../../src/hono/read_api.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FieldCut, type HeldText } from "../../../src/text/field_cut.ts";
import { get, WatchReader } from "../reading.ts";
import { KeptViews } from "../../../src/hono/request/fields_views.ts";
import { Readers } from "../../../src/hono/request/readers.ts";
import type { View } from "../../../src/hono/request/requested_read.ts";

const PODS = "/api/v1/pods?resourceVersion=0&fields=status.phase";
const COUNT = 1_000;

/** A served copy of pods, and how often a text is cut. */
async function served(
  maxReaderBytes: number,
  use: (of: {
    readonly state: ReturnType<typeof newReadApiState>;
    readonly clock: FakeClock;
    /** Changes one pod, and waits for it. */
    change(i: number): Promise<void>;
    /** The phases of a list, and how many objects were cut for it. */
    list(path?: string): Promise<{ readonly phases: string[]; readonly cuts: number }>;
    /** A watch of the phases, from now on. */
    watch(): Promise<WatchReader>;
  }) => Promise<void>,
): Promise<void> {
  const server = new InMemoryApiServer();
  const made = (i: number, phase: string) => ({
    ...pod(`web-${i}`, { namespace: "shop" }),
    status: { phase },
  });
  for (let i = 0; i < COUNT; i++) server.create("v1/pods", made(i, "Pending"));
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
  const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
  const clock = new FakeClock();
  const resources = [{ informer, resource: "v1/pods" }];
  const state = newReadApiState({ resources, allowAnonymous: true, clock, maxReaderBytes });
  const api = readApiOf(state);
  await using _running = informer.start();
  await informer.synced();
  const { textOf } = FieldCut.prototype;
  let cuts = 0;
  FieldCut.prototype.textOf = function (held) {
    cuts++;
    return textOf.call(this, held);
  };
  try {
    await use({
      state,
      clock,
      change: async (i) => {
        const { metadata } = server.update("v1/pods", made(i, "Running"));
        await informer.waitForVersion(metadata!.resourceVersion!);
      },
      list: async (path = PODS) => {
        cuts = 0;
        const { items } = await get(api, path);
        return { phases: items.map(({ status }: { status: { phase: string } }) => status.phase), cuts };
      },
      watch: () => {
        const version = informer.indexer.lastStoreSyncResourceVersion();
        return WatchReader.open(api, `/api/v1/pods?watch=1&fields=status.phase&resourceVersion=${version}`);
      },
    });
  } finally {
    FieldCut.prototype.textOf = textOf;
  }
}

describe("KeptViews", () => {
  it("cut for a list only what has changed since the last one, and drop what is not read for a minute", async () => {
    await served(64e6, async ({ state, clock, change, list }) => {
      assert.deepEqual(await list(), { phases: Array(COUNT).fill("Pending"), cuts: COUNT });
      await change(0);
      const { phases, cuts } = await list();
      assert.equal(phases[0], "Running");
      assert.equal(phases.filter((phase) => phase === "Pending").length, COUNT - 1);
      assert.equal(cuts, 1);
      assert.equal((await list(`${PODS},spec.nodeName`)).cuts, COUNT);
      assert.equal(state.views.kept.size, 2);
      await clock.advance(60_000);
      state.views.dropUnused();
      assert.equal(state.views.kept.size, 0);
      await change(1);
      assert.equal((await list()).cuts, COUNT);
    });
  });

  it("keep for longer than a minute what is read again within each", async () => {
    await served(64e6, async ({ state, clock, change, list }) => {
      await list();
      for (let i = 0; i < 3; i++) {
        await clock.advance(59_999);
        await change(i);
        assert.equal((await list()).cuts, 1);
      }
      assert.equal(state.views.kept.size, 1);
    });
  });

  it("have few views: those that were read last", async () => {
    await served(64e6, async ({ state: { views }, change, list }) => {
      const often = `${PODS},spec.often`;
      await list(often);
      for (let i = 0; i < 12; i++) {
        await list(`${PODS},spec.a${i}`);
        await list(often);
      }
      assert.equal(views.kept.size, 8);
      await change(0);
      assert.equal((await list(often)).cuts, 1);
      assert.equal((await list(`${PODS},spec.a11`)).cuts, 1);
      assert.equal((await list(`${PODS},spec.a0`)).cuts, COUNT);
    });
  });

  it("take no bytes for a watch that reads one of them which was dropped", async () => {
    await served(64e6, async ({ state: { views, readers }, clock, change, watch }) => {
      const events = await watch();
      await clock.advance(60_000);
      views.dropUnused();
      assert.equal(views.kept.size, 0);
      await change(0);
      assert.equal((await events.events(1))[0].object.status.phase, "Running");
      assert.ok(readers.keep(64e6 - readers.heldBytes), "bytes are kept for the view");
    });
  });

  it("have few views, and give all their bytes back for the sake of readers", async () => {
    await served(64e6, async ({ state: { views, readers }, change, list }) => {
      for (let i = 0; i < 12; i++) await list(`${PODS},spec.a${i}`);
      assert.equal(views.kept.size, 8);
      await change(0);
      assert.equal((await list(`${PODS},spec.a11`)).cuts, 1);
      // All bytes at once, which nothing else may have then.
      assert.ok(readers.keep(64e6));
      await change(1);
      const { phases, cuts } = await list(`${PODS},spec.a11`);
      assert.equal(phases[1], "Running");
      // Some twice: the list itself has no room either.
      assert.ok(cuts >= COUNT, `${cuts}`);
      readers.unkeep(64e6);
    });
  });

  it("keep nothing where there is no room, and show the same", async () => {
    await served(60_000, async ({ change, list }) => {
      assert.equal((await list()).cuts, COUNT);
      await change(7);
      const { phases, cuts } = await list();
      assert.equal(phases.filter((phase) => phase === "Running").length, 1);
      assert.equal(cuts, COUNT);
    });
  });
});

describe("KeptViews, the texts that they cut,", () => {
  const MIB = 2 ** 20;

  function newViews() {
    const clock = new FakeClock();
    const limits = { maxRequests: 9, maxWatches: 9, maxWatchesPerClient: 9 };
    const readers = new Readers({ ...limits, maxReaderBytes: 64 * MIB, clock });
    const views = new KeptViews({ readers, clock });
    const spec = { text: "spec", segments: ["spec"] };
    const { cut } = views.get({ group: "", version: "v1", resource: "pods" }, {} as View, [spec]);
    const keep = (count: number, length: number) => {
      for (let i = 0; i < count; i++) {
        cut!.textOf({ json: JSON.stringify({ spec: "x".repeat(length) }), members: null } as HeldText);
      }
    };
    /** Whether the views leave so many bytes to others. */
    const leaves = (bytes: number) => {
      const isFree = readers.keepSpare(bytes);
      if (isFree) readers.unkeep(bytes);
      return isFree;
    };
    return { readers, views, keep, leaves };
  }

  it("count with all their bytes, whether they are short or long", () => {
    for (const [count, length] of [[1_000, 1_000], [8, MIB]]) {
      const { keep, leaves } = newViews();
      keep(count, length);
      assert.equal(leaves(64 * MIB - count * length), false);
      assert.ok(leaves(63 * MIB - count * length));
    }
  });

  it("are 16 MiB at most for each view", () => {
    const { keep, leaves } = newViews();
    keep(40, MIB);
    assert.ok(leaves(47 * MIB));
  });

  it("take bytes again once they have given them back, and drop nothing for them", () => {
    const { readers, views, keep, leaves } = newViews();
    keep(1, 1_000);
    assert.ok(views.dropSome());
    assert.ok(leaves(64 * MIB));
    keep(1, 1_000);
    assert.equal(leaves(64 * MIB), false);
    views.dropSome();
    let isKept = true;
    const dropSome = () => {
      isKept = false;
      return false;
    };
    readers.addKeeper({ kept: { size: 1 }, dropSome });
    assert.ok(readers.keepSpare(64 * MIB));
    keep(1, 1_000);
    assert.ok(isKept);
  });

  it("are those of one resource, whatever other groups call theirs", () => {
    const { views } = newViews();
    const of = (group: string) =>
      views.get({ group, version: "v1", resource: "pods" }, {} as View, [{
        text: "spec",
        segments: ["spec"],
      }]);
    assert.equal(of(""), of(""));
    assert.notEqual(of(""), of("metrics.k8s.io"));
  });

  it("give way to what is kept for others as soon as that needs the room", () => {
    const { readers, keep } = newViews();
    keep(8, MIB);
    assert.ok(readers.keep(60 * MIB));
    assert.ok(readers.keep(4 * MIB));
    assert.equal(readers.keep(1), false);
  });
});
