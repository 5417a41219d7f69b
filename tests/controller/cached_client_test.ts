import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubernetesObject,
  newCluster,
  silentLogger,
  StatusError,
} from "@listwatch/cache";
import { LeadershipLostError, ownedBy } from "@listwatch/cache/controller";
import { answerStatus, FakeClock, hang, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ReconcileAccess, ReconcileClient, StartedWrites } from "../../src/controller/cached_client.ts";
import { CachedResource, OwnWrites } from "../../src/controller/cached_resource.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

const MAPS = "v1/configmaps";

interface Thing extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly status?: { readonly ready?: boolean };
}

interface Cache extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly server: InMemoryApiServer;
  readonly resource: CachedResource;
  readonly writes: OwnWrites;
  /** The client of a reconcile. */
  client(access?: Partial<ReconcileAccess>): ReconcileClient<Thing>;
  /** The requests since it began, other than watches, as `GET /path?query`. */
  requests(): string[];
  /** Waits for it while the time goes by. */
  after<R>(work: Promise<R>): Promise<R>;
}

/** The cache of a resource, which has what the test says; reconciled is `shop/a`. */
async function startCache(
  of: typeof MAPS | typeof WIDGETS | "v1/nodes",
  objects: readonly Thing[] = [],
  { namespace, isCaughtUp = true, metadataOnly = false }: {
    readonly namespace?: string;
    readonly isCaughtUp?: boolean;
    readonly metadataOnly?: boolean;
  } = {},
): Promise<Cache> {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
  for (const object of objects) server.create(of, object);
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const client = cluster.resource<Thing>(of, { metadataOnly, ...(namespace && { namespace }) });
  const resource = new CachedResource(client, {
    clock,
    random: () => 0.5,
    logger: silentLogger,
    metrics: undefined,
    resyncPeriodMs: 0,
    cluster: "",
  });
  resource.addIndexers({ byData: (object) => Object.values((object as Thing).data ?? {}) });
  resource.isCaughtUp = isCaughtUp;
  const running = resource.informer.start();
  await clock.advance(1_000);
  await resource.description(new AbortController().signal);
  server.clearRequests();
  const writes = new OwnWrites();
  return {
    clock,
    server,
    resource,
    writes,
    client: (access = {}) =>
      new ReconcileClient<Thing>(resource, {
        object: { metadata: { name: "a", namespace: "shop", uid: "u-a" } },
        manager: "tests",
        writes,
        readTimeoutMs: 3_000,
        signal: new AbortController().signal,
        started: new StartedWrites(),
        checkLease: () => {},
        ...access,
      }),
    requests: () =>
      server.requests.filter(({ isWatch }) => !isWatch).map(({ method, path, query }) => {
        const text = new URLSearchParams(query).toString();
        return `${method} ${path}${text && `?${text}`}`;
      }),
    async after(work) {
      let isOver = false;
      work.then(() => isOver = true, () => isOver = true);
      for (let ms = 0; ms < 30_000 && !isOver; ms += 100) await clock.advance(100);
      assert.ok(isOver, "it does not end");
      return await work;
    },
    async [Symbol.asyncDispose]() {
      const stopped = running.stop();
      await clock.advance(1_000);
      await stopped;
      server.close();
    },
  };
}

const map = (name: string, data?: Thing["data"], namespace = "shop"): Thing => ({
  metadata: { name, namespace },
  ...(data && { data }),
});

const nameOf = (object: Thing | undefined) => object?.metadata?.name;
const names = (objects: readonly Thing[]) => objects.map((object) => nameOf(object)!).sort();

describe("ReconcileClient.get", () => {
  it("reads the cache, in the namespace of the reconciled object unless another is named", async () => {
    await using cache = await startCache(MAPS, [map("m"), map("n", {}, "other")]);
    const client = cache.client();
    assert.deepEqual(client.resource, { group: "", version: "v1", resource: "configmaps" });
    assert.equal(nameOf(await client.get("m")), "m");
    assert.equal(await client.get("n"), undefined);
    assert.equal(nameOf(await client.get("n", { namespace: "other" })), "n");
    assert.deepEqual(cache.requests(), []);
  });

  it("is in the client's own namespace for an object that has none, and in none for a resource that has none", async () => {
    const object = { metadata: { name: "a" } };
    await using maps = await startCache(MAPS, [map("m")], { namespace: "shop" });
    assert.equal(nameOf(await maps.client({ object }).get("m")), "m");
    assert.equal(nameOf(await maps.client({ object: {} }).get("m")), "m");
    assert.deepEqual(maps.requests(), []);
    const made = await maps.client({ object: {} }).create({ metadata: { name: "made" } });
    assert.equal(made.metadata?.namespace, "shop");
    await using nodes = await startCache("v1/nodes", [{ metadata: { name: "n" } }]);
    assert.equal(nameOf(await nodes.client().get("n", { namespace: "shop" })), "n");
  });

  it("asks the server while the cache may lack what was written before: no object is undefined", async () => {
    await using cache = await startCache(MAPS, [map("m")], { isCaughtUp: false });
    const client = cache.client();
    assert.equal(nameOf(await client.get("m")), "m");
    assert.equal(await client.get("absent"), undefined);
    const path = "GET /api/v1/namespaces/shop/configmaps";
    assert.deepEqual(cache.requests(), [`${path}/m`, `${path}/absent`]);
    cache.server.intercept(answerStatus(500));
    await assert.rejects(client.get("m"), StatusError);
  });

  it("asks the server for what is in a namespace that the cache does not have", async () => {
    await using cache = await startCache(MAPS, [map("m", {}, "other")], { namespace: "shop" });
    assert.equal(nameOf(await cache.client().get("m", { namespace: "other" })), "m");
    assert.deepEqual(cache.requests(), ["GET /api/v1/namespaces/other/configmaps/m"]);
  });

  it("ends with the reconcile, whether the cache is read or the server", async () => {
    for (const isCaughtUp of [true, false]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using cache = await startCache(MAPS, [map("m")], { isCaughtUp });
      const ending = new AbortController();
      const client = cache.client({ signal: ending.signal });
      cache.server.intercept(hang());
      const reading = isCaughtUp ? undefined : client.get("m");
      // deno-lint-ignore no-await-in-loop -- one after the other
      await cache.clock.advance(100);
      ending.abort(new Error("too late"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      if (reading !== undefined) await assert.rejects(reading, /too late/);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await assert.rejects(client.get("m"), /too late/);
    }
  });
});

describe("ReconcileClient: reads after writes", () => {
  it("wait for the cache, and read the server after readTimeoutMs, in this reconcile", async () => {
    await using cache = await startCache(MAPS, [map("m", { a: "1" })]);
    const client = cache.client();
    assert.equal(cache.writes.isEmpty, true);
    cache.writes.wrote(cache.resource, "1000000", "shop");
    const startMs = cache.clock.now();
    assert.equal(nameOf(await cache.after(client.get("m"))), "m");
    assert.equal(cache.clock.now() - startMs, 3_000);
    assert.ok(cache.requests().includes("GET /api/v1/namespaces/shop/configmaps/m"));
    const listed = cache.requests().length;
    assert.deepEqual(names(await client.list()), ["m"]);
    assert.equal(cache.requests().length, listed + 1);
    assert.deepEqual(names(await client.byIndex("byData", "1")), ["m"]);
    assert.deepEqual(names(await client.byIndex("byData", "2")), []);
    assert.equal(cache.requests().length, listed + 3);
    assert.deepEqual(cache.requests().at(-1), "GET /api/v1/configmaps?limit=500");
    await assert.rejects(client.byIndex("none", "1"), { name: "IndexNotFoundError" });
    assert.equal(cache.requests().length, listed + 3);
  });

  it("wait for the resource that is read, and for no other", async () => {
    await using cache = await startCache(MAPS, [map("m")]);
    await using other = await startCache(WIDGETS);
    cache.writes.wrote(other.resource, "1000000", "shop");
    assert.equal(nameOf(await cache.client().get("m")), "m");
    assert.deepEqual(cache.requests(), []);
  });

  it("end with the reconcile while they wait", async () => {
    await using cache = await startCache(MAPS, [map("m")]);
    cache.writes.wrote(cache.resource, "1000000", "shop");
    const ending = new AbortController();
    const reading = cache.client({ signal: ending.signal }).get("m");
    await cache.clock.advance(100);
    ending.abort(new Error("too late"));
    await assert.rejects(reading, /too late/);
  });
});

describe("ReconcileClient.list", () => {
  it("has what is selected, of the cache as of the server", async () => {
    for (const isCaughtUp of [true, false]) {
      const labelled = { metadata: { name: "l", namespace: "shop", labels: { app: "web" } } };
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using cache = await startCache(MAPS, [map("m"), labelled, map("n", {}, "other")], { isCaughtUp });
      const client = cache.client();
      const selections = [{}, { namespace: "" }, { namespace: "other" }, { labelSelector: "app=web" }];
      // deno-lint-ignore no-await-in-loop -- one after the other
      const listed = await Promise.all(selections.map((selection) => client.list(selection)));
      assert.deepEqual(listed.map(names), [["l", "m"], ["l", "m", "n"], ["n"], ["l"]]);
      const path = "GET /api/v1/namespaces/shop/configmaps?limit=500";
      const asked = [path, "GET /api/v1/configmaps?limit=500", path.replace("shop", "other"), path];
      assert.deepEqual(cache.requests(), isCaughtUp ? [] : asked);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await assert.rejects(client.list({ labelSelector: "a b" }), { name: "SelectorParseError" });
    }
  });

  it("asks for one namespace only where the cache does not have it", async () => {
    await using cache = await startCache(MAPS, [map("m"), map("n", {}, "other")], { namespace: "shop" });
    assert.deepEqual(names(await cache.client().list({ namespace: "other" })), ["n"]);
    assert.deepEqual(names(await cache.client().list({ namespace: "" })), ["m"]);
    assert.deepEqual(cache.requests(), ["GET /api/v1/namespaces/other/configmaps?limit=500"]);
  });

  it("ends with the reconcile", async () => {
    await using cache = await startCache(MAPS, [map("m")], { isCaughtUp: false });
    const ending = new AbortController();
    cache.server.intercept(hang());
    const reading = cache.client({ signal: ending.signal }).list();
    await cache.clock.advance(100);
    ending.abort(new Error("too late"));
    await assert.rejects(reading, /too late/);
  });
});

describe("ReconcileClient.owned", () => {
  it("has nothing of an object without a uid", async () => {
    const owner = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "shop", uid: "u-a" } };
    const own = { metadata: { name: "o", namespace: "shop", ...ownedBy(owner) } };
    await using cache = await startCache(MAPS, [map("m"), own]);
    assert.deepEqual(names(await cache.client().owned()), ["o"]);
    assert.deepEqual(names(await cache.client({ object: { metadata: { name: "a" } } }).owned()), []);
    assert.deepEqual(names(await cache.client({ object: {} }).owned()), []);
  });
});

describe("ReconcileClient: writes", () => {
  it("say what the object is, and are in the namespace of the reconciled one", async () => {
    await using cache = await startCache(MAPS);
    const client = cache.client();
    const made = await client.create({ metadata: { name: "m" }, data: { a: "1" } });
    assert.deepEqual([made.apiVersion, made.kind, made.metadata?.namespace], ["v1", "ConfigMap", "shop"]);
    assert.equal(nameOf(await client.create(map("o", {}, "other"))), "o");
    const replaced = await client.replace({
      metadata: { name: "m", resourceVersion: made.metadata!.resourceVersion },
      data: { b: "2" },
    });
    assert.deepEqual([replaced.kind, replaced.data], ["ConfigMap", { b: "2" }]);
    assert.equal(isConflict(await client.replace(made).catch((error) => error)), true);
    const patched = await client.patch("m", { data: { c: "3" } });
    assert.deepEqual(patched.data, { b: "2", c: "3" });
    await client.patch("o", { data: { d: "4" } }, { namespace: "other" });
    const [path, otherPath] = ["shop", "other"].map((one) => `/api/v1/namespaces/${one}/configmaps`);
    assert.deepEqual(cache.requests(), [
      `POST ${path}`,
      `POST ${otherPath}`,
      `PUT ${path}/m`,
      `PUT ${path}/m`,
      `PATCH ${path}/m`,
      `PATCH ${otherPath}/o`,
    ]);
    assert.equal(client.lastWritten(made), patched);
    const unknown = map("x");
    assert.equal(client.lastWritten(unknown), unknown);
    assert.equal(client.lastWritten({}).metadata, undefined);
    // What was written is read.
    assert.deepEqual((await cache.after(client.get("m")))?.data, { b: "2", c: "3" });
  });

  it("are in no namespace for a resource that has none", async () => {
    await using cache = await startCache("v1/nodes", [{ metadata: { name: "n" } }]);
    const client = cache.client();
    await client.create({ metadata: { name: "m" } });
    await client.patch("n", { metadata: { labels: { a: "1" } } });
    await client.delete("n");
    assert.deepEqual(cache.requests(), [
      "POST /api/v1/nodes",
      "PATCH /api/v1/nodes/n",
      "DELETE /api/v1/nodes/n",
    ]);
  });

  const writes: Readonly<Record<string, (client: ReconcileClient<Thing>) => Promise<unknown>>> = {
    create: (client) => client.create(map("x")),
    replace: (client) => client.replace(map("m")),
    patch: (client) => client.patch("m", { data: { a: "2" } }),
    apply: (client) => client.apply(map("m", { a: "2" })),
    createOrUpdate: (client) => client.createOrUpdate("m", (present) => ({ ...present, data: { a: "2" } })),
    patchStatus: (client) => client.patchStatus("m", { ready: true }),
    delete: (client) => client.delete("m"),
    deleteIfExists: (client) => client.deleteIfExists("m"),
  };
  for (const [name, write] of Object.entries(writes)) {
    it(`send nothing without the lease, or after the reconcile's end, and give up what is sent then: ${name}`, async () => {
      await using cache = await startCache(MAPS, [map("m", { a: "1" })]);
      const checkLease = () => {
        throw new LeadershipLostError("tests", "it was not renewed");
      };
      await assert.rejects(write(cache.client({ checkLease })), LeadershipLostError);
      await assert.rejects(write(cache.client({ signal: AbortSignal.abort(new Error("over")) })), /over/);
      assert.deepEqual(cache.requests(), []);
      assert.equal(cache.writes.isEmpty, true);
      const ending = new AbortController();
      cache.server.intercept(hang());
      const sent = write(cache.client({ signal: ending.signal }));
      await cache.clock.advance(100);
      assert.equal(cache.requests().length, 1);
      ending.abort(new Error("too late"));
      await assert.rejects(sent, /too late/);
      // It may have been made: the next read asks the server.
      assert.deepEqual([cache.writes.isEmpty, cache.writes.isInCaches()], [false, false]);
    });
  }

  it("that the server refuses were not made", async () => {
    await using cache = await startCache(MAPS, [map("m")]);
    await assert.rejects(cache.client().create(map("m")), isAlreadyExists);
    assert.equal(cache.writes.isEmpty, true);
  });

  it("refuse an owner of another namespace, and take one of none, or that is not the reconciled object", async () => {
    await using cache = await startCache(MAPS);
    const owner = { apiVersion: "v1", kind: "Node", metadata: { name: "a", uid: "u-a" } };
    const owned = (uid: string) => ({
      metadata: {
        name: "m",
        namespace: "other",
        ...ownedBy({ ...owner, metadata: { ...owner.metadata, uid } }),
      },
    });
    await assert.rejects(cache.client().create(owned("u-a")), {
      name: "TypeError",
      message:
        'Cannot make "shop/a" the owner of "other/m": an owner is of the same namespace, or of none; the ' +
        "server would delete the object, so find it by a label",
    });
    await assert.rejects(cache.client().replace(owned("u-a")), TypeError);
    const { name: _, ...unnamed } = owned("u-a").metadata;
    const generated = cache.client().create({ metadata: { ...unnamed, generateName: "m-" } });
    await assert.rejects(generated, /^TypeError: Cannot make "shop\/a" the owner of "other\/": an owner/);
    await assert.rejects(cache.client().apply(owned("u-a")), TypeError);
    assert.deepEqual(cache.requests(), []);
    await cache.client({ object: owner }).create(owned("u-a"));
    await cache.client().replace(owned("u-b"));
  });
});

describe("ReconcileClient.apply and createOrUpdate, of an object that has a controlling owner", () => {
  const owner = (name: string, uid: string, apiVersion = "example.com/v1", kind = "Widget") =>
    ownedBy({ apiVersion, kind, metadata: { name, uid } });
  const ownedMap = (owned: ReturnType<typeof owner>): Thing => ({
    ...map("m", { a: "1" }),
    metadata: { name: "m", namespace: "shop", ...owned },
  });

  for (
    const [name, other] of [
      ["of another name", owner("b", "u-b")],
      ["of another group", owner("a", "u-b", "example.net/v1")],
      ["of another kind", owner("a", "u-b", "example.com/v1", "Gadget")],
    ] as const
  ) {
    it(`refuse to take it from an owner ${name}, as that would take it back`, async () => {
      await using cache = await startCache(MAPS, [ownedMap(owner("a", "u-a"))]);
      const client = cache.client();
      const refused = /^TypeError: Cannot take "shop\/m" from Widget a, .* owner: give it another name/;
      await assert.rejects(client.apply(ownedMap(other)), refused);
      await assert.rejects(client.createOrUpdate("m", () => ownedMap(other)), refused);
      assert.deepEqual(cache.requests(), []);
    });
  }

  it("give it to an owner that was created again, in any version, and leave it to its owner", async () => {
    await using cache = await startCache(MAPS);
    await cache.client().apply(ownedMap(owner("a", "u-a")));
    const again = owner("a", "u-b", "example.com/v2");
    const { object } = await cache.after(cache.client().apply(ownedMap(again)));
    assert.deepEqual(object.metadata?.ownerReferences, again.ownerReferences);
    const later = owner("a", "u-c");
    const made = await cache.after(cache.client().createOrUpdate("m", () => ownedMap(later)));
    assert.deepEqual(made.object.metadata?.ownerReferences, later.ownerReferences);
    const { changed } = await cache.after(cache.client().apply(map("m", { a: "2" })));
    assert.equal(changed, true);
  });
});

describe("ReconcileClient.apply", () => {
  it("takes over the fields of others unless it must not, as the controller's manager", async () => {
    await using cache = await startCache(MAPS);
    const of = (manager: string) => cache.client({ manager });
    const first = await of("x").apply(map("m", { a: "1" }));
    assert.deepEqual([first.changed, first.object.data], [true, { a: "1" }]);
    const refused = of("y").apply(map("m", { a: "2" }), { force: false });
    assert.equal(isConflict(await cache.after(refused.catch((error) => error))), true);
    const taken = await cache.after(of("y").apply(map("m", { a: "2" })));
    assert.deepEqual([taken.changed, taken.object.data], [true, { a: "2" }]);
    const queries = cache.server.requests.filter(({ method }) => method === "PATCH").map(({ query }) =>
      query
    );
    assert.deepEqual(queries.map(({ fieldManager, force }) => [fieldManager, force]), [
      ["x", "true"],
      ["y", undefined],
      ["y", "true"],
    ]);
    const same = await cache.after(of("y").apply(map("m", { a: "2" })));
    assert.deepEqual([same.changed, nameOf(same.object)], [false, "m"]);
    assert.equal(cache.server.requests.filter(({ method }) => method === "PATCH").length, 3);
  });

  it("has changed nothing where the server's object is as it was", async () => {
    await using cache = await startCache(MAPS);
    await cache.client().apply(map("m", { a: "1" }));
    cache.resource.applied.forget("shop/m");
    // Fields that it does not know of were applied: without the memory, it asks the server.
    cache.resource.applied.set("tests", "shop/m", "something else");
    const { changed, object } = await cache.after(cache.client().apply(map("m", { a: "1" })));
    assert.deepEqual([changed, object.data], [false, { a: "1" }]);
    assert.equal(cache.server.requests.filter(({ method }) => method === "PATCH").length, 2);
  });

  it("restores what it cannot see, as the cache has metadata only, and asks for no metadata twice", async () => {
    await using cache = await startCache(MAPS, [], { metadataOnly: true });
    await cache.client().apply(map("m", { a: "1" }));
    cache.server.patch(MAPS, "shop/m", { data: { a: "2" } });
    await cache.clock.advance(1_000);
    await cache.after(cache.client().apply(map("m", { a: "1" })));
    assert.equal(cache.server.get<Thing>(MAPS, "shop/m")?.data?.a, "1");
    await cache.after(cache.client().apply(map("n")));
    await cache.after(cache.client().apply(map("n")));
    assert.equal(cache.server.requests.filter(({ method }) => method === "PATCH").length, 3);
  });

  it("finds the object in the namespace that the configuration names", async () => {
    await using cache = await startCache(MAPS);
    await cache.client().apply(map("m", { a: "1" }, "other"));
    const { changed } = await cache.after(cache.client().apply(map("m", { a: "1" }, "other")));
    assert.equal(changed, false);
    assert.equal(cache.server.get<Thing>(MAPS, "other/m")?.data?.a, "1");
    await assert.rejects(cache.client().apply({}), /: the name is empty$/);
  });
});

describe("ReconcileClient.createOrUpdate", () => {
  it("gives the function an object with the name only, and creates what it returns", async () => {
    await using cache = await startCache(MAPS);
    let given: Thing | undefined;
    const { object, changed } = await cache.client().createOrUpdate("m", (bare) => {
      given = bare;
      return { ...bare, data: { a: "1" } };
    });
    const metadata = { name: "m", namespace: "shop" };
    assert.deepEqual(given, { apiVersion: "v1", kind: "ConfigMap", metadata });
    assert.deepEqual([changed, object.data], [true, { a: "1" }]);
    assert.equal(cache.server.get<Thing>(MAPS, "shop/m")?.data?.a, "1");
  });

  it("names no namespace where the resource has none", async () => {
    await using cache = await startCache("v1/nodes");
    let given: Thing | undefined;
    await cache.client().createOrUpdate("n", (bare) => given = bare);
    assert.deepEqual(given, { apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
  });

  it("gives the function a copy, and sends the difference with the version that was read", async () => {
    await using cache = await startCache(MAPS, [map("m", { a: "1", b: "2" }, "other")]);
    const before = cache.resource.informer.indexer.getByKey("other/m") as Thing;
    const version = before.metadata!.resourceVersion;
    const bodies: unknown[] = [];
    cache.server.intercept(async (request, next) => {
      bodies.push(await request.clone().json());
      return await next(request);
    }, { match: ({ method }) => method === "PATCH" });
    const change = (present: Thing) => Object.assign(present, { data: { a: "1", c: "3" } });
    const { object, changed } = await cache.client().createOrUpdate("m", change, { namespace: "other" });
    assert.deepEqual([changed, object.data, before.data], [true, { a: "1", c: "3" }, { a: "1", b: "2" }]);
    assert.deepEqual(bodies, [{ data: { b: null, c: "3" }, metadata: { resourceVersion: version } }]);
    const same = cache.client().createOrUpdate("m", (present) => present, { namespace: "other" });
    const unchanged = await cache.after(same);
    assert.deepEqual([unchanged.changed, unchanged.object.data], [false, { a: "1", c: "3" }]);
    assert.equal(bodies.length, 1);
  });

  it("compares times as the server has them, and writes each once", async () => {
    await using cache = await startCache(MAPS, [map("m")]);
    const change = (present: Thing) => Object.assign(present, { data: { at: new Date(0) } });
    const first = await cache.client().createOrUpdate("m", change);
    assert.deepEqual([first.changed, first.object.data], [true, { at: "1970-01-01T00:00:00.000Z" }]);
    assert.equal((await cache.after(cache.client().createOrUpdate("m", change))).changed, false);
    assert.equal(cache.requests().length, 1);
  });

  it("has changed nothing where the server's object is as it was: its status is written by patchStatus", async () => {
    await using cache = await startCache(WIDGETS, [{ metadata: { name: "w", namespace: "shop" } }]);
    const change = (present: Thing) => ({ ...present, status: { ready: true } });
    const { changed, object } = await cache.client().createOrUpdate("w", change);
    assert.deepEqual([changed, object.status, cache.requests().length], [false, undefined, 1]);
  });
});

describe("ReconcileClient.patchStatus", () => {
  const ready = { status: { ready: true } };

  it("writes what differs to the subresource, and nothing otherwise", async () => {
    const widget = { metadata: { name: "w", namespace: "shop", labels: { a: "1" } } };
    await using cache = await startCache(WIDGETS, [widget]);
    const first = await cache.client().patchStatus("w", ready.status);
    assert.deepEqual([first.changed, first.object.status], [true, ready.status]);
    const same = await cache.after(cache.client().patchStatus("w", ready.status));
    assert.deepEqual([same.changed, same.object.status], [false, ready.status]);
    const path = "/apis/example.com/v1/namespaces/shop/widgets/w/status";
    assert.deepEqual(cache.requests(), [`PATCH ${path}`]);
    assert.deepEqual(cache.server.get(WIDGETS, "shop/w")?.metadata?.labels, { a: "1" });
  });

  it("compares times as the server has them, and writes each once", async () => {
    await using cache = await startCache(WIDGETS, [{ metadata: { name: "w", namespace: "shop" } }]);
    const status = { at: new Date(0), all: [new Date(0)], none: undefined };
    const first = await cache.client().patchStatus("w", status);
    const sent = { at: "1970-01-01T00:00:00.000Z", all: ["1970-01-01T00:00:00.000Z"] };
    assert.deepEqual([first.changed, first.object.status], [true, sent]);
    const same = await cache.after(cache.client().patchStatus("w", status));
    assert.equal(same.changed, false);
    assert.equal(cache.requests().length, 1);
  });

  it("has changed nothing where the server's object is as it was: the schema lacks the field", async () => {
    await using cache = await startCache(WIDGETS, [{ metadata: { name: "w", namespace: "shop" } }]);
    const pruned = (request: Request) => new Request(request, { body: "{}" });
    cache.server.intercept((request, next) => next(pruned(request)), {
      match: ({ method }) => method === "PATCH",
    });
    const { changed, object } = await cache.client().patchStatus("w", ready.status);
    assert.deepEqual([changed, object.status], [false, undefined]);
  });

  it("writes that of an object which the cache does not have, in the namespace that is named", async () => {
    await using cache = await startCache(WIDGETS, [], { namespace: "shop" });
    cache.server.create(WIDGETS, { metadata: { name: "w", namespace: "other" } });
    cache.server.intercept(answerStatus(404), { match: ({ method }) => method === "GET", times: 1 });
    const client = cache.client();
    const { changed, object } = await client.patchStatus("w", ready.status, { namespace: "other" });
    assert.deepEqual([changed, object.status], [true, ready.status]);
    const absent = client.patchStatus("w", ready.status);
    assert.equal(isNotFound(await absent.catch((error) => error)), true);
    assert.deepEqual(cache.requests().filter((line) => line.startsWith("PATCH")), [
      "PATCH /apis/example.com/v1/namespaces/other/widgets/w/status",
      "PATCH /apis/example.com/v1/namespaces/shop/widgets/w/status",
    ]);
  });

  it("is refused where the object has changed since it was read", async () => {
    await using cache = await startCache(WIDGETS, [{ metadata: { name: "w", namespace: "shop" } }]);
    const client = cache.client();
    const before = (await client.get("w"))!;
    cache.server.patch(WIDGETS, "shop/w", { metadata: { labels: { a: "1" } } });
    assert.equal(isConflict(await client.patchStatusOf(before, ready.status).catch((error) => error)), true);
  });
});

describe("ReconcileClient.delete", () => {
  it("is seen by the next read, of an object that the cache had as of one that it had not", async () => {
    await using cache = await startCache(MAPS, [map("m"), map("n", {}, "other")]);
    const client = cache.client();
    const { uid } = cache.server.get(MAPS, "shop/m")!.metadata!;
    const { deleted } = cache.writes;
    const kept: string[] = [];
    cache.writes.deleted = (...args) => {
      kept.push(...args.slice(1) as string[]);
      deleted.apply(cache.writes, args);
    };
    await client.delete("m");
    assert.deepEqual(kept, ["shop/m", uid]);
    assert.equal(await cache.after(client.get("m")), undefined);
    assert.equal(cache.writes.isEmpty, true);
    assert.equal(await client.deleteIfExists("n", { namespace: "other" }), true);
    assert.equal(cache.server.get(MAPS, "other/n"), undefined);
    assert.equal(await client.deleteIfExists("absent"), false);
    await assert.rejects(client.delete("absent"), isNotFound);
  });

  it("asks the server after one of an object that only the server has", async () => {
    await using cache = await startCache(MAPS, [], { namespace: "shop" });
    cache.server.create(MAPS, map("n", {}, "other"));
    const client = cache.client();
    cache.server.intercept(answerStatus(404), { match: ({ method }) => method === "GET", times: 1 });
    await client.delete("n", { namespace: "other" });
    assert.equal(cache.writes.isEmpty, false);
    assert.equal(cache.writes.isInCaches(), false);
  });

  it("is of the object in the namespace that is named, not of the one beside the reconciled object", async () => {
    await using cache = await startCache(MAPS, [map("m"), map("m", {}, "other")]);
    await cache.client().delete("m", { namespace: "other" });
    assert.deepEqual(cache.server.list(MAPS).items.map(({ metadata }) => metadata!.namespace), ["shop"]);
  });

  it("passes its options on, and fails where anything else fails", async () => {
    await using cache = await startCache(MAPS, [map("m")]);
    const bodies: { readonly propagationPolicy?: string; readonly preconditions?: unknown }[] = [];
    cache.server.intercept(async (request) => {
      bodies.push(await request.clone().json());
      return answerOf(403);
    }, { match: ({ method }) => method === "DELETE" });
    const { uid } = cache.server.get(MAPS, "shop/m")!.metadata!;
    const options = { propagationPolicy: "Foreground" as const };
    await assert.rejects(cache.client().deleteIfExists("m", options), StatusError);
    assert.deepEqual([bodies[0].propagationPolicy, bodies[0].preconditions], ["Foreground", { uid }]);
    assert.equal(cache.writes.isEmpty, true);
  });
});

const answerOf = (code: number) =>
  Response.json({ kind: "Status", apiVersion: "v1", status: "Failure", code }, { status: code });
