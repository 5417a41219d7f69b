import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import type { Context } from "hono";
import {
  allOf,
  allowNamespaces,
  type Authorize,
  type BearerToken,
  bearerTokens,
  type RequestAttributes,
  subjectAccessReview,
  tokenReview,
} from "@listwatch/cache/hono";
import { AnswerCache, type ReviewCluster } from "../../../src/hono/request/access_review.ts";
import { sleep } from "../../../src/util/abort.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";

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

/** Waits for what takes a few turns. */
async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    assert.ok(turn < 100, `it does not come: ${isSo}`);
    await settle();
  }
}

/** Options of a request for a review. */
type Sent = Parameters<ReviewCluster["request"]>[1];

/** What reviews send, which a test answers. */
function questions() {
  const sent: (Sent & { readonly path: string; readonly answer: (status: unknown) => void })[] = [];
  const request = (path: string, options: Sent) =>
    new Promise((resolve) => sent.push({ ...options, path, answer: (status) => resolve({ status }) }));
  return { sent, cluster: { request } };
}

describe("subjectAccessReview", () => {
  it("creates a review as an API server has it, and stops waiting for it after 5 s", async () => {
    const clock = new FakeClock();
    const { sent, cluster } = questions();
    const answer = Promise.resolve(subjectAccessReview(cluster, { clock })(pods, context()));
    await clock.advance(4_999);
    const [{ path, method, action, body, signal }] = sent;
    const { spec, ...review } = body as { readonly spec: unknown };
    assert.equal(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    assert.deepEqual([method, action], ["POST", "review a reader's access"]);
    assert.deepEqual(review, { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" });
    assert.deepEqual((spec as { readonly user: string }).user, "jane");
    assert.equal(signal.aborted, false);
    await Promise.all([clock.advance(1), assert.rejects(answer, /has not answered within 5000 ms/)]);
    assert.equal(signal.aborted, true);
  });

  it("asks of a user no more than is known, and of the extra only what Kubernetes has: lists of texts", async () => {
    const { specs, cluster } = reviewer({ allowed: true });
    const authorize = subjectAccessReview(cluster);
    for (
      const extra of [undefined, null, "read", ["read"], { a: "read" }, { a: ["read", 7] }, {
        a: ["x"],
        b: 1,
      }]
    ) {
      await authorize({ ...pods, user: { name: "jane", extra } }, context());
    }
    const resourceAttributes = {
      namespace: "shop",
      verb: "get",
      group: "",
      version: "v1",
      resource: "pods",
      name: "web-1",
    };
    assert.deepEqual(specs, [{ user: "jane", groups: [], resourceAttributes }]);
    assert.deepEqual(Object.keys(specs[0]), ["user", "groups", "resourceAttributes"]);
  });

  it("lets the users wait by name, and strangers by address: none of them takes the places of the others", async () => {
    const { sent, cluster } = questions();
    const authorize = subjectAccessReview(cluster, {
      maxInFlight: 1,
      maxWaitingPerClient: 1,
      timeoutMs: Infinity,
    });
    const ask = async (user: string | undefined, name: string, address = "10.0.0.1") => {
      const at = {
        ...context(),
        env: { incoming: { socket: { remoteAddress: address } } },
      } as unknown as Context;
      const asked = { ...pods, name, user: user === undefined ? undefined : { name: user } };
      return await Promise.resolve().then(() => authorize(asked, at)).catch((error) => String(error));
    };
    const answers = [
      ask("jane", "a"),
      ask("jane", "b"),
      ask("jane", "c", "10.0.0.2"),
      ask("joe", "a"),
      ask(undefined, "a"),
      ask(undefined, "b"),
      ask(undefined, "c", "10.0.0.2"),
      ask(undefined, "d", "10.0.0.2"),
    ];
    for (let i = 0; i < 5; i++) {
      await until(() => sent.length > i);
      sent[i].answer({ allowed: true });
    }
    const tooMany = /too many questions/;
    const isRefused = (await Promise.all(answers)).map((answer) => tooMany.test(String(answer)));
    assert.deepEqual(isRefused, [false, false, true, false, false, true, false, true]);
  });

  it("has 16 questions in flight, 12 of them new ones, and lets 1024 wait, 64 of one client", async () => {
    const clock = new FakeClock();
    const { sent, cluster } = questions();
    const authorize = subjectAccessReview(cluster, { clock, timeoutMs: Infinity });
    const ask = async (user: string, name: number) => {
      try {
        return await authorize({ ...pods, name: `${name}`, user: { name: user } }, context());
      } catch (error) {
        return /too many questions/.test(String(error)) ? "refused" : error;
      }
    };
    const count = (length: number, user: string) => Array.from({ length }, (_, i) => ask(user, i));
    const first = count(12 + 65, "first");
    const others = Array.from({ length: 15 }, (_, i) => count(64, `user-${i}`)).flat();
    const last = ask("another", 0);
    for (let i = 0; i < 12 + 1024; i++) {
      await until(() => sent.length > i);
      assert.ok(sent.length <= i + 12);
      sent[i].answer({ allowed: true });
    }
    assert.deepEqual(await Promise.all(first), [...Array(12 + 64).fill(true), "refused"]);
    assert.deepEqual(new Set(await Promise.all(others)), new Set([true]));
    assert.equal(await last, "refused");
    await clock.advance(60_000);
    // Now they are known.
    const again = count(20, "first");
    for (let i = 1036; i < 1056; i++) {
      await until(() => sent.length >= Math.min(i + 16, 1056));
      assert.ok(sent.length <= i + 16);
      sent[i].answer({ allowed: true });
    }
    assert.deepEqual(await Promise.all(again), Array(20).fill(true));
  });

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

  it("creates a review as an API server has it, with the one audience that is demanded, too", async () => {
    const { sent, cluster } = questions();
    const answer = tokenReview(cluster, { audiences: ["cache"] })(withToken("a-token"));
    await until(() => sent.length > 0);
    const [{ path, method, action, body, signal, answer: say }] = sent;
    assert.equal(path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert.deepEqual([method, action, signal.aborted], ["POST", "review a token", false]);
    const spec = { token: "a-token", audiences: ["cache"] };
    assert.deepEqual(body, { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec });
    say({ authenticated: true, user, audiences: ["other"] });
    assert.equal(await answer, undefined);
  });

  it("knows a user as the answer has it, and by no answer that is none", async () => {
    const known = (status: unknown) => {
      const { cluster } = reviewer(status);
      return tokenReview(cluster)(withToken("a-token"));
    };
    const whole = { username: "jane", uid: "7", groups: ["a", 7, "b"], extra: { scopes: ["read"] } };
    assert.deepEqual(await known({ authenticated: true, user: whole, error: "" }), jane);
    for (const uid of ["", 7, null]) {
      const found = await known({ authenticated: true, user: { ...user, uid, groups: "a" } });
      assert.deepEqual(found, { name: "jane", groups: [] }, String(uid));
    }
    for (const username of [undefined, "", 7, ["jane"]]) {
      assert.equal(await known({ authenticated: true, user: { username } }), undefined, String(username));
    }
    for (const error of ["signature", null, 7]) {
      assert.equal(await known({ authenticated: true, user, error }), undefined, String(error));
    }
  });

  it("ends a user with the JSON web token, and with nothing that only looks like one", async () => {
    const { cluster } = reviewer({ authenticated: true, user });
    const authenticate = tokenReview(cluster);
    const of = (claims: string) => `e30.${btoa(claims).replace(/=+$/, "")}.c2ln`;
    const endOf = async (token: string) => (await authenticate(withToken(token)))?.expiresAtMs;
    assert.equal(await endOf(of('{"exp":1700000600}')), 1_700_000_600_000);
    const claims = of('{"exp":1700000600}');
    for (
      const token of [
        `${claims}.more`,
        claims.slice(0, claims.lastIndexOf(".")),
        of('{"exp":"1700000600"}'),
        of('{"exp":1e999}'),
        of('{"exp":null}'),
        of("[]"),
        of("no JSON"),
        "e30.*.c2ln",
      ]
    ) {
      assert.equal(await endOf(token), undefined, token);
    }
  });

  it("takes no token for another one where digests come later, as those of Web Crypto do", async () => {
    const { getBuiltinModule } = process;
    process.getBuiltinModule = undefined as never;
    try {
      const { specs, cluster } = reviewer({ authenticated: true, user });
      const authenticate = tokenReview(cluster);
      for (const token of ["a-token", "another-token", "a-token"]) await authenticate(withToken(token));
      assert.deepEqual(specs, [{ token: "a-token" }, { token: "another-token" }]);
    } finally {
      process.getBuiltinModule = getBuiltinModule;
    }
  });

  it("keeps 4096 refusals: the oldest is reviewed once more", async () => {
    const { specs, cluster } = reviewer({ authenticated: false });
    const authenticate = tokenReview(cluster);
    for (let i = 0; i < 4_097; i++) await authenticate(withToken(`token-${i}`));
    await authenticate(withToken("token-1"));
    assert.equal(specs.length, 4_097);
    await authenticate(withToken("token-0"));
    assert.equal(specs.length, 4_098);
  });

  it("and subjectAccessReview refuse limits with which nothing could work", () => {
    const { cluster } = reviewer({});
    const fromZero = ["allowedTtlMs", "deniedTtlMs", "maxEntries", "maxWaiting", "maxWaitingPerClient"];
    for (const make of [tokenReview, subjectAccessReview]) {
      for (const name of [...fromZero, "maxInFlight", "timeoutMs"]) {
        const least = fromZero.includes(name) ? 0 : 1;
        for (const right of [least, 1, Infinity]) make(cluster, { [name]: right });
        for (const wrong of [least - 1, NaN, "1"]) {
          assert.throws(
            () => make(cluster, { [name]: wrong }),
            new RegExp(`^RangeError: Cannot review with a ${name} of `),
          );
        }
      }
    }
  });

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
  it("takes tokens of 16 to 16384 characters, and says of each other one what is wrong", async () => {
    const of = (token: unknown, user: unknown) => () => bearerTokens([{ token, user } as BearerToken]);
    for (const token of ["x".repeat(16), "x".repeat(16_384)]) {
      const authenticate = of(token, { name: "jane" })();
      for (const present of [withToken, withSocketToken]) {
        assert.equal((await authenticate(present(token)))?.name, "jane");
        assert.equal(await authenticate(present(`${token}x`)), undefined);
      }
      assert.equal(await authenticate(context()), undefined);
    }
    const faults: readonly (readonly [token: unknown, problem: string])[] = [
      [7, "is no text"],
      [undefined, "is undefined: set the secret or variable that it comes from"],
      ["x".repeat(15), "is shorter than 16 characters"],
      ["x".repeat(16_385), "is longer than 16384 characters"],
      ["two words of a token", "must be one word of printable ASCII characters"],
    ];
    for (const [token, problem] of faults) {
      assert.throws(
        of(token, { name: "jane" }),
        new RegExp(`^TypeError: Cannot use the token at index 0: it ${problem}$`),
      );
    }
    for (const user of [undefined, null, {}, { name: 7 }, { name: "" }]) {
      assert.throws(of("x".repeat(16), user), /^TypeError: .* at index 0: its user has no name$/);
    }
  });

  it("asks for no token that no header could have", async () => {
    const { specs, cluster } = reviewer({ authenticated: true, user: { username: "jane" } });
    const authenticate = tokenReview(cluster);
    for (const token of ["two words", "x\n", "\x7f"]) {
      assert.equal(await authenticate(withSocketToken(token)), undefined);
    }
    for (const header of ["Bearer t\xf6ken", "Bearer  x", "Bearer \t", "Bearer a\tb", "Bearer \x7f"]) {
      assert.equal(await authenticate(context({ Authorization: header })), undefined, header);
    }
    const padded = `Bearer ${"x".repeat(16_384)} ${"y".repeat(8)}`;
    assert.equal((await authenticate(context({ Authorization: padded })))?.name, "jane");
    assert.equal(await authenticate(context({ Authorization: `${padded}y` })), undefined);
    assert.equal(specs.length, 1);
  });

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

  it("allows a resource that may be read as a whole in each namespace, too", async () => {
    const authorize = allowNamespaces(["shop"], { resources: [], clusterResources: ["pods"] });
    for (const namespace of ["shop", "blog"]) {
      assert.equal(await authorize(of({ namespace } as Partial<RequestAttributes>), context()), true);
    }
    assert.notEqual(await authorize(of({ resource: "services" }), context()), true);
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
    const roots = ["api", "apis", "healthz", "indices", "livez", "openapi", "readyz", "version"];
    for (const root of roots) {
      for (const discovery of [`/${root}`, `/${root}/`, `/${root}/more`]) {
        assert.equal(await path(discovery), true, discovery);
      }
      assert.notEqual(await path(`/${root}s2`), true);
    }
    for (const other of ["/metrics", "/metrics/api", "/x/apis", "/debug/version/", "api"]) {
      assert.notEqual(await path(other), true, other);
    }
  });
});

describe("allowNamespaces and allOf", () => {
  const decide = (rule: Authorize, more: Partial<RequestAttributes> = {}) =>
    rule({ ...pods, ...more } as RequestAttributes, context());

  it("say what may be read", async () => {
    const system = { namespace: "kube-system" } as const;
    const [one, two] = [["shop"], ["shop", "blog"]].map((namespaces) => allowNamespaces(namespaces));
    assert.equal(await decide(one, system), 'only the namespace "shop" may be read');
    assert.equal(await decide(two, system), 'only the namespaces "shop", "blog" may be read');
    const none = allowNamespaces([], { clusterResources: ["nodes"] });
    assert.equal(await decide(none), "only no namespace may be read");
    assert.equal(
      await decide(none, { scope: "cluster", namespace: undefined, resource: "nodes" } as const),
      true,
    );
    const narrow = allowNamespaces(["shop"], {
      resources: ["services", "jobs.batch"],
      verbs: ["get", "list"],
    });
    assert.equal(await decide(narrow), "only services, jobs.batch may be read");
    assert.equal(await decide(narrow, { verb: "watch" }), "only get, list is allowed here");
  });

  it("name the option with a wrong name in it", () => {
    for (const option of ["resources", "clusterResources", "verbs"]) {
      for (const [wrong, text] of [["pods", "Cannot allow"], [["*"], 'Cannot allow "*" among']] as const) {
        assert.throws(
          () => allowNamespaces(["shop"], { [option]: wrong }),
          new RegExp(`^TypeError: ${RegExp.escape(text)} ${option}: `),
        );
      }
    }
    assert.throws(() => allowNamespaces(["*"]), /^TypeError: Cannot allow "\*" among namespaces: /);
    assert.throws(() => allowNamespaces("shop" as never), /^TypeError: Cannot allow namespaces: /);
    assert.throws(() => allowNamespaces([]), /^TypeError: Cannot allow anything: /);
    assert.throws(() => allOf(() => true, undefined as never), /^TypeError: Cannot join rules: /);
  });

  it("wait for each rule: a promise is no yes of all of them", async () => {
    const yes: Authorize = () => Promise.resolve(true);
    assert.equal(await decide(allOf(yes, yes)), true);
    assert.equal(await decide(allOf(yes, () => "come back tomorrow")), "come back tomorrow");
    assert.equal(await decide(allOf(yes, () => Promise.resolve(false))), false);
  });
});

describe("AnswerCache", () => {
  it("has no more questions in flight than it may, of those that were known before neither", async () => {
    const cache = new AnswerCache<boolean>({
      clock: new FakeClock(),
      allowedTtlMs: 0,
      deniedTtlMs: 0,
      maxEntries: 10,
      maxInFlight: 2,
      maxWaiting: 10,
      maxWaitingPerClient: 10,
      timeoutMs: Infinity,
    });
    const waiting: (() => void)[] = [];
    const ask = (key: string) => {
      const ask = () =>
        new Promise<{ readonly value: boolean; readonly isYes: boolean }>((resolve) =>
          waiting.push(() => resolve({ value: true, isYes: true }))
        );
      return cache.get({ key, client: key, ask });
    };
    for (let round = 0; round < 2; round++) {
      const answers = ["a", "b", "c"].map(ask);
      for (let left = 3; left > 0; left--) {
        await until(() => waiting.length >= Math.min(2, left));
        for (let turn = 0; turn < 5; turn++) await settle();
        assert.equal(waiting.length, Math.min(2, left));
        waiting.shift()!();
      }
      await Promise.all(answers);
    }
  });

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
    await assert.rejects(async () => await ask("jane", true), {
      retryAfterMs: 1_000,
      message: /too many questions/,
    });
    assert.equal(await ask("joe", true), true);
    end();
    await Promise.all(slow);
  });
});
