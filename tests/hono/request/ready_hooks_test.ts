import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import type { Context } from "hono";
import {
  allowNamespaces,
  bearerTokens,
  type RequestAttributes,
  subjectAccessReview,
  tokenReview,
} from "@listwatch/cache/hono";
import { AnswerCache } from "../../../src/hono/request/access_review.ts";
import { sleep } from "../../../src/util/abort.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";

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

describe("subjectAccessReview", () => {
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

  it("keeps an answer from the moment of the question on: what changes while it is decided is not in it", async () => {
    const clock = new FakeClock();
    let questions = 0;
    const request = async () => {
      questions++;
      await sleep(4_000, { clock });
      return { status: { allowed: true } };
    };
    const authorize = subjectAccessReview({ request }, { allowedTtlMs: 10_000, clock });
    const answer = authorize(pods, context());
    await clock.advance(4_000);
    assert.equal(await answer, true);
    await clock.advance(5_999);
    assert.equal(await authorize(pods, context()), true);
    assert.equal(questions, 1);
    await clock.advance(1);
    const next = authorize(pods, context());
    await clock.advance(4_000);
    assert.equal(await next, true);
    assert.equal(questions, 2);
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

const withToken = (token: string) => context({ Authorization: `Bearer ${token}` });
// As a page sends it, which cannot set a header.
const socketHeaders = (token: string) => ({
  Upgrade: "websocket",
  "Sec-WebSocket-Protocol": `base64url.bearer.authorization.k8s.io.${
    btoa(token).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
  }, watch`,
});
const withSocketToken = (token: string) => context(socketHeaders(token));

describe("tokenReview", () => {
  const user = { username: "jane" };

  it("asks for no token that is longer than any of a cluster, nor for what is no bearer token", async () => {
    const { specs, cluster } = reviewer({ authenticated: true, user });
    const authenticate = tokenReview(cluster);
    const longest = "x".repeat(16_384);
    for (const present of [withToken, withSocketToken]) {
      assert.equal((await authenticate(present(longest)))?.name, "jane");
      assert.equal(await authenticate(present(`${longest}xxxxxxxxxxxxxxxxx`)), undefined);
    }
    // The cache does not decide which of two credentials counts.
    const both = { ...socketHeaders("a-token"), Authorization: "Basic amFuZTpzZWNyZXQ=" };
    assert.equal(await authenticate(context(both)), undefined);
    for (
      const header of ["Secret a-token", "Basic xa-token", "a-token", "Bearer", "Bearer ", "Bearera-token"]
    ) {
      assert.equal(await authenticate(context({ Authorization: header })), undefined, header);
    }
    assert.deepEqual(specs, [{ token: longest }]);
  });

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

describe("bearerTokens", () => {
  it("knows none of 2,000 other tokens, some of which have digests that begin alike", async () => {
    const authenticate = bearerTokens([{ token: "the-only-token-there-is", user: { name: "jane" } }]);
    assert.equal((await authenticate(withToken("the-only-token-there-is")))?.name, "jane");
    const others = Array.from({ length: 2_000 }, (_, i) => authenticate(withToken(`another-token-${i}`)));
    assert.deepEqual(new Set(await Promise.all(others)), new Set([undefined]));
  });

  it("digests by Web Crypto, which takes a thread for each, only where the runtime has nothing else", async () => {
    const { subtle } = crypto;
    const { getBuiltinModule } = process;
    let asked = 0;
    const digest = (...of: Parameters<SubtleCrypto["digest"]>) => {
      asked++;
      return SubtleCrypto.prototype.digest.apply(subtle, of);
    };
    Object.defineProperty(subtle, "digest", { value: digest, configurable: true });
    try {
      const token = "the-only-token-there-is";
      const authenticate = bearerTokens([{ token, user: { name: "jane" } }]);
      assert.equal((await authenticate(withToken(token)))?.name, "jane");
      if (getBuiltinModule !== undefined) assert.equal(asked, 0);
      asked = 0;
      process.getBuiltinModule = undefined as never;
      assert.equal((await authenticate(withToken(token)))?.name, "jane");
      assert.equal(await authenticate(withToken(`${token}-`)), undefined);
      assert.equal(asked, 2);
    } finally {
      process.getBuiltinModule = getBuiltinModule;
      delete (subtle as { digest?: unknown }).digest;
    }
  });
});

describe("allowNamespaces", () => {
  const of = (more: Partial<RequestAttributes>) => ({ ...pods, ...more }) as RequestAttributes;

  it("takes a name without a group for Kubernetes' own: custom resources have others of that name", async () => {
    const authorize = allowNamespaces(["shop"], { resources: ["pods"], clusterResources: ["nodes"] });
    assert.equal(await authorize(of({}), context()), true);
    assert.notEqual(await authorize(of({ group: "metrics.k8s.io" }), context()), true);
    const nodes = { scope: "cluster", namespace: undefined, resource: "nodes" } as const;
    assert.equal(await authorize(of(nodes), context()), true);
    assert.notEqual(await authorize(of({ ...nodes, group: "metrics.k8s.io" }), context()), true);
  });

  it("allows no verb but the given ones, whatever is read", async () => {
    const authorize = allowNamespaces(["shop"], { clusterResources: ["nodes"], verbs: ["get"] });
    const nodes = { scope: "cluster", namespace: undefined, resource: "nodes" } as const;
    for (const what of [{}, nodes]) {
      assert.equal(await authorize(of({ ...what, verb: "get" }), context()), true);
      for (const verb of ["list", "watch"] as const) {
        assert.equal(await authorize(of({ ...what, verb }), context()), "only get is allowed here");
      }
    }
  });

  it("takes no path for discovery that has it further on", async () => {
    const authorize = allowNamespaces(["shop"]);
    const path = (path: string) =>
      authorize(of({ scope: "path", resource: "", namespace: undefined, path }), context());
    for (const discovery of ["/api", "/apis/apps", "/openapi/v3"]) assert.equal(await path(discovery), true);
    for (const other of ["/metrics/api", "/x/apis", "/debug/version/", "api"]) {
      assert.notEqual(await path(other), true, other);
    }
  });
});

describe("AnswerCache", () => {
  it("knows no one any more whose last answer was no: others are not sent away for it", async () => {
    const cache = new AnswerCache<boolean>({
      clock: new FakeClock(),
      allowedTtlMs: 0,
      deniedTtlMs: 0,
      maxEntries: 10,
      maxInFlight: 4,
      maxWaiting: 0,
      maxWaitingPerClient: 0,
      timeoutMs: Infinity,
    });
    const ask = (key: string, isYes: boolean) =>
      cache.get({ key, client: key, ask: () => Promise.resolve({ value: isYes, isYes }) });
    for (const isYes of [true, false]) assert.equal(await ask("jane", isYes), isYes);
    assert.equal(await ask("joe", true), true);
    let end = () => {};
    const ended = new Promise<void>((resolve) => end = resolve);
    const slow = ["a", "b", "c"].map((key) =>
      cache.get({ key, client: key, ask: () => ended.then(() => ({ value: true, isYes: true })) })
    );
    await assert.rejects(async () => await ask("jane", true), /too many questions/);
    assert.equal(await ask("joe", true), true);
    end();
    await Promise.all(slow);
  });
});
