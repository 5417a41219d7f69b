import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  labelIndexFunc,
  metaNamespaceKey,
  parseResource,
  shortTexts,
} from "@listwatch/cache";
import fc from "fast-check";
import { Content } from "../../../src/hono/content/content.ts";
import type { EventLog } from "../../../src/hono/content/event_log.ts";
import type { LogEntry } from "../../../src/hono/content/log_history.ts";
import { EntryViews } from "../../../src/hono/send/watch_groups.ts";
import { newObjectView, withoutTypeText, withType, withTypeText } from "../../../src/hono/send/view_text.ts";
import { newEventOpener, type StoreEvent } from "../../../src/informer/events.ts";
import { newCache } from "../../../src/store/cache.ts";
import type { Held } from "../../../src/store/holding.ts";
import { TextObject } from "../../../src/text/lazy_object.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { object, type TestObject } from "../fake_informer.ts";
import { get, names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { propertyOptions } from "../../property.ts";

/** An informer with a store of encoded objects, none of which stay decoded, that counts what is decoded. */
function counting(objects: readonly TestObject[], resourceVersion: number) {
  const count = { decoded: 0 };
  const indexer = newCache<TestObject, string>(metaNamespaceKey, { labels: labelIndexFunc(["app"]) }, {
    storage: shortTexts({ hotObjects: 0 }),
    freeze: (value) => (count.decoded++, value),
  });
  const { held, holding } = indexer;
  held.replace(
    objects.map((one) => [metaNamespaceKey(one), holding.holdEarly(one)]),
    String(resourceVersion),
  );
  const observers = new Set<(event: StoreEvent<Held<TestObject>>) => void>();
  const informer = {
    indexer,
    hasSynced: () => true,
    status: () => ({ phase: "watching" }),
    observe(observer: (event: StoreEvent<TestObject>) => void) {
      return this.observeHeld((event) => observer(newEventOpener(holding)(event)));
    },
    observeHeld(observer: (event: StoreEvent<Held<TestObject>>) => void) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
  const put = (next: TestObject) => {
    const key = metaNamespaceKey(next);
    const oldObject = held.getByKey(key);
    held.update(key, holding.holdEarly(next));
    const object = held.getByKey(key) as Held<TestObject>;
    const event: StoreEvent<Held<TestObject>> = oldObject === undefined
      ? { type: "added", key, object }
      : { type: "updated", key, object, oldObject };
    for (const observer of observers) observer(event);
  };
  const clock = new FakeClock();
  const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true, clock });
  return { api, informer, put, count, clock };
}

const manyPods = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    object(`shop-${i % 10}/p-${String(i).padStart(4, "0")}`, i + 1, {
      labels: { app: `app-${i % 50}`, half: String(i % 2) },
      spec: { nodeName: `n-${i % 20}`, text: "x".repeat(2_000) },
    }));

describe("readApi over short texts", () => {
  it("decodes nothing for lists and watches of everything, or of a namespace", async () => {
    const { api, put, count } = counting(manyPods(1_000), 1_000);
    assert.equal((await get(api, "/api/v1/pods")).items.length, 1_000);
    assert.equal((await get(api, "/api/v1/pods?limit=10")).items.length, 10);
    assert.equal((await get(api, "/api/v1/namespaces/shop-1/pods")).items.length, 100);
    const all = await WatchReader.open(api, "/api/v1/pods?watch=1&resourceVersion=1000");
    const one = await WatchReader.open(api, "/api/v1/namespaces/shop-1/pods?watch=1&resourceVersion=1000");
    const initial = await WatchReader.open(api, "/api/v1/namespaces/shop-1/pods?watch=1");
    for (const name of ["shop-0/new", "shop-1/new", "shop-1/p-0001"]) put(object(name, 1_001));
    assert.deepEqual(
      (await all.events(3)).map(({ type, object }) => `${type} ${object.kind} ${object.metadata.name}`),
      ["ADDED Pod new", "ADDED Pod new", "MODIFIED Pod p-0001"],
    );
    assert.deepEqual(await one.lines(2), ["ADDED shop-1/new 1001", "MODIFIED shop-1/p-0001 1001"]);
    assert.equal((await initial.events(102)).length, 102);
    assert.equal(count.decoded, 0);
  });

  it("decodes the objects of a Table one by one, while it is read", async () => {
    const { api, count } = counting(manyPods(1_000), 1_000);
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const path = "/api/v1/pods?includeObject=Object";
    const reader = (await api.request(path, { headers: { Accept: accept } })).body!.getReader();
    await reader.read();
    const atFirst = count.decoded;
    assert.ok(atFirst > 0 && atFirst < 400, `${atFirst} are decoded`);
    for (let i = 0; i < 2; i++) await reader.read();
    assert.ok(count.decoded > atFirst && count.decoded < atFirst + 100, `${count.decoded} are decoded`);
    await reader.cancel();
  });

  it("decodes nothing of an event for watches with label selectors, also for what has left one", async () => {
    const { api, put, count } = counting(manyPods(100), 100);
    const selectors = ["half%3D1", "half%3D0", "app", "!app", "app%3Dapp-7"];
    const watches = await Promise.all(
      selectors.map((selector) =>
        WatchReader.open(api, `/api/v1/pods?watch=1&resourceVersion=100&labelSelector=${selector}`)
      ),
    );
    put(object("shop-7/p-0007", 101, { labels: { app: "app-7", half: "0" } }));
    const lines = await Promise.all([0, 1, 2, 4].map((i) => watches[i].lines(1)));
    const [left, entered, changed] = ["DELETED", "ADDED", "MODIFIED"].map((type) =>
      `${type} shop-7/p-0007 101`
    );
    assert.deepEqual(lines, [[left], [entered], [changed], [changed]]);
    assert.equal(count.decoded, 0);
  });

  it("decodes each event's objects once for all watches with field selectors", async () => {
    const { api, put, count } = counting(manyPods(100), 100);
    const watches = await Promise.all(
      ["n-7", "n-8"].map((node) =>
        WatchReader.open(
          api,
          `/api/v1/pods?watch=1&resourceVersion=100&fieldSelector=spec.nodeName%3D${node}`,
        )
      ),
    );
    put(object("shop-7/p-0007", 101, { spec: { nodeName: "n-8" } }));
    assert.deepEqual(await watches[0].lines(1), ["DELETED shop-7/p-0007 101"]);
    assert.deepEqual(await watches[1].lines(1), ["ADDED shop-7/p-0007 101"]);
    assert.equal(count.decoded, 2);
  });

  it("looks up a name without decoding an object", async () => {
    const { api, put, count } = counting(manyPods(100), 100);
    const selector = "fieldSelector=metadata.name%3Dp-0042";
    assert.deepEqual(names(await get(api, `/api/v1/pods?${selector}`)), ["shop-2/p-0042"]);
    assert.equal(count.decoded, 0);
    const watch = await WatchReader.open(api, `/api/v1/pods?watch=1&resourceVersion=100&${selector}`);
    put(object("shop-1/p-0001", 101));
    put(object("shop-2/p-0042", 102));
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop-2/p-0042 102"]);
    assert.equal(count.decoded, 0);
  });

  it("decodes nothing for a label selector, with an index for the label or without", async () => {
    const { api, count } = counting(manyPods(1_000), 1_000);
    for (const selector of ["app%3Dapp-7", "app%3Dapp-7,half%3D1", "half%3D1,app+in+(app-7)"]) {
      const found = await get(api, `/api/v1/pods?labelSelector=${selector}&limit=5`);
      assert.deepEqual(names(found), [
        "shop-7/p-0007",
        "shop-7/p-0057",
        "shop-7/p-0107",
        "shop-7/p-0157",
        "shop-7/p-0207",
      ]);
      const token = encodeURIComponent(found.metadata.continue);
      const rest = await get(api, `/api/v1/pods?labelSelector=${selector}&limit=50&continue=${token}`);
      assert.equal(rest.items.length, 15);
    }
    assert.equal((await get(api, "/api/v1/pods?labelSelector=half%3D0")).items.length, 500);
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=1&labelSelector=half%3D1");
    assert.equal((await watch.lines(500))[499], "ADDED shop-9/p-0999 1000");
    assert.equal(count.decoded, 0);
  });

  it("gives others a turn while it decodes what a list or a watch may select", async () => {
    const { api } = counting(manyPods(1_000), 1_000);
    const turnsDuring = async (work: () => Promise<unknown>) => {
      let turns = 0;
      let isOver = false;
      const count = () => {
        turns++;
        if (!isOver) setTimeout(count, 0);
      };
      setTimeout(count, 0);
      await work();
      isOver = true;
      return turns;
    };
    const selector = "fieldSelector=spec.nodeName%3Dn-19";
    const listTurns = await turnsDuring(async () => {
      assert.equal((await get(api, `/api/v1/pods?${selector}`)).items.length, 50);
    });
    assert.ok(listTurns > 1, `${listTurns} turns`);
    const watchTurns = await turnsDuring(async () => {
      const watch = await WatchReader.open(api, `/api/v1/pods?watch=1&${selector}`);
      assert.equal((await watch.lines(50))[49], "ADDED shop-9/p-0999 1000");
    });
    assert.ok(watchTurns > 1, `${watchTurns} turns`);
  });

  it("keeps its past encoded, and the bytes of few events", async () => {
    const { informer, put, clock } = counting([], 10);
    const view = newObjectView({ ...parseResource("v1/pods"), kind: "Pod", namespaced: true });
    const content = new Content<KubernetesObject>(informer, {
      clock,
      capacity: 2_000,
      capacityBytes: Infinity,
    });
    const { log } = content;
    const views = new EntryViews(content.holding);
    for (let i = 0; i < 1_000; i++) put(object("shop/a", 11 + i, { labels: { i: String(i) } }));
    for (let sequence = log.window.tail; sequence < log.head; sequence++) {
      const entry = entryOf(log, sequence);
      assert.ok(entry.object instanceof TextObject);
      views.opened(entry, "object");
      views.bytes(entry, "ADDED", view);
    }
    const kept = () => {
      let count = 0;
      for (let i = log.window.tail; i < log.head; i++) if (entryOf(log, i).views !== undefined) count++;
      return count;
    };
    assert.equal(kept(), 256);
    assert.ok(entryOf(log, log.head - 1).views, "those that were read last");
    const all = () => {
      for (let i = log.window.tail; i < log.head; i++) {
        views.bytes(entryOf(log, i), "DELETED", view);
      }
    };
    views.isPass = true;
    all();
    assert.equal(kept(), 1_000); // every watch is about to read them
    views.passEnds();
    assert.equal(kept(), 256);
    assert.equal(content.states.snapshot().object(0) instanceof TextObject, true);
    content.log.close();
    await settle();
  });
});

describe("withTypeText and withoutTypeText", () => {
  const resource = { ...parseResource("v1/pods"), kind: "Pod", namespaced: true };
  const bare = {
    metadata: {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1" }],
      annotations: { a: '\\"kind":', kind: "a", apiVersion: "b" },
    },
  };
  const untyped = (value: object) => ({ ...value, kind: undefined, apiVersion: undefined });

  it("are put in front where they are missing, and left where they are", () => {
    assert.equal(withTypeText(resource, '{"a":1}'), '{"kind":"Pod","apiVersion":"v1","a":1}');
    for (const text of ['{"kind":"X","apiVersion":"y","a":1}', '{"apiVersion":"y","kind":"X"}']) {
      assert.equal(withTypeText(resource, text), text);
      assert.equal(JSON.stringify(withType(resource, JSON.parse(text))), text);
    }
    assert.equal(withTypeText(resource, JSON.stringify(bare)), JSON.stringify(withType(resource, bare)));
  });

  it("are taken away from the front; elsewhere the object has to be looked at", () => {
    assert.equal(withoutTypeText('{"kind":"X","apiVersion":"y","a":1}'), '{"a":1}');
    assert.equal(withoutTypeText('{"apiVersion":"y","kind":"X"}'), "{}");
    for (const text of [JSON.stringify(bare), '{"\\"kind":1,"a\\\\":2,"\\"":{"kind":"X"}}']) {
      assert.equal(withoutTypeText(text), text);
    }
    for (
      const text of [
        '{"metadata":{},"kind":"X"}',
        '{"a":["]"],"apiVersion":"y"}',
        '{"kind":"X","a":1}',
        '{"a":1, "kind"\n\t : "X"}',
        '{"a":1,"\\u006bind":"X"}',
      ]
    ) {
      assert.equal(withoutTypeText(text), undefined);
      assert.equal(withTypeText(resource, text), undefined);
    }
  });

  it("come out as they do from the object, whatever it holds", () => {
    // Without escapes in names: some versions of V8 parse {"\\"":1}
    // as {"\\\\":1} where they have met the latter.
    const plain = fc.string().filter((text) => !/["\\]/.test(text));
    const name = fc.oneof(fc.constantFrom("kind", "apiVersion", "metadata", "a", "}"), plain);
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string(),
        fc.constantFrom('","kind":"x', "\\", '\\"', "kind"),
        fc.integer(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(name, tie("value"), { maxKeys: 4 }),
      ),
    }));
    let answered = 0;
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 5 }), fc.boolean(), (fields, isTyped) => {
        const one = JSON.parse(JSON.stringify(isTyped ? { kind: "K", apiVersion: "v", ...fields } : fields));
        const text = JSON.stringify(one);
        const without = withoutTypeText(text);
        if (without !== undefined) {
          answered++;
          assert.deepEqual(JSON.parse(without), JSON.parse(JSON.stringify(untyped(one))));
        }
        const withIt = withTypeText(resource, text);
        if (withIt !== undefined) assert.deepEqual(JSON.parse(withIt), withType(resource, one));
      }),
      propertyOptions(2_000),
    );
    assert.ok(answered > propertyOptions(500).numRuns, `${answered} texts needed no look at the object`);
  });
});

function entryOf(log: EventLog<KubernetesObject>, sequence: number): LogEntry<KubernetesObject> {
  return log.window.entries.at(sequence - log.window.tail)!;
}
