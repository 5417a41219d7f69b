import assert from "node:assert/strict";
import type { ApiResource, PrinterColumn } from "@listwatch/cache/hono";
import { describe, it } from "node:test";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get, type Json, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const NOW = Date.parse("2026-11-21T12:00:00Z");
const PATH = "/apis/example.com/v1/widgets";

function apiOf(more: Partial<ApiResource>, objects = [object("shop/w", 5, { spec: { color: "red" } })]) {
  const informer = FakeInformer.with(objects, 10);
  const resource: ApiResource = { ...WIDGET_RESOURCE, ...more };
  const clock = new FakeClock(NOW);
  return {
    informer,
    resource,
    api: readApi({ resources: [{ informer, resource }], allowAnonymous: true, clock }),
  };
}

async function cellsOf(type: string, ...values: unknown[]): Promise<unknown[]> {
  const { api } = apiOf(
    { printerColumns: [{ name: "V", type, jsonPath: ".spec.value" }] },
    values.map((value, i) => object(`shop/w${100 + i}`, i + 1, { spec: { value } })),
  );
  return (await get(api, PATH, { accept: TABLE })).rows.map((row: Json) => row.cells[1]);
}

describe("customPrinter", () => {
  it("has the definition's columns after the name", async () => {
    const printerColumns: PrinterColumn[] = [
      { name: "Color", type: "string", jsonPath: ".spec.color" },
      {
        name: "Size",
        type: "integer",
        jsonPath: ".spec.size",
        format: "int32",
        priority: 1,
        description: "How big",
      },
    ];
    const table = await get(apiOf({ printerColumns }).api, PATH, { accept: TABLE });
    assert.deepEqual(table.columnDefinitions.slice(1), [
      {
        name: "Color",
        type: "string",
        format: "",
        description: "Custom resource definition column (in JSONPath format): .spec.color",
        priority: 0,
      },
      { name: "Size", type: "integer", format: "int32", description: "How big", priority: 1 },
    ]);
    assert.equal(table.columnDefinitions[0].format, "name");
    assert.deepEqual(table.rows[0].cells, ["w", "red", null]);
  });

  it("shows the age if the definition has no columns", async () => {
    const table = await get(apiOf({ printerColumns: [] }).api, PATH, { accept: TABLE });
    assert.deepEqual(table.columnDefinitions.map((c: Json) => [c.name, c.type]), [["Name", "string"], [
      "Age",
      "date",
    ]]);
  });

  it("leaves out the columns from the first one whose path cannot be read", async () => {
    const column = (name: string, jsonPath: string) => ({ name, type: "string", jsonPath });
    const printerColumns = [column("A", ".spec.color"), column("B", ".spec["), column("C", ".spec.color")];
    const table = await get(apiOf({ printerColumns }).api, PATH, { accept: TABLE });
    assert.deepEqual(table.columnDefinitions.map((c: Json) => c.name), ["Name", "A"]);
  });

  it("shows numbers as texts with an exponent where Go does", async () => {
    const values = [0.0001, 0.00009, 999_999.5, 1_234_567.5, -12_345_678.9, 1_234_567, 1e20];
    const texts = ["0.0001", "9e-05", "999999.5", "1.2345675e+06", "-1.23456789e+07", "1234567"];
    assert.deepEqual(await cellsOf("string", ...values), [...texts, "1e+20"]);
  });

  it("shows any value as a text, as Go prints it", async () => {
    const values = ["a", "", 4, 2.5, 0.000012, 1e22, true, null, [1, "<"], { b: 1, a: { d: 1, c: "&" } }];
    assert.deepEqual(await cellsOf("string", ...values, undefined), [
      "a",
      "",
      "4",
      "2.5",
      "1.2e-05",
      "1e+22",
      "true",
      "<no value>",
      '[1,"\\u003c"]',
      '{"a":{"c":"\\u0026","d":1},"b":1}',
      null,
    ]);
  });

  it("shows null for a value of another type", async () => {
    const values = ["1", 1, 1.9, -1.9, true, null, {}];
    assert.deepEqual(await cellsOf("integer", ...values), [null, 1, 1, -1, null, null, null]);
    assert.deepEqual(await cellsOf("number", ...values), [null, 1, 1.9, -1.9, null, null, null]);
    assert.deepEqual(await cellsOf("boolean", ...values), [null, null, null, null, true, null, null]);
    assert.deepEqual(await cellsOf("date", ...values.slice(1)), [null, null, null, null, null, null]);
    assert.deepEqual(await cellsOf("surprise", ...values.slice(0, 2)), [null, null]);
  });

  it("shows null for a value that does not fit its path", async () => {
    const jsonPath = '.spec.color[?(@.name=="x")].value';
    const printerColumns = [{ name: "V", type: "string", jsonPath }];
    const table = await get(apiOf({ printerColumns }).api, PATH, { accept: TABLE });
    assert.deepEqual(table.rows[0].cells, ["w", null]);
  });

  it("shows the age of a time", async () => {
    assert.deepEqual(
      await cellsOf(
        "date",
        "2026-11-21T11:59:00Z",
        "2026-11-21T13:58:00.5+02:00",
        "2026-11-21T13:58:00,5+02:00",
        "2026-11-22T12:00:00Z",
        "",
        "null",
        "0001-01-01T00:00:00Z",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-02-03T24:00:00Z",
        "2026-11-21",
        "2024-02-29T12:00:00Z",
      ),
      [
        "60s",
        "119s",
        "119s",
        "<invalid>",
        "<unknown>",
        "<unknown>",
        "<unknown>",
        "<invalid>",
        "<invalid>",
        "<invalid>",
        "<invalid>",
        "2y266d",
      ],
    );
  });

  it("is read again for each request, so that descriptions may change", async () => {
    const { api, resource } = apiOf({});
    const columnsOf = async () =>
      (await get(api, PATH, { accept: TABLE })).columnDefinitions.map((c: Json) => c.name);
    assert.deepEqual(await columnsOf(), ["Name", "Age"]);
    Object.assign(resource, { printerColumns: [{ name: "Color", type: "string", jsonPath: ".spec.color" }] });
    assert.deepEqual(await columnsOf(), ["Name", "Color"]);
  });
});

describe("fieldRules", () => {
  const selector = (text: string) => `${PATH}?fieldSelector=${encodeURIComponent(text)}`;

  it("refuse fields that are not selectable, with kube-apiserver's text", async () => {
    const refusal = async (more: Partial<ApiResource>, text: string) =>
      (await get(apiOf(more).api, selector(text), { status: 400 })).message;
    assert.equal(await refusal({}, "spec.color=red"), "field label not supported: spec.color");
    assert.equal(
      await refusal({ fieldSelectors: ["metadata.name", "spec.color"] }, "metadata.namespace=x"),
      "field label not supported: metadata.namespace",
    );
    const { api } = apiOf({ namespaced: false });
    assert.equal(
      (await get(api, selector("metadata.namespace=x"), { status: 400 })).message,
      "field label not supported: metadata.namespace",
    );
  });

  it("select by the fields of a definition, in watches too", async () => {
    const { api, informer } = apiOf({ fieldSelectors: ["metadata.name", "spec.color"] });
    assert.equal((await get(api, selector("spec.color=red"))).items.length, 1);
    assert.equal((await get(api, selector("spec.color!=red"))).items.length, 0);
    const watch = await WatchReader.open(api, `${selector("spec.color=red")}&watch=1&resourceVersion=10`);
    informer.put(object("shop/w", 11, { spec: { color: "blue" } }));
    informer.put(object("shop/w", 12, { spec: { color: "red" } }));
    const [left, entered] = await watch.events(2);
    assert.deepEqual([left.type, left.object.spec.color, left.object.metadata.resourceVersion], [
      "DELETED",
      "red",
      "11",
    ]);
    assert.deepEqual([entered.type, entered.object.metadata.resourceVersion], ["ADDED", "12"]);
  });
});
