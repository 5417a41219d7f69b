import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { newCluster, silentLogger } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { RelayedInformer } from "../../src/cli/relayed_informer.ts";
import { SourceEpoch } from "../../src/cli/source_epoch.ts";
import { FakeClock } from "../../src/util/clock.ts";
import { FakeInformer, object } from "../hono/fake_informer.ts";
import { propertyOptions } from "../property.ts";

const PATH = "/api/v1/namespaces/shop/pods";

/** The cache of a parent, and workers that read it. */
class Family {
  readonly clock = new FakeClock();
  readonly parent = FakeInformer.with([object("shop/a", 5, { spec: 0 })], 10);
  readonly #stop = new AbortController();
  readonly #source = readApi({
    resources: [{ informer: this.parent, resource: "v1/pods" }],
    allowAnonymous: true,
    clock: this.clock,
    logger: silentLogger,
    watchLifetimeMs: Infinity,
    eventWindow: 4,
    signal: this.#stop.signal,
  });
  readonly workers: { readonly api: ReturnType<typeof readApi>; readonly epoch: SourceEpoch }[] = [];
  version = 10;
  /** The workers that cannot connect. */
  readonly away = new Set<number>();

  /** Breaks the connections of a worker, until it is no longer `away`. */
  leave(worker: number): void {
    this.away.add(worker);
    this.#source.endWatches();
  }

  /** One more worker. */
  async start(): Promise<void> {
    const { clock } = this;
    const epoch = new SourceEpoch();
    const worker = this.workers.length;
    const fetch = epoch.noting((input, init) => {
      if (this.away.has(worker)) return Promise.reject(new TypeError("cannot connect"));
      return Promise.resolve(this.#source.fetch(new Request(input, init)));
    });
    const pods = newCluster({ server: "http://parent", fetch, clock, logger: silentLogger }).resource(
      "v1/pods",
    );
    const informer = new RelayedInformer(pods, { clock, logger: silentLogger }, {
      status: () => undefined,
      epoch: () => epoch.value,
      metadata: () => undefined,
    });
    informer.run(this.#stop.signal);
    await this.settle();
    const resources = [{ informer, resource: "v1/pods" }];
    const api = readApi({ resources, allowAnonymous: true, clock, signal: this.#stop.signal });
    this.workers.push({ api, epoch });
  }

  /** Long enough for a watch that has ended to begin again. */
  async settle(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.clock.advance(1_000);
  }

  async ask(worker: number, tag?: string): Promise<{ status: number; tag: string; items: string }> {
    const headers = { ...(tag !== undefined && { "If-None-Match": tag }) };
    const response = await this.workers[worker].api.request(PATH, { headers });
    const text = await response.text();
    const items = text === "" ? "" : JSON.stringify(JSON.parse(text).items);
    return { status: response.status, tag: response.headers.get("ETag") ?? "", items };
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.settle();
  }
}

describe("SourceEpoch", () => {
  it("makes the tags of the workers of one parent equal, also of one that was started later", async () => {
    const family = new Family();
    await family.start();
    await family.start();
    const first = await family.ask(0);
    assert.equal(first.status, 200);
    assert.deepEqual(await family.ask(1), first);
    family.parent.put(object("shop/b", 11));
    await family.settle();
    const second = await family.ask(0);
    assert.notEqual(second.tag, first.tag);
    assert.deepEqual(await family.ask(1), second);
    await family.start();
    family.parent.put(object("shop/c", 12));
    await family.settle();
    const third = await family.ask(0);
    assert.deepEqual(await family.ask(2), third);
    assert.equal((await family.ask(1, third.tag)).status, 304);
    await family.end();
  });

  it("ends when the parent is restored from a backup, and when an object has two states under one resourceVersion", async () => {
    const changes: ((parent: FakeInformer) => void)[] = [
      (parent) => parent.relist([object("shop/a", 5, { spec: 1 })], 7),
      (parent) => parent.put(object("shop/a", 5, { spec: 1 })),
    ];
    for (const change of changes) {
      const family = new Family();
      await family.start();
      const before = await family.ask(0);
      change(family.parent);
      for (let i = 0; i < 10; i++) await family.settle();
      await family.start();
      // The old one may have skipped an event that says nothing new by its resourceVersion.
      const [old, started] = await Promise.all([0, 1].map((worker) => family.ask(worker)));
      assert.notEqual(started.items, before.items);
      assert.equal((await family.ask(1, before.tag)).status, 200);
      assert.equal((await family.ask(0, before.tag)).status, old.items === before.items ? 304 : 200);
      await family.end();
    }
  });

  it("ends for a worker that was away while an object had two states under one resourceVersion", async () => {
    const family = new Family();
    const { parent } = family;
    await family.start();
    family.leave(0);
    parent.put(object("shop/a", 12, { spec: 1 }));
    parent.bookmark(30);
    await family.start();
    const before = await family.ask(1);
    assert.match(before.items, /"spec":1/);
    parent.relist([object("shop/a", 5, { spec: 0 })], 11);
    parent.put(object("shop/a", 12, { spec: 2 }));
    parent.relist([object("shop/a", 12, { spec: 2 })], 20);
    family.away.clear();
    for (let i = 0; i < 20; i++) await family.settle();
    const after = await family.ask(0);
    assert.match(after.items, /"spec":2/);
    assert.notEqual(after.tag, before.tag);
    assert.equal((await family.ask(0, before.tag)).status, 200);
    await family.end();
  });

  it("never makes one tag for two contents, whatever the parent, its API server and the workers do", async () => {
    const name = fc.constantFrom("shop/a", "shop/b", "blog/c");
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ type: fc.constant("put" as const), name, ahead: fc.constantFrom(1, 2) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          type: fc.constant("put" as const),
          name,
          ahead: fc.integer({ min: -6, max: 0 }),
        }),
      },
      { weight: 2, arbitrary: fc.record({ type: fc.constant("remove" as const), name }) },
      fc.record({ type: fc.constant("relist" as const), name, ahead: fc.integer({ min: -8, max: 5 }) }),
      fc.record({ type: fc.constant("bookmark" as const) }),
      fc.record({ type: fc.constant("start" as const) }),
      fc.record({ type: fc.constant("settle" as const) }),
    );
    const DELETE_OF_WHAT_WORKERS_LACK = [
      { type: "put", name: "shop/b", ahead: -1 },
      { type: "remove", name: "shop/a" },
      { type: "put", name: "shop/a", ahead: 1 },
      { type: "remove", name: "shop/b" },
      { type: "relist", name: "shop/a", ahead: 0 },
      { type: "start" },
    ] as const;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
        const family = new Family();
        const { parent } = family;
        await family.start();
        const contents = new Map<string, string>();
        let state = 0;
        const check = async () => {
          for (const worker of family.workers.keys()) {
            for (const [tag, items] of contents) {
              const before = await family.ask(worker);
              const answer = await family.ask(worker, tag);
              // Unless the content changes meanwhile.
              const isSame = (await family.ask(worker)).items === before.items;
              if (answer.status === 304 && isSame) assert.equal(before.items, items, tag);
            }
            const { tag, items } = await family.ask(worker);
            assert.equal(contents.get(tag) ?? items, items, tag);
            contents.set(tag, items);
          }
        };
        for (const each of steps) {
          state++;
          if (each.type === "put") {
            const version = Math.max(1, family.version + each.ahead);
            parent.put(object(each.name, version, { spec: state }));
            family.version = Math.max(family.version, version);
          } else if (each.type === "remove") {
            if (parent.indexer.getByKey(each.name) !== undefined) parent.remove(each.name, ++family.version);
          } else if (each.type === "relist") {
            const version = Math.max(1, family.version + each.ahead);
            const others = parent.indexer.list().filter(({ metadata }) =>
              metadata?.name !== each.name.split("/")[1] && Number(metadata?.resourceVersion) <= version
            );
            parent.relist([...others, object(each.name, Math.max(1, version - 2), { spec: state })], version);
            family.version = version;
          } else if (each.type === "bookmark") parent.bookmark(++family.version);
          else if (each.type === "start" && family.workers.length < 3) await family.start();
          else if (each.type === "settle") await family.settle();
          await check();
        }
        await family.settle();
        await check();
        await family.end();
      }),
      { ...propertyOptions(25), examples: [[[...DELETE_OF_WHAT_WORKERS_LACK]]] },
    );
  });
});
