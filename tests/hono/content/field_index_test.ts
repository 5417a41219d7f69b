import assert from "node:assert/strict";
import { fieldIndex, type Indexers, labelIndexFunc, metaNamespaceIndex } from "@listwatch/cache";
import fc from "fast-check";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, names, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const apiOf = (informer: FakeInformer) =>
  readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });

const query = (fields: string, more = "") => `?${more}fieldSelector=${encodeURIComponent(fields)}`;

const INDEXERS: Indexers<TestObject, string> = {
  node: fieldIndex('spec["nodeName"]'),
  phase: fieldIndex("status.phase"),
  // Selectors read a default where this one is absent.
  host: fieldIndex("spec.hostNetwork"),
  image: fieldIndex("spec.containers[].image"),
  labels: labelIndexFunc(),
  namespace: metaNamespaceIndex,
};

const value = fc.constantFrom<unknown>("n1", "n2", "n2", "", "1", 1, 1.5, true, false, null, ["n1"], {
  n1: "n1",
});
const pod = fc.record({
  name: fc.constantFrom("shop/a", "shop/b", "shop/c", "blog/a", "blog/b", "blog/c"),
  spec: fc.record(
    {
      nodeName: value,
      hostNetwork: value,
      priority: value,
      containers: fc.array(fc.record({ image: value })),
    },
    { requiredKeys: [] },
  ),
  status: fc.option(fc.record({ phase: value }, { requiredKeys: [] }), { nil: undefined }),
});
const term = fc.tuple(
  fc.constantFrom(
    "spec.nodeName",
    "spec.nodeName",
    "status.phase",
    "spec.hostNetwork",
    "metadata.namespace",
    "metadata.name",
  ),
  fc.constantFrom("=", "==", "!="),
  fc.constantFrom("n1", "n2", "", "1", "1.5", "true", "false", "null", "shop", "a"),
).map((parts) => parts.join(""));

describe("A field selector with field indices", () => {
  it("may name the field of an index, which an API server would refuse", async () => {
    const pods = [
      object("shop/a", 1, { spec: { priorityClassName: "high", containers: [{ image: "i" }] } }),
      object("shop/b", 2, { spec: { priorityClassName: "low" } }),
    ];
    const indexers = {
      priority: fieldIndex<TestObject>('spec["priorityClassName"]'),
      image: fieldIndex<TestObject>("spec.containers[].image"),
    };
    const path = `/api/v1/pods${query("spec.priorityClassName=high")}`;
    assert.deepEqual(names(await get(apiOf(FakeInformer.with(pods, 10, indexers)), path)), ["shop/a"]);
    const refusal = await get(apiOf(FakeInformer.with(pods, 10)), path, { status: 400 });
    assert.equal(refusal.message, "field label not supported: spec.priorityClassName");
    const elements = `/api/v1/pods${query("spec.containers[].image=i")}`;
    await get(apiOf(FakeInformer.with(pods, 10, indexers)), elements, { status: 400 });
  });

  it("selects what it selects without them, in lists, pages and watches", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(pod, { maxLength: 14 }),
        fc.array(fc.array(term, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }),
        async (pods, selectors) => {
          const [plain, indexed] = [FakeInformer.with([], 1), FakeInformer.with([], 1, INDEXERS)];
          const [expected, actual] = [apiOf(plain), apiOf(indexed)];
          pods.forEach(({ name, ...fields }, i) => {
            const next = object(name, i + 2, { ...fields, labels: { app: name.slice(-1) } });
            plain.put(next);
            indexed.put(next);
          });
          for (const terms of selectors) {
            const fields = query(terms.join());
            for (const path of ["/api/v1/pods", "/api/v1/namespaces/shop/pods"]) {
              for (const more of ["", "&labelSelector=app%3Da", "&limit=1", "&resourceVersion=0"]) {
                // Whether a page is the last an index may know, and a walk may not.
                const { items } = await get(actual, path + fields + more);
                assert.deepEqual(
                  items,
                  (await get(expected, path + fields + more)).items,
                  path + fields + more,
                );
              }
            }
            const list = await get(expected, `/api/v1/pods${fields}`);
            if (list.items.length === 0) continue;
            const reader = await WatchReader.open(actual, `/api/v1/pods${fields}&watch=1`);
            const lines = await reader.lines(list.items.length);
            assert.deepEqual(lines.map((line) => line.split(" ")[1]), names(list), fields);
            await reader.cancel();
          }
        },
      ),
      propertyOptions(80),
    );
  });

  it("reads the default of a field that is absent, also where an index has others", async () => {
    const objects = ["a", "b", "c", "d"].map((name, i) =>
      object(`shop/${name}`, i + 1, { spec: i === 0 ? { hostNetwork: false } : {} })
    );
    const informer = FakeInformer.with(objects, 4, { host: fieldIndex("spec.hostNetwork") });
    const list = await get(apiOf(informer), `/api/v1/pods${query("spec.hostNetwork=false")}`);
    assert.deepEqual(names(list), ["shop/a", "shop/b", "shop/c", "shop/d"]);
  });

  it("looks only at the objects under its rarest value, in lists, pages and watches", async () => {
    let looks = 0;
    const objects = Array.from({ length: 2_000 }, (_, i) => {
      const spec = { nodeName: `node-${i % 200}` };
      return Object.defineProperty(object(`shop/pod-${String(i).padStart(5, "0")}`, i + 1), "spec", {
        enumerable: true,
        get: () => {
          looks++;
          return spec;
        },
      });
    });
    const informer = FakeInformer.with(objects, 2_000, { byNode: fieldIndex("spec.nodeName") });
    const api = apiOf(informer);
    looks = 0;
    const onNode = query("spec.nodeName=node-7,metadata.name!=pod-00207");
    assert.equal((await get(api, `/api/v1/pods${onNode}`)).items.length, 9);
    const page = await get(api, `/api/v1/namespaces/shop/pods${onNode}&limit=4`);
    assert.deepEqual(names(page)[3], "shop/pod-00807");
    const watch = await WatchReader.open(api, `/api/v1/pods${onNode}&watch=1`);
    assert.equal((await watch.lines(9)).length, 9);
    await watch.cancel();
    assert.equal((await get(api, `/api/v1/pods${query("spec.nodeName=node-x")}`)).items.length, 0);
    assert.ok(looks < 200, `${looks} looks`);
  });
});
