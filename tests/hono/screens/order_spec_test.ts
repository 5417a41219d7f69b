import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { aggregate, orderSpecOf, sortText } from "../../../src/hono/screens/order_spec.ts";
import { printerOf } from "../../../src/hono/tables/printers.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import { parseScreenQuery } from "../../../src/protocol/screen_query.ts";
import { readPaths } from "../../../src/protocol/screen_syntax.ts";
import { cutPaths } from "../../../src/protocol/screen_values.ts";
import { FieldCut } from "../../../src/text/field_cut.ts";
import { propertyOptions } from "../../property.ts";

const printer = printerOf({ group: "", version: "v1", resource: "pods", kind: "Pod" } as ApiResource);

function specOf(sortBy: string) {
  const query = parseScreenQuery(new URLSearchParams({ sortBy }), { verb: "list", shape: "object" });
  assert.ok(query !== undefined && "sortBy" in query);
  const spec = orderSpecOf(query.sortBy!, { printer, nowMs: 1_800_000_000_000 });
  assert.ok("textOf" in spec);
  return spec;
}

const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const time = fc.constantFrom("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
const word = fc.constantFrom(
  "Running",
  "Pending",
  "Failed",
  "Succeeded",
  "Completed",
  "NodeLost",
  "Error",
  "",
);
const state = fc.record({
  waiting: some(fc.record({ reason: word })),
  running: some(fc.constant({})),
  terminated: some(fc.record({ exitCode: fc.nat(2), reason: some(word), finishedAt: time })),
});
const container = fc.record({
  name: fc.constantFrom("a", "b", "c"),
  restartPolicy: some(fc.constantFrom("Always", "Never")),
});
const containerStatus = fc.record({
  name: fc.constantFrom("a", "b", "c"),
  ready: fc.boolean(),
  started: some(fc.boolean()),
  restartCount: some(fc.nat(3)),
  state: some(state),
  lastState: some(state),
});
const condition = fc.record({
  type: fc.constantFrom("Ready", "Initialized", "PodScheduled"),
  status: fc.constantFrom("True", "False"),
  reason: some(fc.constantFrom("SchedulingGated", "Other")),
});
const aPod = fc.record({
  metadata: fc.record({
    name: fc.constantFrom("web-1", "web-10"),
    creationTimestamp: some(time),
    deletionTimestamp: some(time),
  }),
  spec: some(fc.record({
    nodeName: some(word),
    containers: fc.array(container, { maxLength: 2 }),
    initContainers: some(fc.array(container, { maxLength: 2 })),
    readinessGates: some(fc.array(fc.record({ conditionType: fc.constant("Ready") }), { maxLength: 2 })),
  })),
  status: some(fc.record({
    phase: some(word),
    reason: some(word),
    nominatedNodeName: some(word),
    podIPs: some(fc.constant([{ ip: "10.0.0.1" }])),
    conditions: some(fc.array(condition, { maxLength: 3 })),
    initContainerStatuses: some(fc.array(containerStatus, { maxLength: 2 })),
    containerStatuses: some(fc.array(containerStatus, { maxLength: 2 })),
  })),
});

describe("orderSpecOf", () => {
  it("names all fields of which the place of an object is made", () => {
    const orders = [
      ...printer.columns.map(({ name }) => `column(${name})`),
      "status.conditions[type=Ready].status,spec.containers[].name:desc",
      "count(status.containerStatuses[]),max(status.containerStatuses[].restartCount)",
      "status.conditions[type=Ready].reason,status.conditions[type=Initialized].status",
    ].map(specOf);
    const cuts = orders.map(({ reads }) => new FieldCut(cutPaths(reads!)));
    fc.assert(
      fc.property(aPod, (pod) => {
        const json = JSON.stringify(pod);
        for (const [i, order] of orders.entries()) {
          const cut = JSON.parse(cuts[i].text(json)!);
          assert.equal(order.textOf(cut), order.textOf(JSON.parse(json)), `${order.name} of ${json}`);
        }
      }),
      propertyOptions(500),
    );
  });

  it("is by the first value that there is, of several", () => {
    const { textOf } = specOf("spec.tolerations[].key");
    const keyed = (...keys: (string | null)[]) =>
      textOf({ spec: { tolerations: keys.map((key) => ({ key })) } } as KubernetesObject);
    assert.equal(keyed(null, "b", "a"), keyed("b"));
    assert.ok(keyed("b") < keyed(null), "none is last");
    const { textOf: least } = specOf("min(spec.tolerations[].seconds)");
    const seconds = (...all: number[]) =>
      least({ spec: { tolerations: all.map((each) => ({ seconds: each })) } } as KubernetesObject);
    assert.ok(seconds(7, 5) < seconds(6) && seconds(6) < seconds(), "none has no least value");
    const counted = specOf("count(spec.tolerations[].key)");
    const count = (...keys: (string | null)[]) =>
      counted.textOf({ spec: { tolerations: keys.map((key) => ({ key })) } } as KubernetesObject);
    assert.equal(count(null, "b"), count("b"));
    assert.ok(count("b") < count("a", "b"));
  });

  it("is by the least, the greatest and the sum of numbers and times, where there are some", () => {
    const of = (sortBy: string) => {
      const { textOf } = specOf(sortBy);
      return (...values: unknown[]) => textOf({ status: { values } } as unknown as KubernetesObject);
    };
    const [min, max, sum] = ["min", "max", "sum"].map((type) => of(`${type}(status.values[])`));
    const [early, late] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"];
    assert.ok(max(late, early) > max(early) && min(late, early) < min(late), "times");
    assert.ok(max(1, 2e301) > max(1) && min(-2e301, 1) < min(1), "numbers that no sum has");
    assert.equal(sum(2e301, 1), sum(1));
    assert.equal(sum(1, "text", 2, "100m"), sum(3.1));
    assert.deepEqual([min(3, "a", 2), max(3, "a", 2)], [sum(2), sum(3)], "texts have no part in it");
    assert.ok(sum() > sum(0), "a sum of nothing is last");
  });

  it("takes names for texts, also those of a column", () => {
    const text = sortText("1e3", { isDescending: false, isText: true });
    for (const field of ["name", "namespace", "uid"]) {
      const object = { metadata: { [field]: "1e3" } };
      assert.equal(specOf(`metadata.${field}`).textOf(object), text, field);
    }
    assert.equal(specOf("column(Name)").textOf({ metadata: { name: "1e3" } }), text);
    assert.notEqual(specOf("spec.nodeName").textOf({ spec: { nodeName: "1e3" } } as KubernetesObject), text);
  });

  it("reads all of an object where one of its columns does not say what it reads", () => {
    const query = parseScreenQuery(new URLSearchParams({ sortBy: "column(Name),spec.nodeName" }), {
      verb: "list",
      shape: "object",
    });
    assert.ok(query !== undefined && "sortBy" in query);
    const { columns, cells } = printer;
    const spec = orderSpecOf(query.sortBy!, { printer: { columns, cells }, nowMs: 0 });
    assert.ok("textOf" in spec);
    assert.equal(spec.reads, undefined);
  });
});

describe("orderSpecOf, a column of which the cell is made alone", () => {
  it("has the order of the cells of whole rows", () => {
    const at = printer.columns.findIndex(({ name }) => name === "Restarts");
    assert.ok(printer.each?.[at] !== undefined);
    const spec = specOf("column(Restarts)");
    const odd = fc.constantFrom<unknown>(null, 7, "seven", [null], [{ restartCount: -3 }, {
      restartCount: 1e21,
    }]);
    fc.assert(
      fc.property(aPod, some(odd), some(odd), (pod, containerStatuses, initContainerStatuses) => {
        const status = {
          ...pod.status,
          ...(containerStatuses !== undefined && { containerStatuses }),
          ...(initContainerStatuses !== undefined && { initContainerStatuses }),
        };
        const object = JSON.parse(JSON.stringify({ ...pod, status })) as KubernetesObject;
        const cell = String(printer.cells(object, 1_800_000_000_000)[at]).split(" ")[0];
        const value = cell === "<unknown>" ? undefined : Number(cell);
        assert.equal(spec.textOf(object), sortText(value, { isDescending: false }), JSON.stringify(object));
      }),
      propertyOptions(500),
    );
  });
});

describe("readApi, sortBy over texts", () => {
  it("has the order that the objects have", async () => {
    const orders = [
      ...printer.columns.map(({ name }) => `column("${name}"):desc`),
      "spec.nodeName,status.phase:desc",
      "metadata.name:desc,status.podIPs[].ip",
      "sum(status.containerStatuses[].restartCount),status.conditions[type=Ready].status",
    ];
    await fc.assert(
      fc.asyncProperty(fc.array(aPod, { maxLength: 12 }), async (pods) => {
        using server = new InMemoryApiServer();
        for (const [i, pod] of pods.entries()) {
          const metadata = { ...pod.metadata, name: `${pod.metadata.name}-${i}`, namespace: "shop" };
          server.create("v1/pods", { ...pod, metadata } as KubernetesObject);
        }
        const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
        const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
        await using _running = informer.start();
        await informer.synced();
        const resources = [{ informer, resource: "v1/pods" }];
        const api = readApi({ resources, allowAnonymous: true, freshness: "as-is" });
        const { items } = await (await api.request("/api/v1/pods")).json();
        for (const sortBy of orders) {
          const spec = specOf(sortBy);
          const places = new Map<string, string>();
          for (const item of items) {
            places.set(item.metadata.name, `${spec.textOf(item)}shop/${item.metadata.name}`);
          }
          const expected = [...places.keys()].sort((a, b) => places.get(a)! < places.get(b)! ? -1 : 1);
          const list = await (await api.request(`/api/v1/pods?sortBy=${encodeURIComponent(sortBy)}`)).json();
          assert.deepEqual(
            list.items.map(({ metadata }: KubernetesObject) => metadata!.name),
            expected,
            sortBy,
          );
        }
      }),
      propertyOptions(50),
    );
  });
});

describe("cutPaths", () => {
  it("are of all elements, without what another one has", () => {
    const of = (fields: string) => {
      const query = parseScreenQuery(new URLSearchParams({ groupBy: fields }), {
        verb: "list",
        shape: "object",
      });
      assert.ok(query !== undefined && "groupBy" in query);
      return cutPaths(query.groupBy!).map((path) =>
        path.map((name) => typeof name === "string" ? name : "[]")
      );
    };
    assert.deepEqual(of("a.b[type=x].c"), [["a", "b", "[]", "type"], ["a", "b", "[]", "c"]]);
    assert.deepEqual(of("a[],a.b,c.d,c"), [["a"], ["c"]]);
    assert.deepEqual(of('a["b.c"],a.b'), [["a", "b.c"], ["a", "b"]]);
  });
});

describe("aggregate", () => {
  it("leaves out of a sum what is so large or small that sums of it are no numbers", () => {
    const [path] = readPaths("spec.values[]", 1);
    const sum = (...values: number[]) => aggregate("sum", path, { spec: { values } });
    assert.deepEqual([sum(1, 2, -1e300), sum(1e301, 5), sum(5, -1e301)], [3 - 1e300, 5, 5]);
  });
});
