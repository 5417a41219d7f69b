import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  fieldIndex,
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { TextCodec } from "../../src/store/text_codec.ts";

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}

/** Objects of the tests are recognised by it. */
const MARK = "marked-node";

/** The in-memory server parses, too: that does not count. */
let isServer = false;

/**
 * How many texts of objects are parsed whole, and how many short texts are restored, while something is done.
 */
async function countReads(act: () => Promise<unknown>): Promise<{ parsed: number; restored: number }> {
  const { parse } = JSON;
  const { decode } = TextCodec.prototype;
  const reads = { parsed: 0, restored: 0 };
  JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]) => {
    if (!isServer && text.startsWith("{") && text.includes(MARK) && text.includes('"containers"')) {
      reads.parsed++;
    }
    return parse(text, reviver);
  };
  TextCodec.prototype.decode = function (short) {
    reads.restored++;
    return decode.call(this, short);
  };
  try {
    await act();
  } finally {
    JSON.parse = parse;
    TextCodec.prototype.decode = decode;
  }
  return reads;
}

const OBJECTS = 300;

/** An informer that has synced, and 300 objects. */
function newWorld<I extends string>(options: SharedIndexInformerOptions<Pod, I>) {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const objects = Array.from(
    { length: OBJECTS },
    (_, i) => pod(`web-${i}`, { nodeName: `${MARK}-${i % 3}` }),
  );
  for (const object of objects) server.create("v1/pods", object);
  const source = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource<Pod>(
    "v1/pods",
  );
  const informer = new SharedIndexInformer<Pod, I>(source, {
    clock,
    logger: silentLogger,
    ...options,
    reflector: { useWatchList: false, random: () => 0 },
  });
  return {
    server,
    informer,
    settle: (ms = 10) => clock.advance(ms),
    /** Changes one object a little. */
    touch(i: number, note: string) {
      const object = objects[i];
      isServer = true;
      server.update("v1/pods", { ...object, metadata: { ...object.metadata, annotations: { note } } });
      isServer = false;
    },
    async relist(change: () => void) {
      server.closeWatches();
      change();
      server.compact();
      await clock.advance(60_000);
    },
  };
}

const byNode = (pod: Pod) => [pod.spec?.nodeName ?? ""];
const byImage = (pod: Pod) => [String(pod.metadata?.name)];

for (const [name, storage] of [["no option", () => undefined], ["shortTexts()", shortTexts]] as const) {
  describe(`an informer with ${name}`, () => {
    it("parses the text of a watch event once, as it came, for index functions and handlers together", async () => {
      const { informer, settle, touch } = newWorld({
        storage: storage(),
        indexers: { byNode, byImage },
      });
      const seen: Pod[] = [];
      const onUpdate = (_old: Pod, pod: Pod) => void seen.push(pod);
      informer.addEventHandler({ onUpdate });
      informer.addEventHandler({ onUpdate });
      await using _running = informer.start();
      await settle();
      // The old states were read: only new ones are parsed.
      for (let i = 0; i < 20; i++) informer.indexer.getByKey(`default/web-${i}`);
      const reads = await countReads(async () => {
        for (let i = 0; i < 20; i++) touch(i, "changed");
        await settle();
      });
      assert.equal(seen.length, 40);
      assert.deepEqual(reads, { parsed: 20, restored: 0 });
      assert.equal(
        informer.indexer.getByKey("default/web-3"),
        seen.findLast((one) => one.metadata?.name === "web-3"),
      );
    });

    it("parses once for an index function and a handler also where more come than are kept as they came", async () => {
      const { informer, settle, touch } = newWorld({ storage: storage(), indexers: { byNode } });
      let updates = 0;
      informer.addEventHandler({
        onUpdate: (_old, pod) => {
          if (pod.spec?.nodeName !== undefined) updates++;
        },
      });
      await using _running = informer.start();
      await settle();
      for (let i = 0; i < 100; i++) informer.indexer.getByKey(`default/web-${i}`);
      const reads = await countReads(async () => {
        for (let i = 0; i < 100; i++) touch(i, `${i} `.repeat(4_000).slice(0, 4_000));
        await settle();
      });
      assert.equal(updates, 100);
      assert.deepEqual(reads, { parsed: 100, restored: 0 });
    });

    it("parses what a handler reads of a watch event's text, as it came", async () => {
      const { informer, settle, touch } = newWorld({ storage: storage() });
      const nodes: (string | undefined)[] = [];
      informer.addEventHandler({ onUpdate: (_old, pod) => void nodes.push(pod.spec?.nodeName) });
      await using _running = informer.start();
      await settle();
      for (let i = 0; i < 20; i++) informer.indexer.getByKey(`default/web-${i}`);
      const reads = await countReads(async () => {
        for (let i = 0; i < 20; i++) touch(i, "changed");
        await settle();
      });
      assert.deepEqual(reads, { parsed: 20, restored: 0 });
      assert.equal(nodes.length, 20);
    });

    it("reads indices of fields from the text as it came, and parses nothing for handlers that read keys", async () => {
      const { informer, settle, touch } = newWorld({
        storage: storage(),
        indexers: { byNode: fieldIndex<Pod>("spec.nodeName") },
      });
      const keys: string[] = [];
      informer.addEventHandler({ onUpdate: (_old, pod) => void keys.push(metaNamespaceKey(pod)) });
      const reads = await countReads(async () => {
        await using _running = informer.start();
        await settle();
        for (let i = 0; i < 20; i++) touch(i, "changed");
        await settle();
      });
      assert.equal(informer.indexer.countByIndex("byNode", `${MARK}-1`), 100);
      assert.equal(keys.length, 20);
      assert.deepEqual(reads, { parsed: 0, restored: 0 });
    });

    it("parses each new object of a list once, as it came, and none that is unchanged", async () => {
      const { informer, settle, touch, relist } = newWorld({
        storage: storage(),
        indexers: { byNode, byImage },
      });
      const first = await countReads(async () => {
        informer.start();
        await settle();
      });
      assert.equal(informer.indexer.countByIndex("byNode", `${MARK}-1`), 100);
      assert.deepEqual(first, { parsed: OBJECTS, restored: 0 });
      const again = await countReads(() => relist(() => [3, 4, 5].forEach((i) => touch(i, "missed"))));
      assert.equal(informer.indexer.getByKey("default/web-4")?.metadata?.annotations?.note, "missed");
      assert.deepEqual(again, { parsed: 3, restored: 0 });
    });
  });
}
