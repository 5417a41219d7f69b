import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeInformer, object } from "../fake_informer.ts";
// What kube-apiserver v1.36.3 answered: method, path, status, Content-Type,
// kind, and the message of a Status or the text.
import recorded from "../recorded/paths.json" with { type: "json" };
import { readApi } from "../read_api.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";

type Recording = [string, string, number, string, string | null, string | null];

function api() {
  const widgets = {
    ...WIDGET_RESOURCE,
    group: "readapi.example.com",
    subresources: { status: true },
  };
  const informer = (...names: string[]) => FakeInformer.with(names.map((name) => object(name, 1)), 1);
  return readApi({
    resources: [
      { informer: informer("ra-alpha/empty", "ra-alpha/other", "ra-beta/other"), resource: "v1/configmaps" },
      { informer: informer("node-1"), resource: "v1/nodes" },
      { informer: informer(), resource: "apps/v1/deployments" },
      { informer: informer(), resource: widgets },
    ],
    allowAnonymous: true,
  });
}

async function answer(method: string, path: string): Promise<Recording> {
  const response = await api().request(path, { method });
  const type = response.headers.get("Content-Type") ?? "";
  const text = await response.text();
  if (type.startsWith("text")) return [method, path, response.status, type, null, text];
  if (text === "") return [method, path, response.status, type, null, null];
  const { kind = null, message = null } = JSON.parse(text);
  return [method, path, response.status, type, kind, message];
}

// hono looks for the route before the path is decoded.
const NO_ROUTE = "/api%2Fv1/configmaps";
// The selectors of this library have texts of their own.
const OWN_TEXT = "/api/v1/namespaces/ra-alpha/configmaps?labelSelector=,";
// Servers before 1.38 ignore the parameter.
const SHARDS = "/api/v1/namespaces/ra-alpha/configmaps?shardSelector=x";

describe("readApi, by path, method and query,", () => {
  it("answers a path that no API has as kube-apiserver does", async () => {
    for (const path of ["/", "/nothing/here", "/apix", "/openapi", "/openapi/x", "/openapi/v2/x"]) {
      const response = await api().request(path);
      assert.equal(response.status, 404);
      assert.equal(response.headers.get("Content-Type"), "text/plain; charset=utf-8");
      assert.equal(response.headers.get("X-Content-Type-Options"), "nosniff");
      assert.equal(await response.text(), "404 page not found\n");
    }
  });

  it("answers as kube-apiserver", async () => {
    const differences: unknown[] = [];
    for (const recording of recorded as Recording[]) {
      const [method, path, ...expected] = recording;
      if (path === NO_ROUTE || path === SHARDS) continue;
      const actual = await answer(method, path);
      try {
        if (path === OWN_TEXT) assert.deepEqual(actual.slice(2, 5), expected.slice(0, 3));
        else assert.deepEqual(actual, recording);
      } catch {
        differences.push({ actual, recording });
      }
    }
    assert.deepEqual(differences, []);
  });
});
