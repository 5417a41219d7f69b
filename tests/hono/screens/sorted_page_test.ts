import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeContinue, encodeContinue } from "../../../src/protocol/continue_token.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { changesOf, Screen } from "../screen.ts";
import { describe, it } from "../storages.ts";

const PODS = "/api/v1/pods";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

function apiOf(objects: readonly TestObject[], version = 1_000) {
  const informer = FakeInformer.with(objects, version);
  const clock = new FakeClock();
  const resources = [{ informer, resource: "v1/pods" }];
  return { informer, clock, api: readApi({ resources, allowAnonymous: true, clock }) };
}

function pod(name: string, resourceVersion: number, status: Record<string, unknown> = {}): TestObject {
  return object(name, resourceVersion, { status });
}

describe("readApi, lists with sortBy", () => {
  const { api } = {
    get api() {
      return apiOf([
        pod("shop/web-10", 1, { phase: "Running", startTime: "2026-01-01T10:00:00Z", restarts: 3 }),
        pod("shop/web-2", 2, { phase: "Pending", restarts: 12 }),
        pod("blog/web-1", 3, { phase: "Running", startTime: "2026-01-01T11:00:00+02:00", restarts: 7 }),
      ]).api;
    },
  };
  const order = async (sortBy: string, more = "") =>
    names(await get(api, `${PODS}?sortBy=${encodeURIComponent(sortBy)}${more}`));

  it("are in the order of numbers, times and names", async () => {
    assert.deepEqual(await order("status.restarts:desc"), ["shop/web-2", "blog/web-1", "shop/web-10"]);
    assert.deepEqual(await order("status.startTime"), ["blog/web-1", "shop/web-10", "shop/web-2"]);
    assert.deepEqual(await order("metadata.name"), ["blog/web-1", "shop/web-2", "shop/web-10"]);
  });

  it("are in the order of any metadata: labels, annotations, owners", async () => {
    const one = (name: string, rank: string): TestObject => ({
      metadata: {
        ...object(name, 1).metadata,
        labels: { rank },
        annotations: { rank },
        ownerReferences: [{ apiVersion: "v1", kind: "Any", uid: rank, name: rank }],
      },
    });
    const { api } = apiOf([one("a/1", "2"), one("a/2", "3"), one("a/3", "1")]);
    for (const field of ["labels.rank", "annotations.rank", "ownerReferences[].name"]) {
      assert.deepEqual(
        names(await get(api, `${PODS}?sortBy=metadata.${field}`)),
        ["a/3", "a/1", "a/2"],
        field,
      );
    }
  });

  it("take the next key where values are equal, and the name in the end", async () => {
    assert.deepEqual(await order("status.phase,metadata.name:desc"), [
      "shop/web-2",
      "shop/web-10",
      "blog/web-1",
    ]);
    assert.deepEqual(await order("status.nothing"), ["blog/web-1", "shop/web-10", "shop/web-2"]);
  });

  it("are of all their keys, where others have the first ones of them", async () => {
    const { api } = apiOf([1, 2, 3].map((i) => pod(`a/${i}`, i, { phase: "Running" })));
    for (
      const [sortBy, expected] of [["", "123"], [",metadata.name:desc", "321"], [",metadata.name", "123"]]
    ) {
      const list = await get(api, `${PODS}?sortBy=status.phase${sortBy}`);
      assert.equal(list.items.map(({ metadata }: Json) => metadata.name).join(""), expected, sortBy);
    }
  });

  it("have the rows of a namespace and of selectors only, and say how many there are", async () => {
    assert.deepEqual(
      names(await get(api, "/api/v1/namespaces/shop/pods?sortBy=metadata.name")),
      ["shop/web-2", "shop/web-10"],
    );
    const list = await get(api, `${PODS}?sortBy=metadata.name&fieldSelector=status.phase%3DRunning&limit=1`);
    assert.deepEqual(names(list), ["blog/web-1"]);
    assert.deepEqual(list.window, { total: 2, offset: 0 });
    assert.equal(list.metadata.remainingItemCount, 1);
  });

  it("have the version of now, also where none of their rows has changed", async () => {
    const { api, informer } = apiOf([1, 2].map((i) => object(`a/${i}`, i, { labels: { app: "web" } })));
    const path = `${PODS}?sortBy=metadata.name&labelSelector=app%3Dweb`;
    assert.equal((await get(api, path)).metadata.resourceVersion, "1000");
    informer.put(object("a/3", 1_001, { labels: { app: "db" } }));
    const { metadata, items } = await get(api, path);
    assert.deepEqual([metadata.resourceVersion, items.length], ["1001", 2]);
  });

  it("begin at an offset, or around an object", async () => {
    const page = await get(api, `${PODS}?sortBy=metadata.name&offset=1&limit=1`);
    assert.deepEqual([names(page), page.window], [["shop/web-2"], { total: 3, offset: 1 }]);
    const around = await get(api, `${PODS}?sortBy=metadata.name&around=shop/web-2&limit=2`);
    assert.deepEqual([names(around), around.window], [["blog/web-1", "shop/web-2"], { total: 3, offset: 0 }]);
    const last = await get(api, `${PODS}?sortBy=metadata.name&around=shop/web-10&limit=2`);
    assert.deepEqual([names(last), last.window], [["shop/web-2", "shop/web-10"], { total: 3, offset: 1 }]);
    for (const limit of ["", "&limit=0"]) {
      const all = await get(api, `${PODS}?sortBy=metadata.name&around=shop/web-10${limit}`);
      assert.deepEqual([names(all).length, all.window], [3, { total: 3, offset: 0 }], limit);
    }
    const status = await get(api, `${PODS}?sortBy=metadata.name&around=shop/none&limit=2`, { status: 404 });
    assert.match(status.message, /^around: "shop\/none" is none of the objects that are selected$/);
    assert.deepEqual(names(await get(api, `${PODS}?sortBy=metadata.name&offset=99`)), []);
  });

  it("have no rows behind the last one, also when there is one more than before", async () => {
    const { api, informer } = apiOf([pod("a/1", 1), pod("a/2", 2)]);
    const path = `${PODS}?sortBy=metadata.name&offset=9&limit=3`;
    assert.deepEqual((await get(api, path)).window, { total: 2, offset: 2 });
    informer.put(pod("a/0", 1_001));
    const { items, window } = await get(api, path);
    assert.deepEqual([items, window], [[], { total: 3, offset: 3 }]);
  });

  it("are sorted by the columns of a Table, an age by the time of creation", async () => {
    const at = (creationTimestamp: string, name: string): TestObject => ({
      ...pod(name, 1),
      metadata: { ...pod(name, 1).metadata, creationTimestamp },
    });
    const { api } = apiOf([
      at("2026-01-01T00:00:00Z", "a/old"),
      at("2026-01-03T00:00:00Z", "a/new"),
      at("2026-01-02T00:00:00Z", "a/mid"),
    ]);
    const table = await get(api, `${PODS}?sortBy=column(Age)&limit=2`, { accept: TABLE });
    assert.deepEqual(table.rows.map(({ cells }: Json) => cells[0]), ["new", "mid"]);
    assert.deepEqual(table.window, { total: 3, offset: 0 });
    const status = await get(api, `${PODS}?sortBy=column(Nope)`, { status: 400 });
    assert.match(status.message, /there is no column "nope"; the columns are Name, Ready, Status/);
    assert.equal(status.details.causes[0].field, "sortBy");
  });

  it("sort durations by their length", async () => {
    const job = (name: string, completionTime: string) =>
      object(name, 1, { spec: {}, status: { startTime: "2026-01-01T00:00:00Z", completionTime } });
    const objects = [
      job("a/days", "2026-01-03T01:00:00Z"),
      job("a/minutes", "2026-01-01T00:05:30Z"),
      job("a/hours", "2026-01-01T03:20:00Z"),
      job("a/seconds", "2026-01-01T00:00:45Z"),
      job("a/year", "2028-01-03T00:00:00Z"),
    ];
    const informer = FakeInformer.with(objects, 1_000);
    const jobs = readApi({ resources: [{ informer, resource: "batch/v1/jobs" }], allowAnonymous: true });
    assert.deepEqual(
      names(await get(jobs, "/apis/batch/v1/jobs?sortBy=column(Duration)")),
      ["a/seconds", "a/minutes", "a/hours", "a/days", "a/year"],
    );
  });

  it("sort ages by times, also those that have come since the order was made, and those within an hour", async () => {
    const event = (name: string, lastTimestamp: string, version = 1) =>
      object(name, version, { kind: "Event", lastTimestamp });
    const objects = [
      event("a/b", "2026-01-01T10:00:30Z"),
      event("a/c", "2026-01-01T10:00:10Z"),
      event("a/a", "2026-01-01T10:00:20Z"),
    ];
    const informer = FakeInformer.with(objects, 1_000);
    const clock = new FakeClock(Date.parse("2026-01-02T10:00:00Z"));
    const events = readApi({ resources: [{ informer, resource: "v1/events" }], allowAnonymous: true, clock });
    const order = async () => names(await get(events, "/api/v1/events?sortBy=column(Last Seen)"));
    assert.deepEqual(await order(), ["a/b", "a/a", "a/c"]);
    informer.put(event("a/d", "2026-01-02T10:00:30Z", 1_001));
    informer.put(event("a/z", "2026-01-02T10:00:40Z", 1_002));
    await clock.advance(45_000);
    assert.deepEqual(await order(), ["a/z", "a/d", "a/b", "a/a", "a/c"]);
  });

  it("sort columns of custom resources by what they show", async () => {
    const widget = (name: string, cpu: string, started: string) =>
      object(name, 1, {
        metadata: { ...object(name, 1).metadata, creationTimestamp: "2026-01-01T00:00:00Z" },
        status: { cpu, started },
      });
    const objects = [
      widget("a/1", "500m", "2026-01-03T00:00:00Z"),
      widget("a/2", "2", "2026-01-01T00:00:00Z"),
      widget("a/3", "100m", "2026-01-02T00:00:00Z"),
    ];
    const informer = FakeInformer.with(objects, 1_000);
    const printerColumns = [
      { name: "CPU", type: "string", jsonPath: ".status.cpu" },
      { name: "Age", type: "date", jsonPath: ".status.started" },
    ];
    const resource = {
      group: "shop.example.com",
      version: "v1",
      resource: "widgets",
      kind: "Widget",
      namespaced: true,
      printerColumns,
    };
    const api = readApi({ resources: [{ informer, resource }], allowAnonymous: true });
    const order = async (column: string) =>
      names(await get(api, `/apis/shop.example.com/v1/widgets?sortBy=column(${column})`));
    assert.deepEqual(await order("CPU"), ["a/3", "a/1", "a/2"]);
    assert.deepEqual(await order("Age"), ["a/1", "a/3", "a/2"]);
  });

  it("sort numbers with a remark in parentheses by the number, beside bare ones", async () => {
    const counts = [
      "5 (2d ago)",
      "7",
      "100",
      "20 (a) (b)",
      "-1 (x)",
      "0.5 (x)",
      "2Gi (x)",
      "7 x",
      "(3)",
      "a (b)",
      "a (c)",
    ];
    const objects = counts.map((text, i) => object(`a/${i}`, 1, { status: { text } }));
    const informer = FakeInformer.with(objects, 1_000);
    const printerColumns = [{ name: "Count", type: "string", jsonPath: ".status.text" }];
    const [group, version, kind] = ["shop.example.com", "v1", "Widget"];
    const resource = { group, version, resource: "widgets", kind, namespaced: true, printerColumns };
    const api = readApi({ resources: [{ informer, resource }], allowAnonymous: true });
    const { items } = await get(api, `/apis/${group}/${version}/widgets?sortBy=column(Count)`);
    assert.deepEqual(
      items.map(({ status }: { status: { text: string } }) => status.text),
      [
        "-1 (x)",
        "0.5 (x)",
        "5 (2d ago)",
        "7",
        "20 (a) (b)",
        "100",
        "2Gi (x)",
        "(3)",
        "7 x",
        "a (b)",
        "a (c)",
      ],
    );
  });

  it("sort restarts by their number, and readiness by its own", async () => {
    const running = (name: string, restartCount: number, finishedAt?: string) =>
      object(name, 1, {
        spec: { containers: [{ name: "c" }] },
        status: {
          phase: "Running",
          containerStatuses: [{
            name: "c",
            ready: true,
            restartCount,
            ...(finishedAt && { lastState: { terminated: { finishedAt } } }),
          }],
        },
      });
    const { api } = apiOf([
      running("a/five", 5, "1969-12-31T23:59:00Z"),
      running("a/none", 0),
      running("a/twelve", 12, "1969-12-01T00:00:00Z"),
      running("a/seven", 7),
      running("a/fifth", 5, "1969-12-01T00:00:00Z"),
    ]);
    assert.deepEqual(
      names(await get(api, `${PODS}?sortBy=column(Restarts):desc`)),
      ["a/twelve", "a/seven", "a/fifth", "a/five", "a/none"],
    );
  });

  it("are of informers with stores of their own as well, also in windows", async () => {
    const objects = new Map(["a/2", "a/1", "b/1"].map((key, i) => [key, pod(key, i + 1)]));
    const informer = {
      hasSynced: () => true,
      observe: () => () => {},
      status: () => ({ phase: "watching" }),
      indexer: {
        listKeys: () => [...objects.keys()],
        getByKey: (key: string) => objects.get(key),
        lastStoreSyncResourceVersion: () => "3",
      },
    };
    const resources = [{ informer, resource: "v1/pods" }];
    const api = readApi({ resources, allowAnonymous: true, clock: new FakeClock() });
    const sorted = ["a/1", "b/1", "a/2"];
    assert.deepEqual(names(await get(api, `${PODS}?sortBy=metadata.name`)), sorted);
    const screen = await Screen.open(api, "sortBy=metadata.name&limit=9");
    assert.deepEqual(screen.names(), sorted);
    await screen.cancel();
  });

  it("are refused in an order that cannot be read, and with tokens of other lists", async () => {
    for (const sortBy of ["", "a..b", "nope(a)", "metadata.name:down"]) {
      const status = await get(api, `${PODS}?sortBy=${encodeURIComponent(sortBy)}`, { status: 400 });
      assert.match(status.message, /^sortBy: /);
    }
    await get(api, `${PODS}?sortby=metadata.name`, { status: 400 });
    const { metadata } = await get(api, `${PODS}?sortBy=metadata.name&limit=1`);
    for (const path of [`${PODS}?limit=1`, `${PODS}?sortBy=status.phase&limit=1`]) {
      const status = await get(api, `${path}&continue=${metadata.continue}`, { status: 400 });
      assert.match(status.message, /^invalid continue token: it is of another list/);
    }
    const own = decodeContinue(metadata.continue);
    assert.ok("start" in own);
    for (const start of ["", "-1", "1.5", "a/1", "1000000000"]) {
      const token = encodeContinue({ ...own, start });
      await get(api, `${PODS}?sortBy=metadata.name&limit=1&continue=${token}`, { status: 400 });
    }
    const plain = await get(api, `${PODS}?limit=1`);
    await get(api, `${PODS}?sortBy=metadata.name&limit=1&continue=${plain.metadata.continue}`, {
      status: 400,
    });
  });

  it("continue with the present state once theirs is compacted", async () => {
    const { api, informer, clock } = apiOf([pod("a/1", 1), pod("a/2", 2), pod("a/3", 3)]);
    const { metadata } = await get(api, `${PODS}?sortBy=metadata.name&limit=1`);
    informer.put(pod("a/0", 1_001));
    await clock.advance(6 * 60_000);
    informer.put(pod("a/4", 1_002));
    const path = `${PODS}?sortBy=metadata.name&limit=2`;
    const status = await get(api, `${path}&continue=${metadata.continue}`, { status: 410 });
    const rest = await get(api, `${path}&continue=${status.metadata.continue}`);
    assert.deepEqual(names(rest), ["a/1", "a/2"]);
    assert.equal(rest.metadata.resourceVersion, "1002");
  });

  it("do not continue with a token of another history that has come to the same version", async () => {
    const { api, informer } = apiOf([pod("a/1", 1), pod("a/2", 2), pod("a/3", 3)]);
    const path = `${PODS}?sortBy=metadata.name&limit=1`;
    const { metadata } = await get(api, path);
    informer.relist([pod("a/2", 2), pod("a/3", 3), pod("a/4", 4)], 1_000); // of a restored server
    const status = await get(api, `${path}&continue=${metadata.continue}`, { status: 410 });
    assert.deepEqual(names(await get(api, `${path}&continue=${status.metadata.continue}`)), ["a/3"]);
  });

  it("are read again where the history begins again, at an earlier version", async () => {
    const { api, informer } = apiOf([pod("a/1", 1), pod("a/2", 2)]);
    const path = `${PODS}?sortBy=metadata.name`;
    assert.deepEqual(names(await get(api, path)), ["a/1", "a/2"]);
    informer.relist([pod("b/1", 3)], 500);
    const { items, metadata } = await get(api, path);
    assert.deepEqual([names({ items }), metadata.resourceVersion], [["b/1"], "500"]);
  });

  it("are of the asked state, also where the order is not made yet", async () => {
    const { api, informer } = apiOf([pod("a/1", 1, { order: 1 }), pod("a/2", 2, { order: 2 })]);
    informer.put(pod("a/0", 1_001, { order: 0 }));
    const path = `${PODS}?sortBy=status.order&limit=2&resourceVersionMatch=Exact&resourceVersion=1000`;
    assert.deepEqual(names(await get(api, path)), ["a/1", "a/2"]);
    assert.deepEqual(names(await get(api, `${path}&offset=1`)), ["a/2"]);
    await get(api, path.replace("=1000", "=900"), { status: 410 });
  });

  it("are of the asked state, also where that is later than what was read last", async () => {
    const { api, informer } = apiOf([pod("a/1", 1), pod("a/2", 2)]);
    await get(api, `${PODS}?sortBy=metadata.name`);
    informer.put(pod("a/0", 1_001));
    informer.put(pod("a/3", 1_002));
    informer.put(pod("a/1", 1_003, { phase: "Running" }));
    const path = `${PODS}?sortBy=metadata.name&resourceVersionMatch=Exact&resourceVersion=1001`;
    const { items } = await get(api, path);
    assert.deepEqual(names({ items }), ["a/0", "a/1", "a/2"]);
    assert.equal(items[1].status.phase, undefined);
  });

  it("are pages of one state, whatever changes meanwhile", async () => {
    const change = fc.record({
      name: fc.integer({ min: 0, max: 30 }),
      restarts: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
      kind: fc.constantFrom("put", "put", "remove", "relist"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 60 }),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom("status.restarts", "status.restarts:desc"),
        fc.integer({ min: 0, max: 5 }),
        async (changes, limit, sortBy, pause) => {
          let version = 100;
          const { api, informer } = apiOf([], version);
          const content = new Map<string, TestObject>();
          const write = changesOf(informer, content);
          const apply = ({ name, restarts, kind }: typeof changes[number]) => {
            const key = `a/p-${name}`;
            version++;
            write(kind, key, pod(key, version, restarts === undefined ? {} : { restarts }));
          };
          const half = changes.length >> 1;
          changes.slice(0, half).forEach(apply);
          const sorted = () => {
            const value = ({ status }: TestObject) => (status as { restarts?: number }).restarts;
            const sign = sortBy.endsWith(":desc") ? -1 : 1;
            return [...content].sort(([a, x], [b, y]) => {
              const [i, j] = [value(x), value(y)];
              if (i !== j) return i === undefined ? 1 : j === undefined ? -1 : sign * (i - j);
              return a < b ? -1 : 1;
            }).map(([key]) => key);
          };
          const expected = sorted();
          const path = `${PODS}?sortBy=${sortBy}&limit=${limit}`;
          const found: string[] = [];
          const rest = changes.slice(half);
          let page = await get(api, path);
          const { resourceVersion } = page.metadata;
          for (;;) {
            found.push(...names(page));
            assert.equal(page.metadata.resourceVersion, resourceVersion);
            assert.equal(page.window.total, expected.length);
            if (page.metadata.continue === undefined) break;
            rest.splice(0, pause).forEach(apply);
            page = await get(api, `${path}&continue=${page.metadata.continue}`);
          }
          assert.deepEqual(found, expected);
          rest.forEach(apply);
          assert.deepEqual(names(await get(api, `${PODS}?sortBy=${sortBy}`)), sorted());
        },
      ),
      propertyOptions(100),
    );
  });
});
