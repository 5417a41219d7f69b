import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { FakeClock, InMemoryApiServer, pod, refuseConnection, seededRandom } from "@listwatch/cache/testing";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import { contentOf } from "@listwatch/cache/workers";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isWholeList } from "./whole_lists.ts";

class World {
  readonly #running = new Map<unknown, { stop(): Promise<unknown> }>();
  readonly clock = new FakeClock();
  server = new InMemoryApiServer({ clock: this.clock });
  readonly cluster = newCluster({
    server: "http://in-memory",
    fetch: (url, init) => this.server.fetch(url, init),
    clock: this.clock,
  });
  readonly pods = this.cluster.resource<KubernetesObject>("v1/pods");

  start(
    previous: SharedIndexInformer<KubernetesObject> | undefined,
    storage: () => ReturnType<typeof shortTexts> | undefined = () => undefined,
  ): SharedIndexInformer<KubernetesObject> {
    const held = storage();
    const informer = new SharedIndexInformer<KubernetesObject>(this.pods, {
      snapshot: contentOf(previous, { clock: this.clock }),
      clock: this.clock,
      logger: silentLogger,
      ...(held !== undefined && { storage: held }),
    });
    this.#running.set(informer, informer.start());
    return informer;
  }

  async stop(informer: SharedIndexInformer<KubernetesObject>): Promise<void> {
    await this.#running.get(informer)?.stop();
  }

  get lists(): number {
    return this.server.requests.filter(isWholeList).length;
  }
}

describe("contentOf", () => {
  for (
    const [name, storage] of [["no option", () => undefined], ["short texts", shortTexts]] as const
  ) {
    it(`lets an informer continue by a watch with what another one has: ${name}`, async () => {
      const world = new World();
      world.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
      world.server.create("v1/pods", pod("web-2", { namespace: "shop" }));
      const first = world.start(undefined, storage);
      await world.clock.advance(0);
      assert.equal(first.hasSynced(), true);
      assert.equal(first.status().snapshot?.load, "none");
      await world.stop(first);
      world.server.delete("v1/pods", "shop/web-1");
      const second = world.start(first, storage);
      await world.clock.advance(0);
      await world.clock.advance(1_000);
      assert.equal(second.hasSynced(), true);
      assert.deepEqual(second.indexer.listKeys(), ["shop/web-2"]);
      assert.equal(world.lists, 1);
      await world.stop(second);
    });
  }

  it("has the content at once, with its age, when the API server is away, and hands it on", async () => {
    const world = new World();
    world.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    let informer = world.start(undefined);
    await world.clock.advance(0);
    await world.stop(informer);
    const stopRefusing = world.server.intercept(refuseConnection());
    for (let i = 1; i <= 3; i++) {
      await world.clock.advance(10_000);
      const next = world.start(informer);
      await world.clock.advance(0);
      assert.deepEqual([next.hasSynced(), next.isRestored()], [false, true]);
      assert.deepEqual(next.indexer.listKeys(), ["shop/web-1"]);
      assert.ok(next.status().lagMs! >= i * 10_000, String(next.status().lagMs));
      assert.equal(next.isFresh(i * 10_000 - 1), false);
      await world.stop(informer);
      informer = next;
    }
    stopRefusing();
    await world.clock.advance(60_000);
    assert.equal(informer.hasSynced(), true);
    await world.stop(informer);
  });

  it("lets an informer continue whose source says no resource", async () => {
    const world = new World();
    world.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const source: ListerWatcher<KubernetesObject> = {
      list: (options, context) => world.pods.list(options, context),
      watch: (options, context) => world.pods.watch(options, context),
    };
    const start = async (previous: SharedIndexInformer<KubernetesObject> | undefined) => {
      const informer = new SharedIndexInformer<KubernetesObject>(source, {
        snapshot: contentOf(previous, { clock: world.clock, identity: "pods" }),
        clock: world.clock,
        logger: silentLogger,
      });
      const running = informer.start();
      await world.clock.advance(1_000);
      await running.stop();
      return informer;
    };
    const second = await start(await start(undefined));
    assert.equal(second.status().snapshot?.load, "restored");
    assert.deepEqual(second.indexer.listKeys(), ["shop/web-1"]);
  });

  it("lists where another cluster responds at the address of the earlier one", async () => {
    const world = new World();
    world.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const identify = () => world.server.create("v1/namespaces", { metadata: { name: "kube-system" } });
    identify();
    const first = world.start(undefined);
    await world.clock.advance(1_000);
    await world.stop(first);
    world.server = new InMemoryApiServer({ clock: world.clock, random: seededRandom(2) });
    identify();
    for (let i = 2; i < 9; i++) world.server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
    const second = world.start(first);
    await world.clock.advance(1_000);
    assert.equal(second.status().snapshot?.load, "refused");
    assert.equal(second.indexer.listKeys().length, 7);
    assert.equal(second.indexer.has("shop/web-1"), false);
    await world.stop(second);
  });

  it("lists where the earlier informer has another form, another resource, or nothing", async () => {
    const world = new World();
    world.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const objects = world.start(undefined);
    await world.clock.advance(0);
    const other = world.start(objects, shortTexts);
    const never = new SharedIndexInformer<KubernetesObject>(world.pods);
    const nothing = world.start(never);
    await world.clock.advance(0);
    const back = world.start(other);
    await world.clock.advance(0);
    assert.equal(world.lists, 4);
    for (const informer of [nothing, other]) assert.notEqual(informer.status().snapshot?.load, "restored");
    const configMaps = new SharedIndexInformer<KubernetesObject>(world.cluster.resource("v1/configmaps"), {
      snapshot: contentOf(objects, { clock: world.clock, identity: "the same" }),
      clock: world.clock,
      logger: silentLogger,
    });
    const running = configMaps.start();
    await world.clock.advance(0);
    assert.equal(configMaps.status().snapshot?.load, "refused");
    assert.deepEqual(configMaps.indexer.listKeys(), []);
    await running.stop();
    for (const informer of [objects, other, nothing, back]) {
      assert.deepEqual(informer.indexer.listKeys(), ["shop/web-1"]);
      await world.stop(informer);
    }
  });
});
