import type { Cluster } from "@listwatch/cache";
import {
  type CachedClient,
  type ControllerDefinition,
  defineController,
  type Result,
} from "@listwatch/cache/controller";
import { answerStatus, FakeClock, InMemoryApiServer, type RecordedRequest } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, SlowWatches, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

type Reconcile = (
  object: Widget,
  context: { readonly self: CachedClient<Widget> },
) => Promise<Result | void>;

const define = (reconcile: Reconcile) => (cluster: Cluster): ControllerDefinition =>
  defineController({
    name: "widgets",
    for: cluster.resource<Widget>(WIDGETS),
    when: "generation",
    reconcile,
  });

/** A rig whose watch of Widgets can be held back. */
async function startSlow(
  reconcile: Reconcile,
): Promise<{ readonly rig: Rig; readonly watches: SlowWatches }> {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
  const watches = new SlowWatches(server, (path) => path.endsWith("/widgets"));
  const rig = startRig(define(reconcile), {}, { server, clock, fetch: () => watches.fetch });
  await rig.until(() => rig.manager.status().isLeading);
  return { rig, watches };
}

const problems = ({ lines }: Rig) => lines.filter((line) => !line.startsWith("info"));

describe("Manager.run: a reconcile that writes its own object", () => {
  it("has its status written in the state that it has written last", async () => {
    let calls = 0;
    await using rig = startRig(define(async (object, { self }) => {
      calls++;
      await self.patch(object.metadata!.name!, { metadata: { labels: { seen: "yes" } } });
      return { status: { ready: true } };
    }));
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => rig.server.get<Widget>(WIDGETS, "shop/a")?.status?.ready === true);
    await rig.until(() => rig.manager.pending === 0);
    assert.equal(calls, 1);
    assert.deepEqual(problems(rig), []);
  });

  it("has not failed where the object is deleted before its status is written", async () => {
    let calls = 0;
    await using rig = startRig(define((object) => {
      calls++;
      rig.server.delete(WIDGETS, `shop/${object.metadata?.name}`);
      return Promise.resolve({ status: { ready: true }, requeueAfterMs: 1_000 });
    }));
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => calls > 0);
    await rig.clock.advance(10_000);
    assert.deepEqual([calls, rig.manager.pending, problems(rig)], [1, 0, []]);
  });

  /** Reconciles once more what was written while no watch brings anything; labels that the reconciles saw. */
  async function writeUnseen(): Promise<{ rig: Rig; watches: SlowWatches; seen: (string | undefined)[] }> {
    const seen: (string | undefined)[] = [];
    const { rig, watches } = await startSlow(async ({ metadata }, { self }) => {
      seen.push(metadata?.labels?.times);
      if (seen.length > 1) return;
      watches.hold();
      await self.patch("a", { metadata: { labels: { times: "1" } } });
      return { requeueAfterMs: 100 };
    });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => seen.length === 1);
    return { rig, watches, seen };
  }

  it("is given the object that the server has, though the cache does not catch up", async () => {
    const { rig, watches, seen } = await writeUnseen();
    await using _ = rig;
    await rig.until(() => seen.length === 2);
    assert.deepEqual(seen, [undefined, "1"]);
    // The next one reads the cache again.
    watches.release();
    await rig.clock.advance(1_000);
    rig.server.clearRequests();
    rig.server.patch(WIDGETS, "shop/a", { spec: { color: "blue" } });
    await rig.until(() => seen.length === 3);
    assert.deepEqual(rig.server.requests.filter(({ isWatch }) => !isWatch), []);
  });

  it("is not called where the server has no such object any more, though the cache has it", async () => {
    const { rig, watches, seen } = await writeUnseen();
    await using _ = rig;
    rig.server.delete(WIDGETS, "shop/a");
    await rig.clock.advance(20_000);
    assert.deepEqual([seen, rig.manager.pending, problems(rig)], [[undefined], 0, []]);
    watches.release();
  });

  it("is tried again where the server does not say which object it has", async () => {
    const { rig, watches, seen } = await writeUnseen();
    await using _ = rig;
    const isGet = ({ method, path }: RecordedRequest) => method === "GET" && path.endsWith("/widgets/a");
    rig.server.intercept(answerStatus(500), { match: isGet, times: 1 });
    await rig.until(() => seen.length === 2);
    assert.deepEqual(seen, [undefined, "1"]);
    assert.equal(problems(rig).length, 1);
    assert.match(problems(rig)[0], /^warn Cannot reconcile shop\/a, and tries again: /);
    watches.release();
  });

  it("is tried again where the server does not say how far it is, so that the cache cannot be given up", async () => {
    const { rig, watches, seen } = await writeUnseen();
    await using _ = rig;
    rig.server.intercept(answerStatus(500), { match: ({ query }) => query.limit === "1", times: 1 });
    await rig.until(() => seen.length === 2);
    assert.deepEqual(seen, [undefined, "1"]);
    assert.equal(problems(rig).length, 1);
    assert.match(problems(rig)[0], /^warn Cannot reconcile shop\/a, and tries again: /);
    watches.release();
  });
});
