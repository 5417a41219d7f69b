import assert from "node:assert/strict";
import type { ReadApi } from "@listwatch/cache/hono";
import { ScreenReader } from "../../../src/protocol/screen_syntax.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get, type Json } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";

function apiOf(mayRead = true): ReadApi {
  const informer = FakeInformer.with([object("shop/web-1", 5, { spec: { replicas: 1 } })], 10);
  const resources = ["v1/pods", "apps/v1/deployments"].map((resource) => ({ informer, resource }));
  const forwarded = { resource: "v1/nodes", fetch: () => Promise.reject(new Error("it was called")) };
  return readApi({ resources: [...resources, forwarded], authorize: () => mayRead, clock: new FakeClock() });
}

/** The causes of the answer 400, as `parameter: message`. */
async function causes(path: string, accept?: string): Promise<string[]> {
  const status: Json = await get(apiOf(), path, { status: 400, ...(accept !== undefined && { accept }) });
  assert.equal(status.reason, "BadRequest");
  return status.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
}

describe("requestedRead", () => {
  it("refuses the parameters of screens that cannot be read, each with its cause", async () => {
    const [fields, filter, ...more] = await causes(`${PODS}?fields=spec..x&filter=a%3D(`);
    assert.match(fields, /^fields: .* at character 5 /);
    assert.match(filter, /^filter: /);
    assert.deepEqual(more, []);
    assert.match((await causes(`${PODS}?fields=a&fields=b`))[0], /^fields: it is given twice/);
    assert.match((await causes(`/api/v1/namespaces/shop/pods/web-1?filter=a`))[0], /^filter: one object/);
  });

  it("refuses a parameter of screens that is misspelt, also on a watch", async () => {
    for (const query of ["sortby=a", "watch=1&sortby=a"]) {
      assert.deepEqual(await causes(`${PODS}?${query}`), [
        "sortby: unknown parameter; did you mean sortBy?",
      ]);
    }
  });

  it("refuses with few words what is very long", async () => {
    const long = "a".repeat(50_000);
    const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (
      const query of [
        `sortBy=column(${long})`,
        `sortBy=metadata.name&around=${long}`,
        `includeObject=${long}`,
      ]
    ) {
      const response = await apiOf().request(`${PODS}?${query}`, { headers: { Accept: table } });
      assert.ok([400, 404].includes(response.status));
      assert.ok((await response.text()).length < 5_000, query.slice(0, 50));
    }
  });

  it("refuses fields of PartialObjectMetadata", async () => {
    const partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    const [cause] = await causes(`${PODS}?fields=spec`, partial);
    assert.match(cause, /^fields: a PartialObjectMetadata has its own fields/);
  });

  it("refuses them where they would be ignored: of a scale, of a resource that is forwarded", async () => {
    const scale = await causes("/apis/apps/v1/namespaces/shop/deployments/web-1/scale?fields=spec");
    assert.match(scale[0], /^fields: the scale of deployments.apps is made for each request; leave/);
    assert.match((await causes("/api/v1/nodes?filter=a&fields=b"))[1], /^filter: nodes is not cached here/);
  });

  it("reads no parameter of a screen for a client that may not read: long ones take long", async () => {
    const { path } = ScreenReader.prototype;
    let read = 0;
    ScreenReader.prototype.path = function () {
      read++;
      return path.call(this);
    };
    try {
      const query = "fields=a&filter=a&sortBy=a&groupBy=a&sum=a";
      for (const resource of ["pods", "nodes"]) {
        await get(apiOf(false), `/api/v1/${resource}?${query}`, { status: 403 });
      }
      assert.equal(read, 0);
      await causes(`${PODS}?${query}`);
      assert.equal(read, 5);
    } finally {
      ScreenReader.prototype.path = path;
    }
  });

  it("ignores other unknown parameters, as an API server", async () => {
    assert.equal((await get(apiOf(), `${PODS}?fieldManager=x&force=1&x=y`)).items.length, 1);
  });
});
