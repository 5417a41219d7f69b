import assert from "node:assert/strict";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import fc from "fast-check";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { nextTurn, settle } from "../../../src/util/clock.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { changesOf, Screen } from "../screen.ts";
import { describe, it } from "../storages.ts";

const PODS = "/api/v1/pods";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

function apiOf(objects: readonly TestObject[], version = 1_000, options: Partial<ReadApiOptions> = {}) {
  const informer = FakeInformer.with(objects, version);
  const clock = new FakeClock();
  const resources = [{ informer, resource: "v1/pods" }];
  return { informer, clock, api: readApi({ resources, allowAnonymous: true, clock, ...options }) };
}

function pod(name: string, resourceVersion: number, status: Record<string, unknown> = {}): TestObject {
  return object(name, resourceVersion, { status });
}

describe("readApi, windows", () => {
  const some =
    () => [pod("a/1", 1, { restarts: 5 }), pod("a/2", 2, { restarts: 3 }), pod("a/3", 3, { restarts: 1 })];

  it("have the rows, then what changes in them", async () => {
    const { api, informer, clock } = apiOf(some());
    const screen = await Screen.open(api, "sortBy=status.restarts:desc&limit=2");
    assert.deepEqual([screen.names(), screen.window], [["a/1", "a/2"], { total: 3, offset: 0 }]);
    assert.equal(screen.resourceVersion, "1000");
    await clock.advance(100);
    informer.put(pod("a/3", 1_001, { restarts: 9 }));
    assert.equal(await screen.next(), "CHANGES, remove 1, insert 0");
    assert.deepEqual([screen.names(), screen.resourceVersion], [["a/3", "a/1"], "1001"]);
    await clock.advance(100);
    informer.put(pod("a/1", 1_002, { restarts: 10 }));
    assert.equal(await screen.next(), "CHANGES, move 0 1, update 0");
    await clock.advance(100);
    informer.remove("a/2", 1_003);
    assert.equal(await screen.next(), "CHANGES");
    assert.deepEqual(screen.window, { total: 2, offset: 0 });
    await clock.advance(100);
    informer.remove("a/3", 1_004);
    assert.equal(await screen.next(), "CHANGES, remove 1");
    assert.equal(screen.items[0].status.restarts, 10);
    await screen.cancel();
  });

  it("are of their namespace and selectors only, from the first row on and in each change", async () => {
    const labelled = (name: string, version: number, app: string) =>
      object(name, version, { labels: { app }, status: { restarts: version } });
    const path = "/api/v1/namespaces/shop/pods";
    const groups = "groupBy=metadata.namespace,metadata.labels.app";
    const cases: readonly (readonly [query: string, path: string, rows: string[], then: string[]])[] = [
      ["sortBy=metadata.name&limit=9", path, ["shop/a", "shop/b"], ["shop/a", "shop/b", "shop/c"]],
      ["sortBy=metadata.name&limit=9&labelSelector=app=web", path, ["shop/a"], ["shop/a", "shop/c"]],
      ["sortBy=metadata.name&limit=9&labelSelector=app=web", PODS, ["blog/a", "shop/a"], [
        "blog/a",
        "shop/a",
        "blog/c",
        "shop/c",
      ]],
      ["sortBy=metadata.name&limit=9&fieldSelector=metadata.name=a", path, ["shop/a"], ["shop/a"]],
      [groups, path, ["shop,db 1", "shop,web 1"], ["shop,db 1", "shop,web 2"]],
      [`${groups}&labelSelector=app=web`, path, ["shop,web 1"], ["shop,web 2"]],
      [`${groups}&filter=metadata.labels.app=web`, path, ["shop,web 1"], ["shop,web 2"]],
    ];
    for (const [query, path, rows, then] of cases) {
      const { api, informer, clock } = apiOf([
        labelled("shop/a", 1, "web"),
        labelled("shop/b", 2, "db"),
        labelled("blog/a", 3, "web"),
        labelled("blog/b", 4, "db"),
      ]);
      const screen = await Screen.open(api, query, undefined, path);
      const shown = () =>
        query.startsWith("groupBy")
          ? screen.items.map(({ group, count }) => `${Object.values(group)} ${count}`)
          : screen.names();
      assert.deepEqual(shown(), rows, query);
      await clock.advance(100);
      informer.put(labelled("blog/c", 1_001, "web"));
      informer.put(labelled("shop/c", 1_002, "web"));
      await clock.advance(100);
      while (String(shown()) !== String(then)) await screen.next();
      await clock.advance(1_000);
      assert.ok(await screen.isSilent(), query);
      await screen.cancel();
    }
  });

  it("say nothing of what happens outside of them", async () => {
    const { api, informer, clock } = apiOf(some());
    const screen = await Screen.open(api, "sortBy=status.restarts&limit=1");
    await clock.advance(100);
    informer.put(pod("a/1", 1_001, { restarts: 6 }));
    await clock.advance(1_000);
    assert.ok(await screen.isSilent());
  });

  it("make one step of the changes of a tenth of a second", async () => {
    const { api, informer, clock } = apiOf(some());
    const screen = await Screen.open(api, "sortBy=metadata.name&limit=5");
    for (let i = 0; i < 5; i++) informer.put(pod(`b/${i}`, 1_001 + i));
    await clock.advance(100);
    assert.match(await screen.next(), /^CHANGES/);
    assert.equal(screen.window.total, 8);
    assert.equal(screen.names().length, 5);
    await screen.cancel();
  });

  it("rest for longer where hundreds of readers see each change", async () => {
    const { api, informer, clock } = apiOf(some());
    const query = "sortBy=status.restarts:desc&limit=2";
    const first = await Screen.open(api, query);
    const others: Screen[] = [];
    for (let i = 1; i < 600; i++) others.push(await Screen.open(api, query));
    await clock.advance(100);
    informer.put(pod("a/1", 1_001, { restarts: 6 }));
    for (const screen of [first, others[0]]) assert.equal(await screen.next(), "CHANGES, update 0");
    informer.put(pod("a/1", 1_002, { restarts: 7 }));
    await clock.advance(100);
    assert.ok(await others[0].isSilent());
    await clock.advance(150);
    assert.ok(await others[0].isSilent());
    await clock.advance(50);
    assert.equal(await first.next(), "CHANGES, update 0");
    assert.equal(first.items[0].status.restarts, 7);
    for (const screen of [first, ...others]) await screen.cancel();
  });

  it("rest for longer where many orders follow each change", async () => {
    const { api, informer, clock } = apiOf(some());
    const screens: Screen[] = [];
    for (let i = 0; i < 40; i++) {
      screens.push(await Screen.open(api, `sortBy=status.restarts:desc,status.other${i}&limit=2`));
    }
    await clock.advance(100);
    const [first, second] = screens;
    for (let i = 0; i < 20; i++) informer.put(pod(`b/${i}`, 1_001 + i, { restarts: 6 }));
    assert.match(await first.next(), /^CHANGES/);
    informer.put(pod("b/0", 1_050, { restarts: 7 }));
    await clock.advance(250);
    assert.match(await second.next(), /^CHANGES/);
    assert.ok(await second.isSilent());
    await clock.advance(250);
    assert.match(await first.next(), /^CHANGES/);
    for (const screen of screens) await screen.cancel();
  });

  it("are refused with 429 while all bytes are spent on orders that others show", async () => {
    const objects = Array.from({ length: 200 }, (_, i) => pod(`a/${i}`, i + 1, { restarts: i }));
    // An order has 23 KB: there is room for two, and one may be larger than what is left.
    const { api } = apiOf(objects, 1_000, { maxReaderBytes: 55_000 });
    const sortBy = (i: number) => `sortBy=status.restarts,status.other${i}&limit=1`;
    const screens: Screen[] = [];
    for (let i = 0; i < 3; i++) screens.push(await Screen.open(api, sortBy(i)));
    const groups = `groupBy=status.restarts`;
    for (const query of [`watch=1&${sortBy(3)}`, sortBy(3), `watch=1&${groups}`, groups]) {
      const response = await api.request(`${PODS}?${query}`);
      assert.equal(response.status, 429, query);
      assert.equal((await response.json()).reason, "TooManyRequests");
    }
    const status = async (query: string) => {
      const response = await api.request(`${PODS}?${query}`);
      await response.text();
      return response.status;
    };
    assert.equal(await status(sortBy(0)), 200);
    await screens.pop()!.cancel();
    // What no window shows gives way.
    for (let i = 3; i < 9; i++) assert.equal(await status(sortBy(i)), 200);
    for (const screen of screens) await screen.cancel();
    assert.equal(await status(groups), 200);
  });

  it("leave other clients room for theirs, however many orders one of them wants to show", async () => {
    const objects = Array.from({ length: 200 }, (_, i) => pod(`a/${i}`, i + 1, { restarts: i }));
    // There is room for eleven orders, of 21 KB each.
    const { api } = apiOf(objects, 1_000, {
      maxReaderBytes: 240_000,
      allowAnonymous: false,
      authenticate: ({ req }) => ({ name: req.header("Authorization")! }),
      authorize: () => true,
    });
    const open = async (name: string, i: number) => {
      const path = `${PODS}?watch=1&limit=1&sortBy=status.other${i}`;
      return await api.request(path, { headers: { Authorization: name } });
    };
    const opened: Response[] = [];
    const count = async (name: string, from: number) => {
      let count = 0;
      for (let i = from; i < from + 12; i++) {
        const response = await open(name, i);
        if (response.status === 200) {
          count++;
          opened.push(response);
        } else {
          assert.equal(response.status, 429);
          await response.text();
        }
      }
      return count;
    };
    assert.equal(await count("jane", 0), 6);
    // It is not more if the pages of the orders were read before.
    const page = await api.request(`${PODS}?limit=1&sortBy=status.other6`, {
      headers: { Authorization: "jane" },
    });
    assert.equal(page.status, 200);
    await page.text();
    assert.equal((await open("jane", 6)).status, 429);
    assert.equal(await count("joe", 20), 3);
    assert.equal(await count("jim", 40), 1);
    // What another client shows already takes no room.
    for (let i = 0; i < 5; i++) {
      const shared = await open("jim", i);
      assert.equal(shared.status, 200);
      opened.push(shared);
    }
    for (const { body } of opened) await body!.cancel();
  });

  it("leave other clients room for theirs, however many rows one of them wants to show", async () => {
    const text = "x".repeat(5_000);
    const objects = Array.from({ length: 20 }, (_, i) => object(`a/${i}`, i + 1, { status: { text } }));
    const { api, informer, clock } = apiOf(objects, 1_000, {
      maxReaderBytes: 1_000_000,
      allowAnonymous: false,
      authenticate: ({ req }) => ({ name: req.header("Authorization")! }),
      authorize: () => true,
    });
    const readers: ReadableStreamDefaultReader[] = [];
    /** Opens ten windows of one order, each of which holds 100 KB; returns how many of them have rows. */
    const count = async (name: string, limit: number) => {
      let count = 0;
      for (let offset = 0; offset < 10; offset++) {
        const path = `${PODS}?watch=1&limit=${limit}&sortBy=metadata.name&offset=${offset}`;
        const response = await api.request(path, { headers: { Authorization: name } });
        assert.equal(response.status, 200);
        const reader = response.body!.getReader();
        readers.push(reader);
        const { type, object } = JSON.parse(new TextDecoder().decode((await reader.read()).value));
        if (type === "ROWS") count++;
        else assert.equal(object.code, 429);
      }
      return count;
    };
    assert.equal(await count("jane", 10), 5);
    assert.equal(await count("joe", 9), 3);
    // What is open may grow as long as there is room.
    informer.put(object("a/0", 1_001, { status: { text: text + text } }));
    await clock.advance(1_000);
    assert.match(new TextDecoder().decode((await readers[0].read()).value), /^{"type":"CHANGES"/);
    for (const reader of readers) await reader.cancel();
  });

  it("look again where more has come while they looked", async () => {
    const { api, informer, clock } = apiOf(some());
    const first = await Screen.open(api, "sortBy=status.restarts:desc&limit=1");
    // So many that some looks take more than one turn.
    const others: Screen[] = [];
    for (let i = 1; i <= 40; i++) {
      others.push(await Screen.open(api, `sortBy=status.restarts:desc&limit=${i}&offset=1`));
    }
    for (let restarts = 10; restarts < 120; restarts++) {
      informer.put(pod("a/3", 1_001 + restarts, { restarts: 1 }));
      // The first one has looked; the last one may not have.
      await Promise.resolve();
      informer.put(pod("a/1", 1_001 + ++restarts, { restarts }));
      await clock.advance(200);
      while (first.items[0].status.restarts !== restarts) await first.next();
    }
    for (const screen of [first, ...others]) await screen.cancel();
  });

  it("stay around an object, wherever it goes", async () => {
    const { api, informer, clock } = apiOf([1, 2, 3, 4, 5, 6].map((i) => pod(`a/${i}`, i, { order: i })));
    const screen = await Screen.open(api, "sortBy=status.order&limit=3&around=a/3");
    assert.deepEqual([screen.names(), screen.window.offset], [["a/2", "a/3", "a/4"], 1]);
    await clock.advance(100);
    informer.put(pod("a/3", 1_001, { order: 5.5 }));
    await screen.next();
    assert.deepEqual([screen.names(), screen.window.offset], [["a/5", "a/3", "a/6"], 3]);
    await clock.advance(100);
    informer.remove("a/3", 1_002);
    await screen.next();
    assert.deepEqual([screen.names(), screen.window.offset], [["a/5", "a/6"], 3]);
    await clock.advance(100);
    for (const [i, name] of ["a/4", "a/5", "a/6"].entries()) informer.remove(name, 1_003 + i);
    await screen.next();
    assert.deepEqual([screen.names(), screen.window.offset], [[], 2], "not behind the last row");
    await screen.cancel();
    await get(api, `${PODS}?watch=1&sortBy=status.order&limit=3&around=a/none`, { status: 404 });
  });

  it("are refused without a number of rows, and with too many", async () => {
    const { api } = apiOf(some());
    for (const limit of ["", "&limit=0", "&limit=1001", "&limit=x"]) {
      await get(api, `${PODS}?watch=1&sortBy=metadata.name${limit}`, { status: 400 });
    }
  });

  it("end with 413 where their rows are too large to be written at once", async () => {
    const text = "x".repeat(100_000);
    const { api } = apiOf(Array.from({ length: 200 }, (_, i) => pod(`a/${i}`, i + 1, { text })));
    const watch = await WatchReader.open(api, `${PODS}?watch=1&sortBy=metadata.name&limit=200`);
    assert.deepEqual(await watch.toEnd(), ["ERROR 413 RequestEntityTooLarge"]);
    const screen = await Screen.open(api, "sortBy=metadata.name&limit=200&fields=metadata.name");
    assert.equal(screen.items.length, 200);
    await screen.cancel();
  });

  it("show a bookmark from time to time, and end as watches do", async () => {
    const { api, informer, clock } = apiOf(some());
    const queries = ["sortBy=metadata.name&limit=1", "groupBy=status.restarts"];
    const screens = [];
    for (const query of queries) screens.push(await Screen.open(api, `${query}&timeoutSeconds=600`));
    informer.bookmark(1_005);
    await clock.advance(60_000);
    for (const screen of screens) {
      assert.equal(await screen.next(), "BOOKMARK");
      assert.equal(screen.resourceVersion, "1005");
      await screen.cancel();
    }
  });

  it("say in a bookmark no version whose rows they have not shown", async () => {
    const { api, informer, clock } = apiOf(some());
    const screen = await Screen.open(api, "sortBy=metadata.name&limit=1&timeoutSeconds=600");
    await clock.advance(29_990);
    informer.put(pod("a/0", 1_001));
    await screen.next();
    assert.deepEqual([screen.names(), screen.resourceVersion], [["a/0"], "1001"]);
    // In the rest behind a step.
    informer.put(pod("a/00", 1_002));
    informer.remove("a/0", 1_003);
    await clock.advance(20);
    assert.equal(await screen.next(), "BOOKMARK");
    assert.equal(screen.resourceVersion, "1001");
    await clock.advance(100);
    await screen.next();
    assert.deepEqual([screen.names(), screen.resourceVersion], [["a/00"], "1003"]);
    await screen.cancel();
  });

  it("show the rows of now to a reader that comes after all others have left", async () => {
    const { api, informer, clock } = apiOf(some());
    for (let i = 1; i <= 3; i++) {
      const screen = await Screen.open(api, "sortBy=status.restarts:desc&limit=2");
      assert.deepEqual([screen.window.total, screen.resourceVersion], [2 + i, String(999 + i)]);
      await screen.cancel();
      await clock.advance(1_000);
      informer.put(pod(`b/${i}`, 1_000 + i, { restarts: 10 + i }));
    }
  });

  it("have rows of Tables and fields, and are shared by readers of the same rows", async () => {
    const { api, informer, clock } = apiOf(some());
    const tables = await Promise.all(
      [1, 2].map(() => Screen.open(api, "sortBy=column(Name):desc&limit=2&includeObject=None", TABLE)),
    );
    const fields = await Screen.open(api, "sortBy=status.restarts&limit=2&fields=status.restarts");
    assert.deepEqual(tables.map(({ items }) => items.map(({ cells }) => cells[0])), [["3", "2"], ["3", "2"]]);
    assert.deepEqual(fields.items.map(({ status }) => status), [{ restarts: 1 }, { restarts: 3 }]);
    const both = await Screen.open(api, "sortBy=metadata.name&limit=1&fields=metadata.uid", TABLE);
    assert.deepEqual(Object.keys(both.items[0].object.metadata), ["name", "namespace", "resourceVersion"]);
    assert.equal(both.items[0].cells[0], "1");
    await both.cancel();
    await clock.advance(100);
    informer.put(pod("a/4", 1_001, { restarts: 2 }));
    for (const screen of tables) assert.equal(await screen.next(), "CHANGES, remove 1, insert 0");
    assert.equal(await fields.next(), "CHANGES, remove 1, insert 1");
    for (const screen of [...tables, fields]) await screen.cancel();
  });

  it("begin with the ages of now, also where another reader shows the same rows of a Table", async () => {
    const clock = new FakeClock();
    const creationTimestamp = new Date(clock.now()).toISOString();
    const created = (name: string, version: number) => {
      const made = pod(name, version);
      return { ...made, metadata: { ...made.metadata, creationTimestamp } };
    };
    const { api, informer } = apiOf([created("a/1", 1), created("a/2", 2)], 1_000, { clock });
    const query = "sortBy=metadata.name&limit=2";
    const ages = (screen: Screen) => screen.items.map(({ cells }) => `${cells[0]} ${cells[4]}`);
    const first = await Screen.open(api, query, TABLE);
    assert.deepEqual(ages(first), ["1 0s", "2 0s"]);
    await clock.advance(20_000);
    const second = await Screen.open(api, query, TABLE);
    assert.deepEqual(ages(second), ["1 20s", "2 20s"]);
    await clock.advance(100);
    informer.put(created("a/3", 1_001));
    informer.remove("a/1", 1_002);
    while (second.resourceVersion !== "1002") await second.next();
    assert.deepEqual(ages(second), ["2 20s", "3 20s"]);
    await first.cancel();
    await second.cancel();
  });

  it("have as many rows as each reader asked for, where several begin at one place", async () => {
    const { api, informer, clock } = apiOf(some());
    const screens = await Promise.all(
      [1, 2, 1].map((limit) => Screen.open(api, `sortBy=metadata.name&limit=${limit}`)),
    );
    assert.deepEqual(screens.map((screen) => screen.names().length), [1, 2, 1]);
    await clock.advance(100);
    informer.put(pod("a/0", 1_001));
    for (const screen of screens) await screen.next();
    assert.deepEqual(screens.map((screen) => screen.names().length), [1, 2, 1]);
    for (const screen of screens) await screen.cancel();
  });

  it("give a reader that reads slowly the rows as they are, and no 410", async () => {
    const { api, informer, clock } = apiOf(some(), 1_000, { watchBufferBytes: 100_000 });
    const slow = await Screen.open(api, "sortBy=metadata.name&limit=50");
    const screen = await Screen.open(api, "sortBy=metadata.name&limit=50");
    const text = "x".repeat(40_000);
    for (let i = 0; i < 200; i++) {
      await clock.advance(100);
      informer.put(pod(`b/${i % 20}`, 1_001 + i, { text: `${i}${text}` }));
      assert.match(await screen.next(), /^CHANGES/);
    }
    assert.equal(screen.window.total, 23);
    const frames = new Set<string>();
    while (slow.resourceVersion !== screen.resourceVersion) frames.add((await slow.next()).slice(0, 4));
    assert.deepEqual(slow.items, screen.items);
    assert.deepEqual([...frames], ["CHAN", "ROWS"]);
    await slow.cancel();
    await screen.cancel();
  });

  it("count objects by their values, and sum them up", async () => {
    const running = (name: string, version: number, node: string, cpu: string) =>
      object(name, version, { spec: { nodeName: node, cpu } });
    const { api, informer, clock } = apiOf([
      running("a/1", 1, "n-2", "100m"),
      running("a/2", 2, "n-10", "1"),
      running("a/3", 3, "n-2", "2"),
      pod("a/4", 4),
    ]);
    const path = `${PODS}?groupBy=spec.nodeName&sum=spec.cpu`;
    const list = await get(api, path);
    assert.deepEqual([list.kind, list.apiVersion], ["GroupList", "screens.listwatch/v1"]);
    const row = (node: string | null, count: number, cpu: number) => ({
      group: { "spec.nodeName": node },
      count,
      sums: { "spec.cpu": cpu },
    });
    assert.deepEqual(list.items, [row("n-2", 2, 2.1), row("n-10", 1, 1), row(null, 1, 0)]);
    const others = await get(api, `${PODS}?groupBy=spec.nodeName&sum=spec.memory`);
    assert.deepEqual(others.items[0].sums, { "spec.memory": 0 });
    const screen = await Screen.open(api, "groupBy=spec.nodeName&sum=spec.cpu");
    assert.deepEqual(screen.items, list.items);
    await clock.advance(100);
    informer.put(running("a/1", 1_001, "n-10", "50m"));
    assert.equal(await screen.next(), "CHANGES, update 0, update 1");
    assert.deepEqual(screen.items, [row("n-2", 1, 2), row("n-10", 2, 1.05), row(null, 1, 0)]);
    await clock.advance(100);
    informer.remove("a/3", 1_002);
    assert.equal(await screen.next(), "CHANGES, remove 0");
    await screen.cancel();
    await get(api, `${PODS}?sum=spec.cpu`, { status: 400 });
  });

  it("have the rows of their own selectors, while others have those of other ones", async () => {
    const { api } = apiOf([1, 2, 3, 4].map((i) => object(`a/${i}`, i, { labels: { odd: String(i % 2) } })));
    const screens: Screen[] = [];
    for (const odd of [0, 1]) {
      screens.push(await Screen.open(api, `sortBy=metadata.name&limit=3&labelSelector=odd%3D${odd}`));
    }
    assert.deepEqual(screens.map((screen) => screen.names()), [["a/2", "a/4"], ["a/1", "a/3"]]);
    for (const screen of screens) await screen.cancel();
  });

  it("distinguish groups that have one value of several in common", async () => {
    const on = (name: string, version: number, node: string, phase: string) =>
      object(name, version, { spec: { nodeName: node }, status: { phase } });
    const { api, informer, clock } = apiOf([
      on("a/1", 1, "n-1", "Running"),
      on("a/2", 2, "n-1", "Failed"),
      on("a/3", 3, "n-1", "Running"),
    ]);
    const screen = await Screen.open(api, "groupBy=spec.nodeName,status.phase");
    await clock.advance(100);
    informer.put(on("a/2", 1_001, "n-1", "Running"));
    informer.put(on("a/1", 1_002, "n-1", "Pending"));
    await screen.next();
    const { items } = await get(api, `${PODS}?groupBy=spec.nodeName,status.phase`);
    assert.deepEqual(screen.items, items);
    await screen.cancel();
  });

  it("are of values that differ in their letters or types only, and of none where there are objects", async () => {
    const values = ["Up", "up", 1, "1", true, "true", { a: 1 }, { b: 1 }, undefined];
    const { api } = apiOf(values.map((value, i) => pod(`a/${i}`, i + 1, { value })));
    const { items } = await get(api, `${PODS}?groupBy=status.value`);
    assert.deepEqual(
      items.map((item: Json) => JSON.stringify(item)).sort(),
      [...values.slice(0, 6).map((value) => [value, 1]), [null, 3]].map(([value, count]) =>
        JSON.stringify({ group: { "status.value": value }, count })
      ).sort(),
    );
  });

  it("count what a restored server has, and what comes after it", async () => {
    const { api, informer } = apiOf([pod("a/1", 1, { phase: "Up" }), pod("a/2", 2, { phase: "Up" })]);
    const counts = async () => {
      const { items } = await get(api, `${PODS}?groupBy=status.phase`);
      return Object.fromEntries(items.map(({ group, count }: Json) => [group["status.phase"], count]));
    };
    assert.deepEqual(await counts(), { Up: 2 });
    informer.relist([pod("a/1", 1, { phase: "Up" })], 10);
    assert.deepEqual(await counts(), { Up: 1 });
    informer.put(pod("a/2", 11, { phase: "Up" }));
    assert.deepEqual(await counts(), { Up: 2 });
    informer.put(pod("a/3", 12, { phase: "Up" }));
    assert.deepEqual(await counts(), { Up: 3 });
  });

  it("count an object with many values of several fields in a hundred groups", async () => {
    const values = Array.from({ length: 30 }, (_, i) => i);
    const { api, informer } = apiOf([pod("a/1", 1, { a: values, b: values, c: values })]);
    const path = `${PODS}?groupBy=status.a[],status.b[],status.c[]`;
    const { items } = await get(api, path);
    assert.equal(items.length, 100);
    informer.remove("a/1", 1_001);
    assert.deepEqual((await get(api, path)).items, []);
    informer.put(pod("a/1", 1_002, { a: [1], b: [2], c: [3] }));
    assert.deepEqual((await get(api, path)).items.map(({ count }: Json) => count), [1]);
  });

  it("forget what was in a sum, however large it was", async () => {
    const of = (name: string, version: number, memory: string) => object(name, version, { spec: { memory } });
    const { api, informer } = apiOf([of("a/1", 1, "3Gi"), of("a/2", 2, "1e400"), of("a/3", 3, "4e200")]);
    const sum = async () => {
      const { items } = await get(api, `${PODS}?groupBy=metadata.namespace&sum=spec.memory`);
      return items[0].sums["spec.memory"];
    };
    assert.equal(await sum(), 4e200); // 1e400 is no number that there is
    informer.put(of("a/4", 1_001, "9E"));
    await sum();
    informer.remove("a/3", 1_002);
    assert.equal(await sum(), 9.00000000322e18);
    informer.remove("a/4", 1_003);
    informer.remove("a/2", 1_004);
    assert.equal(await sum(), 3 * 2 ** 30);
    // A sum beyond all numbers ends with its group.
    const large = ["a/1", "a/2"].map((name, i) => of(name, 1_005 + i, "17e307"));
    for (const each of large) informer.put(each);
    await sum();
    for (const [i, name] of ["a/1", "a/2"].entries()) informer.remove(name, 1_007 + i);
    informer.put(of("b/1", 1_009, "1"));
    assert.equal(await sum(), 1);
    informer.put(of("a/1", 1_010, "2"));
    assert.equal(await sum(), 2);
  });

  it("show, step by step, states that were", async () => {
    const change = fc.record({
      name: fc.integer({ min: 0, max: 12 }),
      restarts: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
      kind: fc.constantFrom("put", "put", "put", "remove", "relist", "wait"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 40 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 0, max: 8 }),
        async (changes, limit, offset) => {
          let version = 100;
          const { api, informer, clock } = apiOf([], version);
          const content = new Map<string, TestObject>();
          const apply = changesOf(informer, content);
          const value = ({ status }: TestObject) => (status as { restarts?: number }).restarts ?? Infinity;
          const rows = () => {
            const sorted = [...content].sort(([a, x], [b, y]) => value(x) - value(y) || (a < b ? -1 : 1));
            const from = Math.min(offset, sorted.length);
            return JSON.stringify([sorted.length, sorted.slice(from, from + limit).map(([, each]) => each)]);
          };
          const shown = ({ window, items }: Screen) =>
            JSON.stringify([window.total, items.map(({ kind: _, apiVersion: __, ...rest }) => rest)]);
          const were = new Map<string, string>([[String(version), rows()]]);
          const screen = await Screen.open(api, `sortBy=status.restarts&limit=${limit}&offset=${offset}`);
          for (const { name, restarts, kind } of changes) {
            const key = `a/p-${name}`;
            if (kind === "wait") {
              await clock.advance(100);
              continue;
            }
            version++;
            apply(kind, key, pod(key, version, restarts === undefined ? {} : { restarts }));
            were.set(String(version), rows());
          }
          await clock.advance(200);
          await settle();
          while (shown(screen) !== rows()) {
            await screen.next();
            assert.equal(shown(screen), were.get(screen.resourceVersion));
          }
          await screen.cancel();
        },
      ),
      propertyOptions(60),
    );
  });

  it("show their first rows before all are in order", async () => {
    const objects = Array.from({ length: 20_000 }, (_, i) => pod(`a/${i}`, i + 1, { restarts: -i }));
    const { api, informer } = apiOf(objects, 30_000);
    let version = 30_000;
    let isOpen = false;
    const opening = Screen.open(api, "sortBy=status.restarts&limit=2").finally(() => (isOpen = true));
    while (!isOpen) {
      await nextTurn();
      informer.put(pod("a/0", ++version, { restarts: 0 }));
    }
    const screen = await opening;
    assert.deepEqual([screen.names(), screen.window.total], [["a/19999", "a/19998"], 20_000]);
    assert.equal(screen.resourceVersion, "30000", "as they were read");
    await screen.cancel();
  });

  it("begin with rows that were, before all are in order, and continue with what came meanwhile", async () => {
    const base = Array.from(
      { length: 5_500 },
      (_, i) => pod(`a/p-${i}`, i + 1, { restarts: (i * 37) % 2_000 }),
    );
    const change = fc.record({
      name: fc.integer({ min: 0, max: 5_530 }),
      restarts: fc.integer({ min: -3, max: 3 }),
      kind: fc.constantFrom("put", "put", "put", "remove", "relist"),
      isNextTurn: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 20 }),
        fc.integer({ min: 1, max: 20 }),
        fc.constantFrom(0, 3, 1_000, 5_495, 9_000),
        fc.boolean(),
        async (changes, limit, offset, isListFirst) => {
          let version = 10_000;
          const { api, informer, clock } = apiOf(base, version);
          const content = new Map(base.map((each) => [`a/${each.metadata!.name}`, each]));
          const apply = changesOf(informer, content);
          const value = ({ status }: TestObject) => (status as { restarts: number }).restarts;
          const rows = () => {
            const sorted = [...content].sort(([a, x], [b, y]) => value(x) - value(y) || (a < b ? -1 : 1));
            const from = Math.min(offset, sorted.length);
            return JSON.stringify([sorted.length, sorted.slice(from, from + limit).map(([key]) => key)]);
          };
          const shown = (screen: Screen) => JSON.stringify([screen.window.total, screen.names()]);
          const were = new Map([[String(version), rows()]]);
          const query = `sortBy=status.restarts&limit=${limit}&offset=${offset}`;
          const list = () => get(api, `${PODS}?${query}`);
          const before = isListFirst ? list() : undefined;
          const opening = Screen.open(api, query);
          const listed = before ?? list();
          for (const { name, restarts, kind, isNextTurn } of changes) {
            const key = `a/p-${name}`;
            version++;
            apply(kind, key, pod(key, version, { restarts }));
            were.set(String(version), rows());
            if (isNextTurn) await nextTurn();
          }
          const page = await listed;
          assert.equal(
            JSON.stringify([page.window.total, names(page)]),
            were.get(page.metadata.resourceVersion),
          );
          const screen = await opening;
          assert.equal(shown(screen), were.get(screen.resourceVersion));
          await clock.advance(200);
          await settle();
          while (shown(screen) !== rows()) {
            await screen.next();
            assert.equal(shown(screen), were.get(screen.resourceVersion));
          }
          await screen.cancel();
        },
      ),
      propertyOptions(20),
    );
  });
});
