import type { Clock, Cluster, KubernetesObject } from "@listwatch/cache";
import {
  type CachedClient,
  type ControllerDefinition,
  defineController,
  ownedBy,
} from "@listwatch/cache/controller";
import { answerStatus, delayRequest, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, SlowWatches, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

/** Makes a Secret with a name that the server chooses, unless the Widget has one; as many controllers do. */
function tokens(cluster: Cluster): ControllerDefinition {
  return defineController({
    name: "tokens",
    for: cluster.resource<Widget>(WIDGETS),
    owns: { secrets: cluster.resource("v1/secrets") },
    async reconcile(object, { secrets }) {
      if ((await secrets.owned()).length > 0) return;
      await secrets.create({ metadata: { generateName: "token-", ...ownedBy(object) } });
    },
  });
}

/** A controller of Widgets that has Secrets. */
function overSecrets(
  name: string,
  reconcile: (
    object: Widget,
    context: { readonly secrets: CachedClient<KubernetesObject>; readonly clock: Clock },
  ) => Promise<void>,
): (cluster: Cluster) => ControllerDefinition {
  return (cluster) =>
    defineController({
      name,
      for: cluster.resource<Widget>(WIDGETS),
      owns: { secrets: cluster.resource<KubernetesObject>("v1/secrets") },
      reconcile,
    });
}

interface SlowRig {
  readonly rig: Rig;
  readonly watches: SlowWatches;
  count(): number;
  touch(value: string): void;
}

/** A rig whose watch of Secrets can be held back, with one Widget that has a Secret. */
async function startSlow(define = tokens): Promise<SlowRig> {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
  const watches = new SlowWatches(server, (path) => path.endsWith("/secrets"));
  const rig = startRig(define, {}, { server, clock, fetch: () => watches.fetch });
  await rig.until(() => rig.manager.status().isLeading);
  return {
    rig,
    watches,
    count: () => server.list("v1/secrets").items.length,
    touch: (value) => void server.patch(WIDGETS, "shop/a", { metadata: { labels: { value } } }),
  };
}

describe("CachedClient: the reads of a reconcile", () => {
  it("are never older than what the last reconcile of the key created", async () => {
    const { rig, watches, count, touch } = await startSlow();
    await using _ = rig;
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1);
    for (let i = 0; i < 10; i++) {
      touch(String(i));
      await rig.clock.advance(400);
    }
    assert.equal(count(), 1);
    watches.release();
    await rig.until(() => rig.manager.pending === 0);
    assert.equal(count(), 1);
  });

  it("go to the server when the cache does not catch up", async () => {
    const { rig, watches, count, touch } = await startSlow();
    await using _ = rig;
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1);
    const lists = () =>
      rig.server.requests.filter(({ path, query }) => path.endsWith("/secrets") && query.limit === "500");
    const before = lists().length;
    touch("1");
    await rig.until(() => lists().length > before, 10_000);
    await rig.until(() => rig.manager.pending === 0);
    assert.equal(count(), 1);
    watches.release();
  });

  it("have what the same reconcile has written before, though the cache does not catch up", async () => {
    const seen: string[][] = [];
    const define = overSecrets("listing", async (_, { secrets }) => {
      await secrets.apply({ metadata: { name: "own" } });
      seen.push((await secrets.list()).map(({ metadata }) => metadata?.name ?? ""));
    });
    const { rig, watches } = await startSlow(define);
    await using _ = rig;
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => seen.length === 1, 10_000);
    assert.deepEqual(seen, [["own"]]);
    watches.release();
  });

  it("have all of a long list of the server", async () => {
    const seen: number[] = [];
    const listing = overSecrets("listing", async (object, { secrets }) => {
      if (object.metadata?.labels?.value === undefined) {
        await secrets.create({ metadata: { name: "own" } });
      } else seen.push((await secrets.list()).length);
    });
    const { rig, watches, count, touch } = await startSlow(listing);
    await using _ = rig;
    for (let i = 0; i < 1_100; i++) {
      rig.server.create("v1/secrets", { metadata: { namespace: "shop", name: `s${i}` } });
    }
    await rig.clock.advance(100);
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1_101);
    touch("1");
    await rig.until(() => seen.length === 1, 10_000);
    assert.deepEqual(seen, [1_101]);
    watches.release();
  });

  it("have of the server what is selected: of a namespace, and by labels", async () => {
    const seen: string[][] = [];
    const listing = overSecrets("listing", async (object, { secrets }) => {
      assert.deepEqual(secrets.resource, { group: "", version: "v1", resource: "secrets" });
      if (object.metadata?.labels?.value === undefined) {
        await secrets.create({ metadata: { name: "own", labels: { app: "web" } } });
        return;
      }
      const selections = [{}, { namespace: "other" }, { namespace: "" }, { labelSelector: "app=web" }, {
        namespace: "",
        labelSelector: "app!=web",
      }];
      for (const selection of selections) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        seen.push((await secrets.list(selection)).map(({ metadata }) => metadata!.name!).sort());
      }
    });
    const { rig, watches, count, touch } = await startSlow(listing);
    await using _ = rig;
    for (
      const [name, namespace, app] of [["a", "shop", "web"], ["b", "shop", "db"], ["c", "other", "web"], [
        "d",
        "other",
        "db",
      ]]
    ) rig.server.create("v1/secrets", { metadata: { name, namespace, labels: { app } } });
    await rig.clock.advance(100);
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 5);
    touch("1");
    await rig.until(() => seen.length === 5, 10_000);
    assert.deepEqual(seen, [["a", "b", "own"], ["c", "d"], ["a", "b", "c", "d", "own"], ["a", "own"], [
      "b",
      "d",
    ]]);
    watches.release();
  });

  it("see a delete as soon as the object shows that it is being deleted", async () => {
    const times: number[] = [];
    const deleting = overSecrets("deleting", async (_, { secrets, clock }) => {
      times.push(clock.now());
      await secrets.deleteIfExists("token");
    });
    const { rig, touch } = await startSlow(deleting);
    await using _ = rig;
    rig.server.create("v1/secrets", {
      metadata: { namespace: "shop", name: "token", finalizers: ["example.com/other"] },
    });
    await rig.clock.advance(100);
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => times.length === 1);
    touch("1");
    await rig.until(() => times.length === 2);
    assert.ok(times[1] - times[0] < 500, `${times[1] - times[0]} ms`);
  });

  it("wait for nothing but the key's own writes, and the worker takes other keys meanwhile", async () => {
    const { rig, watches, count, touch } = await startSlow();
    await using _ = rig;
    watches.hold();
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1);
    touch("1");
    await rig.clock.advance(10);
    rig.server.create(WIDGETS, widget("b", "red"));
    await rig.until(() => count() === 2, 1_000);
    watches.release();
  });

  it("do not act on a write whose answer was lost before they know whether it was made", async () => {
    const { rig, watches, count } = await startSlow();
    await using _ = rig;
    watches.hold();
    rig.server.intercept(async (request, next) => {
      await next(request);
      throw new TypeError("the connection broke");
    }, { match: ({ method, path }) => method === "POST" && path.endsWith("/secrets"), times: 1 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1);
    await rig.clock.advance(4_000);
    assert.equal(count(), 1);
    watches.release();
    await rig.until(() => rig.manager.pending === 0);
    assert.equal(count(), 1);
  });

  describe("come after a reconcile of the key that has failed with one of several writes at once", () => {
    type Work = (secrets: CachedClient<KubernetesObject>, sleep: () => Promise<void>) => Promise<unknown>;
    const token = { metadata: { generateName: "token-" } };

    /** A rig whose first write is refused while another one is still made; the names of all Secrets. */
    async function besideOne(other: Work): Promise<string[]> {
      const rig = { clock: undefined as FakeClock | undefined };
      const define = overSecrets("both", async (_, { secrets }) => {
        if ((await secrets.list()).length > 0) return;
        const sleep = () => new Promise<void>((resolve) => void rig.clock!.setTimeout(resolve, 3_000));
        await Promise.all([secrets.create({ metadata: { name: "refused" } }), other(secrets, sleep)]);
      });
      const slow = await startSlow(define);
      await using _ = slow.rig;
      const { clock, server } = slow.rig;
      rig.clock = clock;
      const match = ({ method, path }: { readonly method: string; readonly path: string }) =>
        method === "POST" && path.endsWith("/secrets");
      server.intercept(answerStatus(403), { match, times: 1 });
      server.intercept(delayRequest(5_000), { match });
      server.create(WIDGETS, widget("a", "red"));
      await clock.advance(180_000);
      assert.equal(slow.rig.manager.pending, 0);
      return server.list("v1/secrets").items.map(({ metadata }) => metadata!.name!);
    }

    it("and see what was on its way then", async () => {
      const names = await besideOne((secrets) => secrets.create(token));
      assert.deepEqual(names.map((name) => name.slice(0, 6)), ["token-"]);
    });

    it("and see what was being prepared then", async () => {
      const names = await besideOne((secrets, sleep) =>
        secrets.createOrUpdate("made", async (made) => {
          await sleep();
          return made;
        })
      );
      assert.deepEqual(names, ["made"]);
    });

    it("and what that one writes later is refused", async () => {
      const errors: unknown[] = [];
      const names = await besideOne(async (secrets, sleep) => {
        await sleep();
        await secrets.create(token).catch((error) => errors.push(error));
      });
      assert.deepEqual(names.map((name) => name.slice(0, 6)), ["refuse", "token-"]);
      assert.deepEqual(errors.map(String), [
        "Error: Cannot write after the reconcile has ended: await all that it does",
      ]);
    });

    it("and end with what never ends, at the deadline", async () => {
      const names = await besideOne((secrets) =>
        secrets.createOrUpdate("made", () => new Promise<KubernetesObject>(() => {}))
      );
      assert.deepEqual(names, ["refused"]);
    });
  });

  it("see a delete, of an object that is there again as of one that is not", async () => {
    let made = 0;
    const replacing = overSecrets("replacing", async (object, { secrets }) => {
      const wanted = object.metadata?.labels?.value ?? "";
      const [secret] = await secrets.owned();
      if (secret?.metadata?.labels?.value === wanted) return;
      if (secret !== undefined) await secrets.delete(secret.metadata!.name!);
      assert.deepEqual(await secrets.owned(), []);
      made++;
      await secrets.create({
        metadata: { name: "token", labels: { value: wanted }, ...ownedBy(object) },
      });
    });
    const { rig, watches, count, touch } = await startSlow(replacing);
    await using _ = rig;
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1);
    watches.hold();
    touch("1");
    await rig.until(() => count() === 0);
    await rig.clock.advance(1_000);
    watches.release();
    await rig.until(() => count() === 1 && rig.manager.pending === 0);
    assert.equal(made, 2);
    assert.deepEqual(rig.lines.filter((line) => !line.startsWith("info")), []);
  });

  it("see a delete of an object that the cache does not have yet", async () => {
    const seen: number[] = [];
    const deleting = overSecrets("deleting", async (object, { secrets }) => {
      const { value } = object.metadata?.labels ?? {};
      if (value === "1") await secrets.deleteIfExists("token");
      if (value !== undefined) seen.push((await secrets.list()).length);
    });
    const { rig, watches, touch } = await startSlow(deleting);
    await using _ = rig;
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(1_000);
    watches.hold();
    rig.server.create("v1/secrets", { metadata: { namespace: "shop", name: "token" } });
    touch("1");
    await rig.clock.advance(100);
    watches.release();
    watches.hold(); // what comes is that it was created
    touch("2");
    await rig.clock.advance(100);
    watches.release();
    await rig.until(() => rig.manager.pending === 0 && seen.length > 1);
    assert.deepEqual(seen, [0, 0]);
  });

  it("are those of a new leader only when its caches have all that the old one wrote", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const watches = new SlowWatches(server, (path) => path.endsWith("/secrets"));
    const leader = { lease: "tokens" };
    await using first = startRig(tokens, { leader: { ...leader, identity: "first" } }, { server, clock });
    await first.until(() => first.manager.status().isLeading);
    await using second = startRig(tokens, { leader: { ...leader, identity: "second" } }, {
      server,
      clock,
      fetch: () => watches.fetch,
    });
    await second.until(() => second.manager.status().hasSynced);
    watches.hold();
    server.create(WIDGETS, widget("a", "red"));
    await first.until(() => server.list("v1/secrets").items.length === 1);
    const stopped = first.manager.stop();
    await clock.advance(5_000);
    await stopped;
    assert.equal(second.manager.status().isLeading, false);
    assert.equal(server.list("v1/secrets").items.length, 1);
    watches.release();
    await second.until(() => second.manager.status().isLeading);
    await second.until(() => second.manager.pending === 0);
    assert.equal(server.list("v1/secrets").items.length, 1);
    server.close();
  });

  it("come after a failed write that the server refused, at once", async () => {
    const { rig, count } = await startSlow();
    await using _ = rig;
    rig.server.intercept(answerStatus(403), { match: ({ method }) => method === "POST", times: 1 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 1, 1_000);
  });
});
