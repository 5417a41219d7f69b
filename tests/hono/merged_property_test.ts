import { compareResourceVersions, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { mergedResource, type ReadApi, readApi } from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeMergedVersion } from "../../src/meta/merged_version.ts";
import { shardIndexOf } from "../../src/meta/shard_hash.ts";
import { FakeClock } from "../../src/util/clock.ts";
import { propertyOptions } from "../property.ts";
import { FakeInformer, object } from "./fake_informer.ts";
import { get, type Json, names } from "./reading.ts";

const PODS = "/api/v1/pods";

/** What happens to the shards, or to the reader. */
type Step =
  | { readonly kind: "put" | "remove"; readonly name: number }
  | { readonly kind: "relist" | "endWatches" | "break" | "bookmark"; readonly shard: number }
  | { readonly kind: "list"; readonly limit: number }
  | { readonly kind: "cut" | "read" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constantFrom("put" as const, "remove" as const), name: fc.nat(11) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("relist" as const, "endWatches" as const, "break" as const, "bookmark" as const),
      shard: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("list" as const), limit: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("cut" as const, "read" as const) }) },
);

/** Shards whose objects count their changes, and one read API over them. */
class World {
  readonly clock = new FakeClock();
  readonly informers: FakeInformer[];
  readonly apis: ReadApi[];
  readonly api: ReadApi;
  /** Breaks the watches of a shard off, in the middle of whatever they send. */
  readonly breaks: (() => void)[] = [];
  #version = 100;

  constructor(count: number) {
    const common = { clock: this.clock, logger: silentLogger, random: () => 0.5 };
    this.informers = Array.from({ length: count }, (_, i) => FakeInformer.with([], 10 + i));
    this.apis = this.informers.map((informer) =>
      readApi({
        ...common,
        resources: [{ informer, resource: "v1/pods" }],
        allowAnonymous: true,
        eventWindow: 8,
      })
    );
    const merged = mergedResource({
      ...common,
      resource: "v1/pods",
      by: "hash",
      shards: this.apis.map((api, i) => ({
        name: String(i),
        fetch: async (request) => this.#breakable(await api.fetch(request), i),
      })),
    });
    this.api = readApi({ ...common, resources: [merged], allowAnonymous: true });
  }

  apply(step: Step): void {
    const next = String(++this.#version);
    if (step.kind === "put" || step.kind === "remove") {
      const key = `shop/o${step.name}`;
      const informer = this.informers[shardIndexOf(key, this.informers.length)];
      const known = informer.indexer.getByKey(key);
      if (step.kind === "put") informer.put(object(key, Number(next), { n: Number(next) }));
      else if (known !== undefined) informer.remove(key, Number(next));
    } else if ("shard" in step) {
      const i = step.shard % this.informers.length;
      if (step.kind === "bookmark") this.informers[i].bookmark(Number(next));
      if (step.kind === "endWatches") this.apis[i].endWatches();
      if (step.kind === "break") this.breaks[i]?.();
      if (step.kind === "relist") {
        const kept = this.informers[i].indexer.list().slice(1);
        this.informers[i].relist(
          [...kept, object(`shop/r${i}`, Number(next), { n: Number(next) })],
          Number(next),
        );
      }
    }
  }

  content(): Map<string, number> {
    return new Map(
      this.informers.flatMap(({ indexer }) =>
        indexer.list().map((each): [string, number] => [each.metadata!.name!, each.n as number])
      ),
    );
  }

  #breakable(response: Response, i: number): Response {
    if (response.headers.get("X-Accel-Buffering") === null || response.body === null) return response;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const before = this.breaks[i];
        this.breaks[i] = () => {
          before?.();
          this.breaks[i] = () => {};
          try {
            controller.error(new Error("connection reset"));
          } catch {
            // It has ended.
          }
          reader.cancel().catch(() => {});
        };
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
    return new Response(body, response);
  }
}

/** A reader as client-go's reflector: it lists, watches from there, and lists again when that is expired. */
class Reader {
  readonly api: ReadApi;
  objects: Map<string, number> = new Map();
  /** The greatest state of each object that it has seen. */
  readonly #seen = new Map<string, number>();
  resourceVersion = "";
  lists = 0;
  #stream: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #rest = "";
  #pending: Promise<ReadableStreamReadResult<Uint8Array>> | undefined;

  constructor(api: ReadApi) {
    this.api = api;
  }

  /** Reads what is there. */
  async read(): Promise<void> {
    if (this.resourceVersion === "" && !await this.#list()) return;
    if (this.#stream === undefined) {
      const path = `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${this.resourceVersion}`;
      const response = await this.api.request(path);
      assert.equal(response.status, 200);
      this.#stream = response.body!.getReader();
      this.#rest = "";
    }
    for (;;) {
      this.#pending ??= this.#stream.read();
      const next = await Promise.race([this.#pending, turns(6)]);
      if (next === undefined) return;
      this.#pending = undefined;
      if (next.done) return this.#closed();
      const lines = (this.#rest + new TextDecoder().decode(next.value)).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) if (!this.#event(JSON.parse(line))) return this.#closed();
    }
  }

  async cut(): Promise<void> {
    await this.#stream?.cancel();
    this.#closed();
  }

  #closed(): void {
    this.#stream = undefined;
    this.#pending = undefined;
  }

  async #list(): Promise<boolean> {
    const response = await this.api.request(PODS);
    if (response.status !== 200) return false;
    const list: Json = await response.json();
    this.lists++;
    this.objects = new Map();
    for (const each of list.items) this.#saw(each);
    this.resourceVersion = list.metadata.resourceVersion;
    return true;
  }

  #event({ type, object }: Json): boolean {
    if (type === "ERROR") {
      assert.equal(object.code, 410);
      this.resourceVersion = "";
      return false;
    }
    const { resourceVersion } = object.metadata;
    assert.ok(compareResourceVersions(resourceVersion, this.resourceVersion) >= 0, "the version went back");
    const [before, after] = [this.resourceVersion, resourceVersion].map((text) =>
      decodeMergedVersion(text)!.parts
    );
    assert.ok(before.every((part, i) => compareResourceVersions(part, after[i]) <= 0), "a shard went back");
    this.resourceVersion = resourceVersion;
    if (type === "DELETED") this.objects.delete(object.metadata.name);
    else if (type !== "BOOKMARK") this.#saw(object);
    return true;
  }

  #saw({ metadata: { name }, n }: Json): void {
    assert.ok(n >= (this.#seen.get(name) ?? 0), `${name} went back`);
    this.#seen.set(name, n);
    this.objects.set(name, n);
  }
}

async function turns(count: number): Promise<undefined> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 0));
  return undefined;
}

describe("mergedResource", () => {
  it("is to a reader what one server with all objects would be, whatever happens to the shards", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 40 }),
        async (count, steps) => {
          const world = new World(count);
          const reader = new Reader(world.api);
          for (const step of steps) {
            if (step.kind === "read") await reader.read();
            else if (step.kind === "cut") await reader.cut();
            else if (step.kind === "list") await assertPages(world, step.limit);
            else world.apply(step);
            world.clock.advance(300);
          }
          for (let i = 0; i < 8; i++) {
            await reader.read();
            world.clock.advance(1_000);
          }
          assert.deepEqual(new Map([...reader.objects].sort()), new Map([...world.content()].sort()));
          await reader.cut();
          await turns(4);
          assert.deepEqual(world.apis.flatMap((api) => api.openWatches()), world.apis.map(() => 0));
        },
      ),
      // A run takes long: the first failure is enough.
      { ...propertyOptions(25), endOnFailure: true },
    );
  });

  it("keeps an informer like the clusters behind it, through cuts of their watches", async () => {
    const servers = [0, 1, 2].map(() => new InMemoryApiServer());
    const clusters = mergedResource({
      resource: "v1/pods",
      by: "cluster",
      shards: servers.map((server, i) => ({
        name: `c${i}`,
        fetch: (request) => server.fetch(request.url.replace("http://shard.invalid", "http://x"), request),
      })),
      logger: silentLogger,
    });
    const api = readApi({ resources: [clusters], allowAnonymous: true, logger: silentLogger });
    const cluster = newCluster({
      server: "http://merged",
      fetch: (url, init) => Promise.resolve(api.fetch(new Request(url, init))),
      logger: silentLogger,
    });
    const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
    const running = informer.start();
    await informer.synced();
    for (let round = 0; round < 20; round++) {
      for (const [i, server] of servers.entries()) {
        server.create("v1/pods", pod(`web-${round}`, { namespace: "shop" }));
        if (round % 3 === i) server.delete("v1/pods", `shop/web-${round}`);
      }
      if (round % 5 === 4) servers[round % 3].closeWatches();
      await turns(2);
    }
    const expected = servers.flatMap((server, i) =>
      server.list("v1/pods").items.map(({ metadata }) => `shop/c${i}.${metadata!.name}`)
    ).sort();
    for (let i = 0; i < 400 && informer.indexer.listKeys().length !== expected.length; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(informer.indexer.listKeys().sort(), expected);
    await running.stop();
    for (const server of servers) server.close();
  });

  it("pages through a Table and through metadata as through objects", async () => {
    const world = new World(3);
    for (let i = 0; i < 12; i++) world.apply({ kind: "put", name: i });
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const rows: string[] = [];
    let token = "";
    do {
      const table = await get(world.api, `${PODS}?limit=5&continue=${token}`, { accept });
      assert.ok(rows.length < 12);
      rows.push(...table.rows.map(({ cells }: Json) => cells[0]));
      token = table.metadata.continue;
    } while (token);
    assert.deepEqual(rows, [...world.content().keys()].sort());
  });
});

/** A list in pages, with a change between them, is the list at its beginning. */
async function assertPages(world: World, limit: number): Promise<void> {
  const whole = names(await get(world.api, PODS));
  const seen: string[] = [];
  let token = "";
  do {
    const response = await world.api.request(`${PODS}?limit=${limit}&continue=${token}`);
    const page: Json = await response.json();
    // The log of a shard is short.
    if (response.status === 410 && token !== "") return;
    assert.equal(response.status, 200, JSON.stringify(page));
    assert.ok(page.items.length <= limit);
    seen.push(...names(page));
    assert.ok(seen.length <= whole.length, `the pages do not end: ${seen}`);
    token = page.metadata.continue;
    const { remainingItemCount } = page.metadata;
    if (token) assert.equal(remainingItemCount, whole.length - seen.length);
    world.apply({ kind: seen.length % 2 === 0 ? "put" : "remove", name: seen.length % 12 });
  } while (token);
  assert.deepEqual(seen, whole);
}
