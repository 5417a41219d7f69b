import assert from "node:assert/strict";
import { parse } from "yaml";
import { nextTurn } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

function apiOf(count: number) {
  const objects = Array.from(
    { length: count },
    (_, i) =>
      object(`shop/a-${String(i).padStart(4, "0")}`, i + 1, {
        labels: { even: String(i % 2 === 0) },
        data: { text: `line\n  another ${"word ".repeat(40)}end\n`, empty: "" },
      }),
  );
  const informer = FakeInformer.with(objects, count);
  return readApi({ resources: [{ informer, resource: "v1/configmaps" }], allowAnonymous: true });
}

async function yaml(api: ReturnType<typeof apiOf>, path: string, as = ""): Promise<string> {
  const response = await api.request(path, { headers: { Accept: `application/yaml${as}` } });
  assert.equal(response.headers.get("Content-Type"), "application/yaml");
  return await response.text();
}

describe("readApi", () => {
  it("serves an object of 9,000 levels in every form, and what is beside it in the list", async () => {
    const deep = JSON.parse('{"a":'.repeat(9_000) + "1" + "}".repeat(9_000));
    const informer = FakeInformer.with([object("shop/a", 1, { deep }), object("shop/b", 2)], 2);
    const api = readApi({ resources: [{ informer, resource: "v1/configmaps" }], allowAnonymous: true });
    for (const path of ["/api/v1/configmaps", "/api/v1/namespaces/shop/configmaps/a"]) {
      for (const accept of ["application/json", "application/yaml", "application/json;pretty=1"]) {
        const response = await api.request(path, { headers: { Accept: accept } });
        const text = await response.text();
        assert.equal(response.status, 200, `${path} ${accept}`);
        assert.ok(text.length < 300_000, `${text.length} characters`);
        if (path.endsWith("configmaps")) assert.match(text, /name"?: ?"?b/);
        if (accept !== "application/yaml") JSON.parse(text);
      }
    }
  });
});

describe("readApi in YAML", () => {
  it("gives way while it writes a large list: some items in each turn, with gzip and without", async () => {
    for (const encoding of ["identity", "gzip"]) {
      const api = apiOf(1_000);
      const { parse: parseJson } = JSON;
      let [items, most, before] = [0, 0, 0];
      JSON.parse = (...args) => {
        items++;
        return parseJson(...args);
      };
      let length = 0;
      let isDone = false;
      try {
        const reading = (async () => {
          const headers = { Accept: "application/yaml", "Accept-Encoding": encoding };
          const response = await api.request("/api/v1/configmaps?resourceVersion=0", { headers });
          for await (const chunk of response.body!) length += chunk.byteLength;
        })().finally(() => isDone = true);
        while (!isDone) {
          before = items;
          await nextTurn();
          most = Math.max(most, items - before);
        }
        await reading;
      } finally {
        JSON.parse = parseJson;
      }
      assert.ok(items >= 1_000 && length > 1_000);
      assert.ok(most < 100, `${most} items in one turn`);
    }
  });

  it("serves an object, and why there is none, with sorted keys", async () => {
    const api = apiOf(1);
    const text = await yaml(api, "/api/v1/namespaces/shop/configmaps/a-0000");
    const json = await get(api, "/api/v1/namespaces/shop/configmaps/a-0000");
    assert.deepEqual(parse(text), json);
    assert.match(text, /^apiVersion: v1\ndata:\n {2}empty: ""\n {2}text: \|\n {4}line\n/);
    assert.equal(
      await yaml(api, "/api/v1/namespaces/shop/configmaps/x"),
      "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: x\nkind: Status\n" +
        'message: configmaps "x" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n',
    );
  });

  it("serves lists, also those that are written in several pieces, pages, metadata only and Tables", async () => {
    const shapes = [
      ["", "application/json"],
      [";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", undefined],
      [";as=Table;v=v1;g=meta.k8s.io", undefined],
    ] as const;
    for (const count of [0, 1, 500]) {
      const api = apiOf(count);
      for (const [as] of shapes) {
        for (const query of ["", "?limit=3", "?labelSelector=even%3Dtrue"]) {
          const path = `/api/v1/configmaps${query}`;
          const json = await get(api, path, { accept: `application/json${as}` });
          const text = await yaml(api, path, as);
          assert.match(text, /^apiVersion: /, "JSON is YAML, too");
          assert.deepEqual(parse(text, { maxAliasCount: 0 }), json);
        }
      }
    }
    assert.equal(
      await yaml(apiOf(0), "/api/v1/configmaps"),
      'apiVersion: v1\nitems: []\nkind: ConfigMapList\nmetadata:\n  resourceVersion: "0"\n',
    );
  });
});
