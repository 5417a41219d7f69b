import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseResourcePath, pathSegments } from "../../src/protocol/request_url.ts";

function parse(path: string): string | undefined {
  const segments = pathSegments(path);
  const parsed = segments && parseResourcePath(segments);
  if (parsed === undefined) return undefined;
  const { group, version, namespace, resource, name, subresource, isWatch } = parsed;
  return `${isWatch ? "watch " : ""}${[group, version, namespace, resource, name, subresource].join("|")}`;
}

describe("parseResourcePath", () => {
  const cases: [path: string, parts: string | undefined][] = [
    ["/api/v1/pods", "|v1||pods||"],
    ["/api/v1/pods/", "|v1||pods||"],
    ["/apis/apps/v1/deployments/web", "apps|v1||deployments|web|"],
    ["/api/v1/namespaces/shop/pods", "|v1|shop|pods||"],
    ["/api/v1/namespaces/shop/pods/web-1/log", "|v1|shop|pods|web-1|log"],
    ["/apis/apps/v1/namespaces/shop/deployments/web/status", "apps|v1|shop|deployments|web|status"],
    ["/api/v1/namespaces", "|v1||namespaces||"],
    ["/api/v1/namespaces/shop", "|v1||namespaces|shop|"],
    ["/api/v1/namespaces/shop/status", "|v1||namespaces|shop|status"],
    ["/api/v1/namespaces/shop/finalize", "|v1||namespaces|shop|finalize"],
    ["/api/v1/namespaces/shop/status/x", "|v1|shop|status|x|"],
    [
      "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
      "rbac.authorization.k8s.io|v1||clusterroles|a:b|",
    ],
    ["/api/v1/watch/pods", "watch |v1||pods||"],
    ["/api/v1/watch/namespaces/shop/pods/web-1", "watch |v1|shop|pods|web-1|"],
    ["/api/v1/watch", "|v1||watch||"],
    ["/api/v1/watch/namespaces/shop/pods/web-1/log", undefined],
    ["/api/v1/namespaces//pods", "|v1||pods||"],
    ["/api/v1/namespaces//pods/web-1", undefined],
    ["/api/v1/namespaces/shop/pods//log", undefined],
    ["/api/v1/pods/%E2%82%AC%FF", "|v1||pods|\u20ac\ufffd|"],
    ["/api", undefined],
    ["/api/v1", undefined],
    ["/apis/apps/v1", undefined],
    ["/apis//v1/pods", undefined],
    ["/api/v1//pods", undefined],
    ["/api//pods", undefined],
    ["/apis/apps//deployments", undefined],
    ["/other/apps/v1/deployments", undefined],
    ["/api/v1/nodes/n/proxy", "|v1||nodes|n|proxy"],
    ["/api/v1/namespaces/shop/pods/web-1/status/x", undefined],
    ["/api/v1/pods/%zz", undefined],
    ["/healthz/x/y", undefined],
    ["", undefined],
  ];
  for (const [path, parts] of cases) {
    it(`reads ${path} as ${parts ?? "no resource"}`, () => assert.equal(parse(path), parts));
  }

  it("has the path that it was read from, decoded and without slashes at its end", () => {
    const segments = pathSegments("/api/v1/namespaces/shop/pods/a%3Ab//")!;
    assert.equal(parseResourcePath(segments)?.path, "/api/v1/namespaces/shop/pods/a:b");
  });
});
