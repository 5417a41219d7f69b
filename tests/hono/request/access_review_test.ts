import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Context } from "hono";
import { type RequestAttributes, subjectAccessReview, tokenReview } from "@listwatch/cache/hono";

const context = (headers: Record<string, string> = {}) => {
  const raw = new Request("http://cache/api", { headers });
  return { env: {}, req: { raw, header: (name: string) => raw.headers.get(name) ?? undefined } } as Context;
};

/** What reviews ask, with one answer to all of them. */
function reviewer(status: unknown) {
  const specs: Record<string, unknown>[] = [];
  const request = (_: string, { body }: { readonly body?: unknown }) => {
    specs.push((body as { spec: Record<string, unknown> }).spec);
    return Promise.resolve({ status });
  };
  return { specs, cluster: { request } };
}

describe("subjectAccessReview", () => {
  const jane = { name: "jane", uid: "7", groups: ["a", "b"], extra: { scopes: ["read"] } };
  const pods = {
    scope: "namespace",
    namespace: "shop",
    verb: "get",
    group: "",
    version: "v1",
    resource: "pods",
    name: "web-1",
    path: "/api/v1/namespaces/shop/pods/web-1",
    user: jane,
  } as const;

  it("gives no question the answer to another one: each member of it counts", async () => {
    const questions: readonly RequestAttributes[] = [
      pods,
      { ...pods, namespace: "blog" },
      { ...pods, scope: "cluster", namespace: undefined },
      { ...pods, verb: "list" },
      { ...pods, verb: "watch" },
      { ...pods, group: "example.com" },
      { ...pods, version: "v2" },
      { ...pods, resource: "secrets" },
      { ...pods, subresource: "scale" },
      { ...pods, name: "web-2" },
      { ...pods, name: "" },
      { ...pods, scope: "path", resource: "", namespace: undefined, path: "/apis" },
      { ...pods, scope: "path", resource: "", namespace: undefined, path: "/metrics" },
      { ...pods, user: undefined },
      { ...pods, user: { ...jane, name: "joe" } },
      { ...pods, user: { ...jane, uid: "8" } },
      { ...pods, user: { ...jane, groups: ["a"] } },
      { ...pods, user: { ...jane, groups: ["a,b"] } },
      { ...pods, user: { ...jane, extra: { scopes: ["write"] } } },
    ];
    const { specs, cluster } = reviewer({ allowed: true });
    const authorize = subjectAccessReview(cluster);
    for (const question of [...questions, ...questions]) {
      assert.equal(await authorize(question, context()), true);
    }
    assert.equal(specs.length, questions.length);
    assert.equal(new Set(specs.map((spec) => JSON.stringify(spec))).size, questions.length);
  });

  it("asks for a stranger as an API server does: system:anonymous, who is not authenticated", async () => {
    const { specs, cluster } = reviewer({ allowed: false });
    assert.equal(await subjectAccessReview(cluster)({ ...pods, user: undefined }, context()), false);
    const { user, groups } = specs[0];
    assert.deepEqual([user, groups], ["system:anonymous", ["system:unauthenticated"]]);
  });

  it("refuses what an authorizer denies, though another one allows it", async () => {
    for (const denied of [true, "false", null, 0]) {
      const { cluster } = reviewer({ allowed: true, denied });
      assert.equal(await subjectAccessReview(cluster)(pods, context()), false, String(denied));
    }
    const { cluster } = reviewer({ allowed: true, denied: false });
    assert.equal(await subjectAccessReview(cluster)(pods, context()), true);
  });
});

describe("tokenReview", () => {
  const user = { username: "jane" };
  const withToken = (token: string) => context({ Authorization: `Bearer ${token}` });

  it("gives no token the answer to another one, however alike they are", async () => {
    const { specs, cluster } = reviewer({ authenticated: true, user });
    const authenticate = tokenReview(cluster);
    const token = "x".repeat(1_000);
    const tokens = [token, `${token}y`, `y${token}`, token.slice(1), token.toUpperCase()];
    for (const one of [...tokens, ...tokens]) await authenticate(withToken(one));
    assert.deepEqual(specs, tokens.map((token) => ({ token })));
  });

  it("knows no user by a token for another audience, or of a server that knows of none", async () => {
    const audiences = ["cache", "cache.example"];
    const answers: readonly (readonly [agreed: unknown, isKnown: boolean])[] = [
      [["cache.example"], true],
      [["other", "cache"], true],
      [["other"], false],
      [[], false],
      [undefined, false],
      ["cache", false],
    ];
    for (const [agreed, isKnown] of answers) {
      const { specs, cluster } = reviewer({ authenticated: true, user, audiences: agreed });
      const known = await tokenReview(cluster, { audiences })(withToken("a-token"));
      assert.equal(known?.name, isKnown ? "jane" : undefined, JSON.stringify(agreed));
      assert.deepEqual(specs, [{ token: "a-token", audiences }]);
    }
  });
});
