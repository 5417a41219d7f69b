import type { KubernetesObject } from "@listwatch/cache";
import { serve, type Served } from "@listwatch/cache/cli";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { connect, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// Each as every type of column.
const PATHS = [
  ".spec.value",
  ".spec.map",
  ".spec.list",
  ".spec.list[0]",
  ".spec.list[-1]",
  ".spec.list[1:]",
  ".spec.list[0:4:2]",
  ".spec.list[7]",
  ".spec.list[*]",
  ".spec.list[1,0]",
  ".spec.missing.deeper",
  ".spec.map.a\\.b/c",
  ".spec.map['a\\.b/c']",
  ".spec.map['plain']",
  ".spec.map.*",
  '.spec.conditions[?(@.type=="Ready")].status',
  ".spec.conditions[?(@.type=='Ready')].since",
  '.spec.conditions[?(@.type != "Ready")].status',
  ".spec.conditions[?(@.weight>1)].type",
  ".spec.conditions[?(@.weight<=1)].type",
  '.spec.conditions[?(@.weight=="1")].type',
  ".spec.conditions[?(@.isNew==true)].type",
  ".spec.conditions[?(@.since)].type",
  ".spec.value[?(@.x==1)]",
  "..since",
  ".metadata.name",
  ".metadata.creationTimestamp",
  ".metadata.labels",
  ".",
];
const TYPES = ["string", "integer", "number", "boolean", "date"];

const VALUES: Record<string, unknown> = {
  text: 'plain <text> & "quotes"',
  empty: "",
  integer: 42,
  negative: -7,
  fraction: 2.5,
  tiny: 0.000012,
  huge: 1e22,
  yes: true,
  no: false,
  null: null,
  map: { b: 1, a: "<x>", c: [true, null] },
  list: [1, "two", { three: 3 }],
  time: "2026-01-02T03:04:05Z",
  offset: "2026-01-02T03:04:05.25+02:00",
  future: "2999-01-02T03:04:05Z",
  "no-time": "2026-02-30T03:04:05Z",
  "no-hour": "2026-02-03T24:00:00Z",
  "zero-time": "0001-01-01T00:00:00Z",
};

describe("`serve`, custom resources of a real API server", () => {
  let connection: TestConnection;
  let group: string;
  let namespace: string;
  let served: Served;
  before(async () => {
    connection = await connect();
    [namespace] = await connection.createNamespaces("columns");
    group = `${connection.uniqueName("columns")}.example.com`;
    const columns = PATHS.flatMap((jsonPath, i) =>
      TYPES.map((type) => ({ name: `c${i}-${type}`, type, jsonPath }))
    );
    await define("gauges", [
      {
        name: "Wide",
        type: "string",
        jsonPath: ".spec.value",
        priority: 1,
        description: "Of the value",
        format: "byte",
      },
      ...columns,
    ]);
    await define("plains", []);
    await define("brokens", [
      { name: "Good", type: "string", jsonPath: ".spec.value" },
      { name: "Bad", type: "string", jsonPath: ".spec[" },
      { name: "After", type: "string", jsonPath: ".spec.value" },
    ]);
    const conditions = [
      { type: "Ready", status: "True", since: "2026-01-02T03:04:05Z", weight: 1, isNew: true },
      { type: "Other", status: "False", weight: 2 },
    ];
    const map = { "a.b/c": "dotted", plain: 3 };
    for (const [name, value] of Object.entries(VALUES)) {
      const list = [value, "b", 3, 4.5];
      await create("gauges", name, { value, list, map, conditions });
    }
    await create("gauges", "bare", {});
    await create("gauges", "odd", { list: "text", conditions: { type: "Ready" }, map: [1] });
    await create("gauges", "short", { list: [], conditions: [], map: { x: 1 } });
    await create("plains", "one", {});
    await create("brokens", "one", { value: "v" });
    const jsonPaths = [".spec.color", ".spec.size", ".spec.isOn"];
    await define("lamps", [], jsonPaths.map((jsonPath) => ({ jsonPath })));
    await create("lamps", "red", { color: "red", size: 3, isOn: true });
    await create("lamps", "blue", { color: "blue", size: 30, isOn: false });
    await create("lamps", "bare", {});
    served = await serve({
      source: { kind: "kubeconfig", path: connection.kubeconfigPath },
      resources: ["gauges", "plains", "brokens", "lamps"].map((plural) => `${plural}.${group}`),
      port: 0,
    });
    await served.synced(AbortSignal.timeout(30_000));
  });
  after(async () => {
    await served?.stop();
    await connection?.[Symbol.asyncDispose]();
  });

  for (const plural of ["gauges", "plains", "brokens"]) {
    it(`has the columns and cells of the definition of ${plural}`, { timeout: 60_000 }, async () => {
      const [expected, actual] = await both(plural);
      assert.ok(expected.rows.length > 0);
      assert.deepEqual(columns(actual), columns(expected));
      for (const [i, { cells, object }] of expected.rows.entries()) {
        for (const [c, cell] of cells.entries()) {
          const { name, type } = expected.columnDefinitions[c];
          const jsonPath = plural === "gauges" ? PATHS[Math.floor((c - 2) / TYPES.length)] : undefined;
          // A map has its values in no order; an integer beyond 64 bits depends on the server's processor.
          if (jsonPath === ".spec.map.*") continue;
          if (object.metadata.name === "huge" && type === "integer") continue;
          const what = `${object.metadata.name}, ${name} ${jsonPath}`;
          assert.deepEqual(withoutSeconds(actual.rows[i].cells[c]), withoutSeconds(cell), what);
        }
      }
    });
  }

  it("follows changes of the definition", { timeout: 60_000 }, async () => {
    const definitions = connection.cluster.resource<KubernetesObject>(
      "apiextensions.k8s.io/v1/customresourcedefinitions",
    );
    const name = `plains.${group}`;
    const definition = await definitions.get(name) as Json;
    const [version] = definition.spec.versions;
    version.additionalPrinterColumns = [{ name: "New", type: "string", jsonPath: ".spec.fresh" }];
    await definitions.patch(name, { spec: { versions: [version] } });
    await eventually(async () => {
      const [expected, actual] = await both("plains");
      assert.deepEqual(expected.columnDefinitions.map((column: Json) => column.name), ["Name", "New"]);
      assert.deepEqual(columns(actual), columns(expected));
    });
  });

  it("has the selectable fields of the definition in lists", { timeout: 60_000 }, async () => {
    const selectors = [
      "spec.color=red",
      "spec.color!=red",
      "spec.color=",
      "spec.size=3",
      "spec.size!=3,spec.color=blue",
      "spec.isOn=true",
      "spec.isOn=false",
      "metadata.name=red,spec.color=red",
      "spec.other=1",
      "status.phase!=x",
    ];
    for (
      const [plural, fieldSelector] of selectors.map((selector) => ["lamps", selector]).concat([[
        "plains",
        "spec.x=1",
      ]])
    ) {
      const query = `?${new URLSearchParams({ fieldSelector })}`;
      const answers = await Promise.all([fromServer, fromCache].map(async (from) => {
        const response = await from(path(plural) + query);
        const { code, message, items } = await response.json();
        return { code, message, names: items?.map((item: Json) => item.metadata.name) };
      }));
      assert.deepEqual(answers[1], answers[0], fieldSelector);
    }
  });

  for (const isStreamed of [false, true]) {
    const what = isStreamed ? "streamed lists and their watches" : "watches";
    it(`has the selectable fields of the definition in ${what}`, { timeout: 60_000 }, async () => {
      const { metadata } = await connection.cluster.request(path("lamps")) as Json;
      const query = new URLSearchParams({
        watch: "1",
        fieldSelector: "spec.color=red",
        ...(isStreamed
          ? { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan", allowWatchBookmarks: "true" }
          : { resourceVersion: metadata.resourceVersion }),
      });
      await eventually(async () => {
        const { metadata: served } = await (await fromCache(path("lamps"))).json();
        assert.equal(served.resourceVersion, metadata.resourceVersion);
      });
      const watches = await Promise.all(
        [fromServer, fromCache].map(async (from) => lines((await from(`${path("lamps")}?${query}`)).body!)),
      );
      const lamps = connection.cluster.resource<Json>(
        { group, version: "v1", resource: "lamps" },
        { namespace },
      );
      await lamps.patch("red", { spec: { size: 4 } });
      await lamps.patch("red", { spec: { color: "green" } });
      await lamps.patch("red", { spec: { size: 5 } });
      await lamps.patch("blue", { spec: { color: "red" } });
      await lamps.patch("blue", { spec: { color: "blue" } });
      await lamps.patch("red", { spec: { color: "red", size: 3 } });
      const count = 5 + (isStreamed ? 2 : 0);
      const [expected, actual] = await Promise.all(watches.map(async (watch) => {
        const events = [];
        while (events.length < count) events.push(JSON.parse((await watch.next()).value!));
        await watch.return(undefined);
        return events;
      }));
      const types = expected.map(({ type }) => type);
      const changes = ["MODIFIED", "DELETED", "ADDED", "DELETED", "ADDED"];
      assert.deepEqual(types, isStreamed ? ["ADDED", "BOOKMARK", ...changes] : changes);
      for (const [i, event] of expected.entries()) {
        if (event.type === "BOOKMARK") assert.equal(actual[i].type, "BOOKMARK");
        else assert.deepEqual(actual[i], event);
      }
    });
  }

  it(
    "lists custom resources in discovery as the API server does, read-only and with the parameters of screens",
    { timeout: 60_000 },
    async () => {
      const documents = await Promise.all(
        [fromServer, fromCache].map(async (from) => (await from(`/apis/${group}/v1`)).json()),
      );
      const [expected, actual] = documents.map(({ resources }) =>
        resources.map(({ verbs: _, storageVersionHash: __, ...rest }: Json) => rest)
          .sort((a: Json, b: Json) => a.name < b.name ? -1 : 1)
      );
      assert.deepEqual(actual, expected);
      const { items } = await (await fromCache("/apis", AGGREGATED)).json();
      const [entry] = items.find(({ metadata }: Json) => metadata.name === group).versions[0].resources;
      assert.ok(entry["x-listwatch"].parameters.includes("sortBy"));
    },
  );

  function fromServer(path: string): Promise<Response> {
    return connection.ask(path);
  }

  async function fromCache(path: string, accept = "application/json"): Promise<Response> {
    return await fetch(served.url + path, { headers: { Accept: accept } });
  }

  async function define(
    plural: string,
    additionalPrinterColumns: unknown[],
    selectableFields: unknown[] = [],
  ): Promise<void> {
    const definitions = connection.cluster.resource<Json>(
      "apiextensions.k8s.io/v1/customresourcedefinitions",
    );
    const name = `${plural}.${group}`;
    const kind = plural.slice(0, 1).toUpperCase() + plural.slice(1, -1);
    const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const properties = { color: { type: "string" }, size: { type: "integer" }, isOn: { type: "boolean" } };
    const spec = plural === "lamps" ? { properties: { spec: { ...anything, properties } } } : {};
    const schema = { openAPIV3Schema: { ...anything, ...spec } };
    await definitions.create({
      metadata: { name },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural, kind, shortNames: [plural.slice(0, 2)], categories: ["all", "odds"] },
        versions: [{
          name: "v1",
          served: true,
          storage: true,
          schema,
          additionalPrinterColumns,
          selectableFields,
        }],
      },
    });
    connection.onClose(() => definitions.delete(name));
    await eventually(() => connection.cluster.request(path(plural)));
  }

  async function create(plural: string, name: string, spec: unknown): Promise<void> {
    const kind = plural.slice(0, 1).toUpperCase() + plural.slice(1, -1);
    const body = { apiVersion: `${group}/v1`, kind, metadata: { name, namespace }, spec };
    await eventually(() => connection.cluster.request(path(plural), { method: "POST", body }));
  }

  function path(plural: string): string {
    return `/apis/${group}/v1/namespaces/${namespace}/${plural}`;
  }

  async function both(plural: string): Promise<[Json, Json]> {
    const headers = { Accept: TABLE };
    const expected = await connection.cluster.request(path(plural), { headers });
    const response = await fetch(served.url + path(plural), { headers });
    assert.equal(response.status, 200);
    return [expected, await response.json()];
  }
});

// The descriptions of names and ages are this library's own.
function columns({ columnDefinitions }: Json): unknown {
  return columnDefinitions.map((column: Json) =>
    ["Name", "Age"].includes(column.name) ? { ...column, description: "" } : column
  );
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined, undefined> {
  let rest = "";
  for await (
    const chunk of body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
  ) {
    const found = (rest + chunk).split("\n");
    rest = found.pop()!;
    yield* found;
  }
}

/** A cell but for the seconds of an age. */
function withoutSeconds(cell: unknown): unknown {
  return typeof cell === "string" ? cell.replace(/^\d+s$/, "<seconds>") : cell;
}
