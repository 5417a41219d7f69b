import {
  type KubernetesObject,
  NamespaceSet,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import {
  type ListerWatcher,
  type ListOptions,
  type ListPage,
  type ListWatchContext,
  type Quarantined,
  shardOf,
  type WatchItem,
} from "@listwatch/cache/reflector";
import { newStatus } from "@listwatch/cache/client";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fnv64, shardIndexOf } from "../../src/meta/shard_hash.ts";
import { LogRecorder } from "../log_recorder.ts";
import { anyCharacter, propertyOptions } from "../property.ts";

const NAMES = Array.from({ length: 40 }, (_, i) => `web-${i}`);

/** The names, and so the uids, differ in their first letters: those decide on a hash's place most of all. */
function item(name: string, resourceVersion: string, uid = `${name.slice(4)}-uid`): KubernetesObject {
  return { metadata: { namespace: "shop", name, uid, resourceVersion } };
}

/** A source that answers with what the test gives it, and notes the requests. */
class Source implements ListerWatcher<KubernetesObject> {
  readonly asked: ListOptions[] = [];
  batches: WatchItem<KubernetesObject>[][] = [];
  items = NAMES.map((name) => item(name, "5"));
  quarantined: readonly Quarantined[] = [];
  applies = false;

  list(options: ListOptions, _: ListWatchContext): Promise<ListPage<KubernetesObject>> {
    this.asked.push(options);
    const { shardSelector } = options;
    return Promise.resolve({
      metadata: {
        resourceVersion: "100",
        remainingItemCount: 7,
        ...(this.applies && shardSelector !== undefined && { shardInfo: { selector: shardSelector } }),
      },
      items: this.items,
      quarantined: this.quarantined,
    });
  }

  watch(options: ListOptions) {
    this.asked.push(options);
    const { batches } = this;
    return Promise.resolve((async function* () {
      yield* batches;
    })());
  }
}

const context = { signal: new AbortController().signal };
const own = (index: number) => NAMES.filter((name) => shardIndexOf(`shop/${name}`, 2) === index);

describe("shardOf", () => {
  it("gives every object to exactly one shard, and about as many to each", () => {
    const counts = [0, 0, 0, 0, 0];
    for (let i = 0; i < 10_000; i++) counts[shardIndexOf(`shop/web-${i}`, 5)]++;
    for (const count of counts) assert.ok(count > 1_850 && count < 2_150, String(counts));
  });

  it("has hashes that stay: what was stored by them is found by them", () => {
    const shards = ["shop/web-1", "shop/web-2", "node-1", "münchen/ü", ""].map((key) =>
      shardIndexOf(key, 1_000)
    );
    assert.deepEqual(shards, [196, 585, 667, 76, 668]);
  });

  it("has an identity of its own, as its source has one", () => {
    const source = newCluster({ server: "http://in-memory" }).resource("v1/pods");
    const identities = [
      source,
      shardOf(source, { index: 0, of: 2 }),
      shardOf(source, { index: 1, of: 2 }),
      shardOf(source, { index: 1, of: 3 }),
      shardOf(source, { index: 1, of: 3, by: "namespace" }),
    ].map(({ identity }) => identity);
    assert.equal(new Set(identities).size, 5);
    const { identity: _, ...unknown } = { ...source, list: assert.fail, watch: assert.fail };
    assert.equal(shardOf(unknown, { index: 0, of: 2 }).identity, undefined);
  });

  it("says whose shard it is, and has the resource and the metadata of its own that its source has", async () => {
    const { description, resource, metadata } = shardOf(new Source(), { index: 0, of: 2 });
    assert.deepEqual([description, resource, metadata], ["objects, shard 0 of 2", undefined, undefined]);
    const gvr = { group: "", version: "v1", resource: "pods" };
    const source = Object.assign(new Source(), {
      description: "pods",
      resource: gvr,
      metadata: () => new Source(),
    });
    const shard = shardOf(source, { index: 1, of: 2 });
    assert.deepEqual([shard.description, shard.resource], ["pods, shard 1 of 2", gvr]);
    const { items } = await shard.metadata!().list({}, context);
    assert.deepEqual(items.map(({ metadata }) => metadata!.name), own(1));
  });

  it("passes on what could not be read of its own, or of no shard that is known, and every error", async () => {
    const source = new Source();
    const keys = [`shop/${own(1)[0]}`, `shop/${own(0)[0]}`, undefined];
    source.quarantined = keys.map((key) => ({ reason: "torn", path: "", ...(key && { key }) }));
    source.batches = [source.quarantined.map((quarantined) => ({ type: "QUARANTINED", quarantined }))];
    source.batches.push([{ type: "ERROR", object: newStatus(410, "Expired", "too old") }]);
    for (const [by, passed] of [["name", [keys[0], undefined]], ["uid", keys]] as const) {
      const shard = shardOf(source, { index: 1, of: 2, by, logger: silentLogger });
      const { quarantined } = await shard.list({}, context);
      assert.deepEqual(quarantined?.map(({ key }) => key), passed);
      const events = (await Array.fromAsync(await shard.watch({}, context))).flat();
      assert.deepEqual(events.map((one) => one.type === "QUARANTINED" ? one.quarantined.key : one.type), [
        ...passed,
        "ERROR",
      ]);
    }
  });

  it("lists what is its own, without a count of the rest", async () => {
    const source = new Source();
    const logger = new LogRecorder();
    const page = await shardOf(source, { index: 1, of: 2, logger }).list({}, context);
    assert.deepEqual(logger.lines, [], "a server knows no shards by name");
    assert.deepEqual(page.items.map(({ metadata }) => metadata!.name), own(1));
    assert.deepEqual(page.metadata, { resourceVersion: "100" });
    assert.deepEqual(source.asked, [{}]);
  });

  it("watches what is its own; the events of others move its position", async () => {
    const source = new Source();
    const [mine, other] = [own(1)[0], own(0)[0]];
    source.batches = [
      [{ type: "ADDED", object: item(other, "101") }, { type: "MODIFIED", object: item(mine, "102") }],
      [{ type: "DELETED", object: item(other, "103") }, { type: "ADDED", object: item(other, "104") }],
      [{ type: "BOOKMARK", object: { metadata: { resourceVersion: "110" } } }],
      [{ type: "ADDED", object: item(other, "109") }],
      [{ type: "ADDED", object: item(other, "110") }],
    ];
    const stream = await shardOf(source, { index: 1, of: 2 }).watch({ resourceVersion: "100" }, context);
    const lines: string[] = [];
    for await (const batch of stream) {
      assert.ok(batch.length > 0);
      for (const event of batch) {
        if (event.type === "QUARANTINED" || event.type === "ERROR") continue;
        lines.push(`${event.type} ${event.object.metadata?.resourceVersion}`);
      }
    }
    assert.deepEqual(lines, ["MODIFIED 102", "BOOKMARK 104", "BOOKMARK 110"]);
  });

  it("does not take initial events of others for positions", async () => {
    const source = new Source();
    const [mine, other] = [own(1)[0], own(0)[0]];
    const end = { resourceVersion: "90", annotations: { "k8s.io/initial-events-end": "true" } };
    source.batches = [
      [{ type: "ADDED", object: item(other, "80") }, { type: "ADDED", object: item(mine, "70") }],
      [{ type: "ADDED", object: item(other, "85") }],
      [{ type: "BOOKMARK", object: { metadata: end } }],
      [{ type: "MODIFIED", object: item(other, "91") }],
      [{ type: "BOOKMARK", object: { metadata: { resourceVersion: "92" } } }],
      [{ type: "MODIFIED", object: item(other, "93") }],
    ];
    const beginnings = [{ sendInitialEvents: true, resourceVersion: "60" }, { resourceVersion: "" }, {}];
    for (const beginning of beginnings) {
      const stream = await shardOf(source, { index: 1, of: 2 }).watch(beginning, context);
      const lines: string[] = [];
      for await (const batch of stream) {
        for (const event of batch) {
          if (event.type !== "QUARANTINED" && event.type !== "ERROR") {
            lines.push(`${event.type} ${event.object.metadata?.resourceVersion}`);
          }
        }
      }
      const expected = ["ADDED 70", "BOOKMARK 90", "BOOKMARK 91", "BOOKMARK 92", "BOOKMARK 93"];
      assert.deepEqual(lines, expected, JSON.stringify(beginning));
    }
  });

  it("asks a server that has it for its range only, and believes what the list says", async () => {
    const source = new Source();
    source.applies = true;
    const logs = new LogRecorder();
    const page = await shardOf(source, { index: 0, of: 2, by: "uid", logger: logs }).list(
      { limit: 5 },
      context,
    );
    assert.deepEqual(source.asked, [{
      limit: 5,
      shardSelector: "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
    }]);
    assert.equal(page.metadata.remainingItemCount, 7);
    assert.deepEqual(logs.lines, []);
  });

  it("notices a server that ignores the selector, says so once, and skips what is not its own", async () => {
    const source = new Source();
    const logs = new LogRecorder();
    const shards = [0, 1, 2].map((index) => shardOf(source, { index, of: 3, by: "uid", logger: logs }));
    const names: string[] = [];
    for (const shard of shards) {
      for (let i = 0; i < 2; i++) {
        const { items } = await shard.list({}, context);
        if (i === 0) names.push(...items.map(({ metadata }) => metadata!.name!));
      }
    }
    assert.deepEqual(names.toSorted(), NAMES.toSorted());
    assert.equal(logs.lines.length, 3, "one for each shard");
    assert.match(logs.lines[0], /ignored the shardSelector/);
  });

  it("divides by namespace so that a namespace is in one shard", async () => {
    const source = new Source();
    const shards = [0, 1, 2].map((index) =>
      shardOf(source, { index, of: 3, by: "namespace", logger: silentLogger })
    );
    const counts = await Promise.all(
      shards.map(async (shard) => (await shard.list({}, context)).items.length),
    );
    assert.deepEqual(counts.toSorted((a, b) => a - b), [0, 0, NAMES.length]);
    source.items = [{ metadata: { name: "node-1" } }];
    const nodes = await Promise.all(
      shards.map(async (shard) => (await shard.list({}, context)).items.length),
    );
    assert.deepEqual(nodes.toSorted(), [0, 0, 1], "what has no namespace, too");
  });

  it("refuses what is no shard, and is the source itself where there is one", () => {
    const source = new Source();
    for (const [index, of] of [[2, 2], [-1, 2], [0, 0], [0.5, 2], [0, NaN]]) {
      assert.throws(() => shardOf(source, { index, of }), RangeError);
    }
    assert.equal(shardOf(source, { index: 0, of: 1 }), source);
  });

  it("keeps informers of all shards that have together what the server has, as objects and as texts", async () => {
    const server = new InMemoryApiServer();
    for (const name of NAMES) server.create("v1/pods", pod(name, { namespace: "shop" }));
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
    const informers = [0, 1, 2].map((index) =>
      new SharedIndexInformer(shardOf(pods, { index, of: 3 }), index === 1 ? { storage: shortTexts() } : {})
    );
    const running = informers.map((informer) => informer.start());
    await Promise.all(informers.map((informer) => informer.synced()));
    for (const name of NAMES.slice(0, 10)) server.delete("v1/pods", `shop/${name}`);
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    const version = server.resourceVersion;
    await Promise.all(
      informers.map((informer) => informer.waitForVersion(version, { signal: AbortSignal.timeout(5_000) })),
    );
    const names = informers.flatMap(({ indexer }) => indexer.listKeys()).toSorted();
    assert.deepEqual(names, [...NAMES.slice(10), "late"].map((name) => `shop/${name}`).toSorted());
    assert.ok(informers.every(({ indexer }) => indexer.listKeys().length > 0));
    await Promise.all(running.map((each) => each.stop()));
    server.close();
  });
});

describe("shardOf a source of several namespaces", () => {
  it("is watched in each of them, and keeps what else the source has", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const namespaces = new NamespaceSet(["a", "b"]);
    const log = new LogRecorder();
    const pods: ListerWatcher<KubernetesObject> = newCluster({
      server: "http://in-memory",
      fetch: server.fetch,
      clock,
    }).resource<KubernetesObject>("v1/pods", { namespaces });
    const create = (...names: string[]) =>
      names.forEach((name, i) => server.create("v1/pods", pod(name, { namespace: "abc"[i % 3] })));
    create(...NAMES);
    const shards = [0, 1].map((index) => shardOf(pods, { index, of: 2 }));
    const informers = shards.map((shard) => new SharedIndexInformer(shard, { clock, logger: log }));
    const running = informers.map((informer) => informer.start());
    const settle = async () => {
      // deno-lint-ignore no-await-in-loop -- one turn after the other
      for (let i = 0; i < 40; i++) await clock.advance(0);
    };
    await settle();
    create("late-a", "late-b", "late-c");
    namespaces.set(["b", "c"]);
    await settle();
    const keys = informers.flatMap(({ indexer }) => indexer.listKeys()).toSorted();
    const present = server.list("v1/pods").items.map(({ metadata }) =>
      `${metadata?.namespace}/${metadata?.name}`
    );
    assert.deepEqual(keys, present.filter((key) => !key.startsWith("a/")).toSorted());
    assert.ok(informers.every(({ indexer }) => indexer.listKeys().length > 0));
    assert.deepEqual([...log.of("warn"), ...log.of("error")], []);
    const { signal } = new AbortController();
    server.create("v1/namespaces", { metadata: { name: "kube-system" } });
    assert.equal(await shards[0].clusterUid?.(signal), await pods.clusterUid?.(signal));
    assert.ok(pods.projection !== undefined && shards[0].projection === pods.projection);
    await Promise.all(running.map((each) => each.stop()));
    server.close();
  });
});

describe("shardOf below an informer that transforms", () => {
  it("transforms the objects of its shard once, and no others", async () => {
    const server = new InMemoryApiServer();
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
    for (const name of NAMES) server.create("v1/pods", pod(name, { namespace: "shop" }));
    const transformed: string[][] = [[], []];
    const informers = transformed.map((names, index) =>
      new SharedIndexInformer<KubernetesObject>(shardOf<KubernetesObject>(pods, { index, of: 2 }), {
        logger: silentLogger,
        freezeObjects: index === 0,
        transform: (object) => (names.push(object.metadata!.name!), { ...object, isShort: true }),
      })
    );
    const running = informers.map((informer) => informer.start());
    await Promise.all(informers.map((informer) => informer.synced()));
    assert.deepEqual(transformed.flat().toSorted(), NAMES.toSorted());
    for (const [index, { indexer }] of informers.entries()) {
      assert.deepEqual(
        indexer.listKeys().toSorted(),
        transformed[index].map((name) => `shop/${name}`).toSorted(),
      );
      assert.ok(indexer.list().every((object) => "isShort" in object));
    }
    await Promise.all(running.map((each) => each.stop()));
    server.close();
  });
});

describe("fnv64", () => {
  it("is FNV-1a of 64 bits", () => {
    // http://www.isthe.com/chongo/tech/comp/fnv/#test-vectors
    assert.equal(fnv64(""), "cbf29ce484222325");
    assert.equal(fnv64("a"), "af63dc4c8601ec8c");
    assert.equal(fnv64("foobar"), "85944171f73967e8");
  });

  it("is the same as with big numbers", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        let hash = 0xcbf29ce484222325n;
        for (const byte of new TextEncoder().encode(text)) {
          hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
        }
        assert.equal(fnv64(text), hash.toString(16).padStart(16, "0"));
      }),
      propertyOptions(200),
    );
  });
});

describe("shardOf, where the source is odd,", () => {
  it("keeps in each shard what has no metadata: an informer reports it", async () => {
    for (const by of ["name", "uid"] as const) {
      const source = new Source();
      source.items = [{}];
      for (const index of [0, 1]) {
        const shard = shardOf(source, { index, of: 2, by, logger: silentLogger });
        assert.deepEqual((await shard.list({}, context)).items, source.items, `${by} ${index}`);
      }
    }
  });

  it("refuses a list of another shard: what is missing in it would count as deleted", async () => {
    const source = new Source();
    const list = source.list.bind(source);
    source.applies = true;
    const shard = shardOf(source, { index: 0, of: 2, by: "uid", logger: silentLogger });
    assert.ok((await shard.list({}, context)).items.length > 0);
    for (const shardInfo of [{ selector: "of another shard" }, {}]) {
      source.list = async (options, given) => {
        const page = await list(options, given);
        return { ...page, metadata: { ...page.metadata, shardInfo } };
      };
      await assert.rejects(shard.list({}, context), {
        message: "Cannot list objects, shard 0 of 2: the server has applied the shardSelector " +
          `${JSON.stringify(shardInfo.selector)}, and not ` +
          "\"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')\"",
      });
      const page = await shardOf(source, { index: 0, of: 2 }).list({}, context);
      assert.deepEqual(page.metadata.shardInfo, shardInfo, "a shard by name is one of what the source has");
    }
  });

  it("refuses a request for another shard: a source is divided once by shardSelector", async () => {
    const source = new Source();
    const half = shardOf(source, { index: 0, of: 2, by: "uid", logger: silentLogger });
    const quarter = shardOf(half, { index: 0, of: 2, by: "namespace", logger: silentLogger });
    const conflict = { name: "TypeError", message: /^Cannot read objects, shard 0 of 2: .*a source once$/ };
    await assert.rejects(quarter.list({}, context), conflict);
    await assert.rejects(quarter.watch({}, context), conflict);
    assert.deepEqual(source.asked, []);
    const byName = shardOf(half, { index: 0, of: 2 });
    assert.ok((await byName.list({}, context)).items.length > 0, "names are of no concern to the server");
  });

  it("notices by the events of a watch that the server ignores the selector", async () => {
    const source = new Source();
    source.batches = [NAMES.map((name) => ({ type: "ADDED", object: item(name, "5") }))];
    const log = new LogRecorder();
    const shard = shardOf(source, { index: 0, of: 2, by: "uid", logger: log });
    for (let i = 0; i < 2; i++) {
      await Array.fromAsync(await shard.watch({ sendInitialEvents: true }, context));
    }
    assert.equal(log.lines.length, 1);
    assert.match(log.lines[0], /ignored the shardSelector/);
  });

  it("takes no position of initial events, also behind a bookmark before their end", async () => {
    const source = new Source();
    const [foreign] = own(1);
    source.batches = [
      [{ type: "BOOKMARK", object: { metadata: { resourceVersion: "3" } } }],
      [{ type: "ADDED", object: item(foreign, "90") }],
    ];
    const shard = shardOf(source, { index: 0, of: 2 });
    const seen: unknown[] = [];
    const stream = await shard.watch({ resourceVersion: "", sendInitialEvents: true }, context);
    for await (const batch of stream) seen.push(...batch);
    assert.deepEqual(seen, source.batches[0]);
  });
});
