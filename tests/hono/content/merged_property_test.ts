import { compareResourceVersions, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { MergedInformer, type ReadApi } from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeMergedVersion } from "../../../src/meta/merged_version.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import type { Json } from "../reading.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";

/** What happens to the cluster, to the shards that follow it, or to a reader. */
type Step =
  | { readonly kind: "put" | "remove" | "recreate"; readonly name: number }
  | { readonly kind: "deliver" | "relist"; readonly shard: number; readonly count: number }
  | { readonly kind: "read" | "cut" | "exact" | "pages"; readonly reader: number; readonly count: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("put" as const, "remove" as const, "recreate" as const),
      name: fc.nat(4),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom("deliver" as const, "deliver" as const, "deliver" as const, "relist" as const),
      shard: fc.nat(2),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "read" as const,
        "read" as const,
        "cut" as const,
        "exact" as const,
        "pages" as const,
      ),
      reader: fc.nat(1),
      count: fc.nat(3),
    }),
  },
);

/** One write: the object as it is from there on; `undefined`: it is deleted. */
interface Revision {
  readonly version: number;
  readonly key: string;
  readonly uid: number;
  readonly isThere: boolean;
}

/**
 * A cluster, and shards by the uid that follow it each in its own time. An
 * object that is created again has another uid.
 */
class World {
  readonly clock = new FakeClock();
  readonly informers: FakeInformer[];
  readonly positions: number[];
  readonly api: ReadApi;
  readonly #revisions: Revision[] = [];
  #uids = 0;

  constructor(count: number) {
    this.informers = Array.from({ length: count }, () => FakeInformer.with([], 10));
    this.positions = this.informers.map(() => 10);
    const informer = new MergedInformer(this.informers.map((informer, i) => ({ name: String(i), informer })));
    this.api = readApi({
      clock: this.clock,
      logger: silentLogger,
      random: () => 0.5,
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      eventWindow: 16,
    });
  }

  get version(): number {
    return 10 + this.#revisions.length;
  }

  write(kind: "put" | "remove" | "recreate", name: number): void {
    const key = `shop/o${name}`;
    const last = this.#revisions.findLast((each) => each.key === key);
    const isThere = last?.isThere === true;
    if (kind === "remove" && !isThere) return;
    if (kind === "recreate" && isThere) this.write("remove", name);
    const uid = kind === "put" && isThere || kind === "remove" ? last!.uid : this.#uids++;
    this.#revisions.push({ version: this.version + 1, key, uid, isThere: kind !== "remove" });
  }

  /** A shard receives the next so many events. */
  deliver(shard: number, count: number): void {
    const informer = this.informers[shard];
    for (let i = 0; i < count && this.positions[shard] < this.version; i++) {
      const { version, key, uid, isThere } = this.#revisions[this.positions[shard]++ - 10];
      if (uid % this.informers.length !== shard) informer.bookmark(version);
      else if (isThere) informer.put(made(key, version, uid));
      else informer.remove(key, version);
    }
  }

  /** A shard lists where it is to be after so many more events. */
  relist(shard: number, count: number): void {
    const version = this.positions[shard] = Math.min(this.positions[shard] + count, this.version);
    const state = Array.from(this.#stateOf(shard, version).values());
    this.informers[shard].relist(state.map(({ key, version, uid }) => made(key, version, uid)), version);
  }

  /** What all shards together have at these versions, by name: no object whose end another shard has seen. */
  contentAt(parts: readonly string[]): Map<string, string> {
    const content = new Map<string, string>();
    for (const [i, part] of parts.entries()) {
      for (const { key, version } of this.#stateOf(i, Number(part)).values()) {
        const isOver = this.#revisions.some((each) =>
          each.key === key && each.version > Number(part) &&
          each.version <= Number(parts[each.uid % parts.length])
        );
        if (!isOver) content.set(key, String(version));
      }
    }
    return content;
  }

  /** The truth. */
  content(): Map<string, string> {
    return this.contentAt(this.informers.map(() => String(this.version)));
  }

  #stateOf(shard: number, version: number): Map<string, Revision> {
    const state = new Map<string, Revision>();
    for (const each of this.#revisions) {
      if (each.version > version || each.uid % this.informers.length !== shard) continue;
      if (each.isThere) state.set(each.key, each);
      else state.delete(each.key);
    }
    return state;
  }
}

function made(key: string, version: number, uid: number): TestObject {
  const each = object(key, version);
  return { ...each, metadata: { ...each.metadata, uid: `uid-${uid}` } };
}

function contentOf(items: readonly Json[]): Map<string, string> {
  return new Map(
    items.map(({ metadata }) => [`${metadata.namespace}/${metadata.name}`, metadata.resourceVersion]),
  );
}

function assertSame(
  actual: ReadonlyMap<string, string>,
  expected: ReadonlyMap<string, string>,
  what: string,
): void {
  assert.deepEqual(Array.from(actual).sort(), Array.from(expected).sort(), what);
}

/** A reader as client-go's reflector, which checks each event. */
class Reader {
  readonly #world: World;
  readonly #api: ReadApi;
  readonly #hasBookmarks: boolean;
  readonly objects = new Map<string, string>();
  resourceVersion = "";
  /** The positions that it has been at, the latest last. */
  readonly positions: string[] = [];
  #stream: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #pending: Promise<ReadableStreamReadResult<Uint8Array>> | undefined;

  constructor(world: World, api: ReadApi, hasBookmarks: boolean) {
    this.#world = world;
    this.#api = api;
    this.#hasBookmarks = hasBookmarks;
  }

  /**
   * Reads what is there; at most `count` lines of the first piece if that is not 0, and then its connection
   * breaks.
   */
  async read(count = 0): Promise<void> {
    if (this.resourceVersion === "") await this.#list();
    if (this.#stream === undefined) {
      const bookmarks = this.#hasBookmarks ? "&allowWatchBookmarks=true" : "";
      const path = `${PODS}?watch=true${bookmarks}&resourceVersion=${this.resourceVersion}`;
      const response = await this.#api.request(path);
      assert.equal(response.status, 200);
      this.#stream = response.body!.getReader();
    }
    for (;;) {
      this.#pending ??= this.#stream.read();
      await this.#world.clock.advance(30);
      const next = await Promise.race([this.#pending, turns(4)]);
      if (next === undefined) return;
      this.#pending = undefined;
      if (next.done) return this.#closed();
      const lines = new TextDecoder().decode(next.value).trimEnd().split("\n");
      for (const line of count === 0 ? lines : lines.slice(0, count)) {
        if (!this.#event(JSON.parse(line))) return this.#closed();
      }
      if (count > 0) return await this.cut();
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

  async #list(): Promise<void> {
    const { items, metadata } = await (await this.#api.request(`${PODS}?resourceVersion=0`)).json();
    this.objects.clear();
    for (const [key, version] of contentOf(items)) this.objects.set(key, version);
    this.#at(metadata.resourceVersion);
  }

  #event({ type, object }: Json): boolean {
    if (type === "ERROR") {
      assert.equal(object.code, 410);
      this.resourceVersion = "";
      return false;
    }
    const { namespace, name, resourceVersion } = object.metadata;
    const key = `${namespace}/${name}`;
    if (type === "ADDED") assert.ok(!this.objects.has(key), `${key} is added, and was there`);
    if (type === "MODIFIED" || type === "DELETED") {
      assert.ok(this.objects.has(key), `${type} ${key} was not there`);
    }
    const isPosition = decodeMergedVersion(resourceVersion) !== undefined;
    if (type === "DELETED") this.objects.delete(key);
    // Without bookmarks the reader's own version is not to be seen.
    else if (type !== "BOOKMARK") this.objects.set(key, isPosition ? "" : resourceVersion);
    this.resourceVersion = resourceVersion;
    if (isPosition) this.#at(resourceVersion);
    return true;
  }

  #at(resourceVersion: string): void {
    const { parts } = decodeMergedVersion(resourceVersion)!;
    const before = decodeMergedVersion(this.positions.at(-1) ?? "")?.parts;
    assert.ok(
      before?.every((part, i) => compareResourceVersions(part, parts[i]) <= 0) ?? true,
      "it went back",
    );
    this.positions.push(resourceVersion);
    this.resourceVersion = resourceVersion;
    const expected = this.#world.contentAt(parts);
    assert.deepEqual(
      Array.from(this.objects.keys()).sort(),
      Array.from(expected.keys()).sort(),
      `at ${parts}`,
    );
    if (this.#hasBookmarks) assertSame(this.objects, expected, `at ${parts}`);
  }

  /** Lists where it was some time ago, whole or in pages: that state, or 410. */
  async exact(back: number, limit: number | undefined): Promise<void> {
    const version = this.positions.at(-1 - back);
    if (version === undefined) return;
    const items: Json[] = [];
    let token = "";
    do {
      const query = token === ""
        ? `resourceVersion=${version}&resourceVersionMatch=Exact${
          limit === undefined ? "" : `&limit=${limit}`
        }`
        : `limit=${limit}&continue=${token}`;
      const response = await this.#api.request(`${PODS}?${query}`);
      const page: Json = await response.json();
      if (response.status === 410) return;
      assert.equal(response.status, 200, page.message);
      assert.equal(page.metadata.resourceVersion, version);
      items.push(...page.items);
      token = page.metadata.continue ?? "";
      this.#world.write("put", items.length % 5);
      this.#world.deliver(items.length % this.#world.informers.length, 2);
    } while (token !== "");
    assertSame(contentOf(items), this.#world.contentAt(decodeMergedVersion(version)!.parts), version);
  }
}

async function turns(count: number): Promise<undefined> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 0));
  return undefined;
}

async function run(
  world: World,
  api: ReadApi,
  { steps, settle }: { readonly steps: readonly Step[]; readonly settle?: () => Promise<void> },
): Promise<void> {
  const readers = [new Reader(world, api, true), new Reader(world, api, false)];
  const { informers } = world;
  for (const step of steps) {
    if ("name" in step) world.write(step.kind, step.name);
    else if ("shard" in step) world[step.kind](step.shard % informers.length, step.count);
    else if (step.kind === "read") await readers[step.reader].read(step.count);
    else if (step.kind === "cut") await readers[step.reader].cut();
    else await readers[step.reader].exact(step.count, step.kind === "pages" ? 2 : undefined);
  }
  for (const i of informers.keys()) world.deliver(i, Infinity);
  await settle?.();
  for (let i = 0; i < 3; i++) for (const reader of readers) await reader.read();
  const present = await (await api.request(`${PODS}?resourceVersion=0`)).json();
  assertSame(contentOf(present.items), world.content(), "at the end");
  for (const { objects } of readers) {
    assert.deepEqual([...objects.keys()].sort(), [...world.content().keys()].sort());
  }
  for (const reader of readers) await reader.cut();
  await turns(2);
  assert.deepEqual(api.openWatches(), [0]);
}

describe("MergedInformer", () => {
  it("is to readers one history of each object, whatever order the shards receive the cluster's in", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 60 }),
        async (count, steps) => {
          const world = new World(count);
          await run(world, world.api, { steps });
        },
      ),
      // A run takes long: the first failure is enough.
      { ...propertyOptions(60), endOnFailure: true },
    );
  });

  it("is the same to the readers of a cache above it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const world = new World(2);
        const cluster = newCluster({
          server: "http://merged",
          fetch: async (input, init) => await world.api.fetch(new Request(input, init)),
        });
        const options = { clock: world.clock, logger: silentLogger };
        const informer = new SharedIndexInformer<Json>(cluster.resource<Json>("v1/pods"), options);
        const running = informer.start();
        for (let i = 0; i < 50 && !informer.hasSynced(); i++) await world.clock.advance(10);
        const api = readApi({
          ...options,
          resources: [{ informer, resource: "v1/pods" }],
          allowAnonymous: true,
          freshness: "as-is",
        });
        await run(world, api, {
          steps,
          settle: async () => {
            const { metadata } = await (await world.api.request(`${PODS}?resourceVersion=0`)).json();
            const isThere = () =>
              informer.indexer.lastStoreSyncResourceVersion() === metadata.resourceVersion;
            for (let i = 0; i < 500 && !isThere(); i++) {
              await world.clock.advance(200);
              await turns(1);
            }
          },
        });
        await running.stop();
      }),
      { ...propertyOptions(25), endOnFailure: true },
    );
  });
});
