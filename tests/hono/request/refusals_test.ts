import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Context } from "hono";
import { Hono } from "hono";
import { silentLogger } from "@listwatch/cache";
import { FakeClock } from "@listwatch/cache/testing";
import {
  handshakeProblem,
  mayOpenSocket,
  newCors,
  socketProtocolOf,
  socketTokenOf,
} from "../../../src/hono/request/cors.ts";
import type { ResourcePath } from "../../../src/protocol/request_url.ts";
import {
  askedOf,
  askedOfPath,
  Gate,
  type GateOptions,
  type Permission,
  typeOf,
} from "../../../src/hono/request/gate.ts";
import {
  failed,
  foreignPage,
  nameProblem,
  notServed,
  noTunnel,
  tooManyRequests,
} from "../../../src/hono/request/refusals.ts";

/** A request, as the hooks and the checks before them see it. */
const context = (headers: Record<string, string> = {}, url = "http://cache/api") => {
  const raw = new Request(url, { headers });
  const header = (name: string) => name === "Host" ? headers.Host : raw.headers.get(name) ?? undefined;
  return { env: {}, req: { raw, url, header } } as Context;
};

const path: ResourcePath = {
  isWatch: false,
  path: "/api/v1/namespaces/shop/pods/web-1",
  group: "",
  version: "v1",
  resource: "pods",
  namespace: "shop",
  name: "web-1",
  subresource: "",
};

describe("askedOf", () => {
  it("says that Kubernetes' own namespaces are in themselves, and no other resource of that name", () => {
    const scopeOf = (more: Partial<typeof path>) => {
      const { scope, namespace } = askedOf({ ...path, ...more }, { verb: "get", name: "shop" });
      return [scope, namespace];
    };
    const [shop, cluster] = [["namespace", "shop"], ["cluster", undefined]];
    const own = { namespace: "", name: "shop" };
    assert.deepEqual(scopeOf({}), shop);
    assert.deepEqual(scopeOf({ ...own, resource: "namespaces" }), shop);
    assert.deepEqual(scopeOf({ ...own, resource: "namespaces", name: "" }), cluster);
    assert.deepEqual(scopeOf({ ...own, resource: "namespaces", group: "example.com" }), cluster);
    assert.deepEqual(scopeOf({ ...own, resource: "nodes" }), cluster);
  });

  it("has a subresource only where the path has one; a path without a resource has empty names", () => {
    const { group, version, resource } = path;
    const asked = { verb: "get", name: "web-1", group, version, resource, path: path.path } as const;
    const shop = { scope: "namespace", namespace: "shop" } as const;
    const one = { verb: "get", name: "web-1" } as const;
    assert.deepEqual(askedOf(path, one), { ...asked, ...shop });
    assert.deepEqual(askedOf({ ...path, subresource: "log" }, one), {
      ...asked,
      ...shop,
      subresource: "log",
    });
    const nothing = { group: "", version: "", resource: "", name: "", namespace: undefined };
    assert.deepEqual(askedOfPath("/apis"), { ...nothing, verb: "get", scope: "path", path: "/apis" });
  });
});

describe("Gate", () => {
  const asked = askedOf(path, { verb: "get", name: "web-1" });

  function gate(options: Partial<Record<keyof GateOptions, unknown>>) {
    const lines: unknown[][] = [];
    const logger = { ...silentLogger, error: (...line: unknown[]) => void lines.push(line) };
    const all = { hookTimeoutMs: 1_000, clock: new FakeClock(), logger, ...options } as GateOptions;
    return { lines, permit: () => new Gate(all).permit(asked, context()), gate: new Gate(all) };
  }

  it("lets no one through where there is neither a hook nor the word that all may read", async () => {
    for (const allowAnonymous of [undefined, false, "true", 1]) {
      const answer = await gate({ allowAnonymous }).permit();
      assert.equal((answer as { readonly code?: number }).code, 403, String(allowAnonymous));
      assert.doesNotMatch((answer as { readonly message: string }).message, /: $/);
    }
    assert.deepEqual(Object.keys(await gate({ allowAnonymous: true }).permit()), ["user", "renew"]);
  });

  it("lets through who may have all of what is requested, and nothing of it otherwise", async () => {
    const seen: string[] = [];
    const authorize = (
      { name, user }: { readonly name: string; readonly user?: { readonly name: string } },
    ) => {
      seen.push(`${user?.name} ${name}`);
      return name !== "web-2";
    };
    const { gate: one } = gate({ authenticate: () => ({ name: "jane" }), authorize });
    const of = (...names: string[]) =>
      one.permit(names.map((name) => askedOf(path, { verb: "get", name })), context());
    const permission = await of("web-1", "web-3") as Permission;
    assert.deepEqual(permission.user, { name: "jane" });
    assert.deepEqual((await permission.renew() as Permission).user, { name: "jane" });
    assert.deepEqual(seen.splice(0, 2), seen);
    assert.equal((await of("web-1", "web-2", "web-3") as { readonly code?: number }).code, 403);
    assert.deepEqual(seen, ["jane web-1", "jane web-3", "jane web-1", "jane web-2"]);
  });

  it("knows each user whose credential has no end, or one that is to come", async () => {
    const clock = new FakeClock(1_000);
    const known = async (user: unknown) =>
      !("code" in await gate({ authenticate: () => user, allowAnonymous: true, clock }).permit());
    for (const expiresAtMs of [undefined, 1_001, Infinity]) {
      assert.ok(await known({ name: "jane", expiresAtMs }));
    }
    for (const expiresAtMs of [1_000, NaN, null, "2000", -Infinity]) {
      assert.equal(await known({ name: "jane", expiresAtMs }), false, String(expiresAtMs));
    }
    for (
      const user of ["jane", [], null, () => {}, Object.assign([], { name: "jane" }), { name: "" }, {
        name: 7,
      }]
    ) {
      assert.equal(await known(user), false, String(user));
    }
  });

  it("logs an answer that is no decision, once of each hook, and no refusal", async () => {
    const answers: readonly (readonly [answer: unknown, type: string | undefined])[] = [
      [undefined, undefined],
      [null, "null"],
      [[], "an array"],
      ["jane", "a value of type string"],
    ];
    for (const [user, type] of answers) {
      const { lines, gate: one } = gate({ authenticate: () => user, authorize: () => true });
      for (let i = 0; i < 2; i++) {
        const answer = await one.permit(asked, context()) as {
          readonly code: number;
          readonly message: string;
        };
        assert.deepEqual([answer.code, answer.message], [401, "Unauthorized"]);
      }
      const text =
        `The authenticate hook answered with ${type}, which is no decision: only an object with a name ` +
        "is a user. The request was refused; this is logged once";
      assert.deepEqual(lines, type === undefined ? [] : [[text, { hook: "authenticate" }]]);
    }
    for (const decision of [false, "no", ""]) {
      const { lines, permit } = gate({ authorize: () => decision });
      assert.equal((await permit() as { readonly code: number }).code, 403);
      assert.deepEqual(lines, []);
    }
    assert.equal(typeOf(undefined), "undefined");
  });

  it("logs why a hook failed, with the error", async () => {
    const error = new Error("down");
    const fail = () => Promise.reject(error);
    const first = gate({ authenticate: fail, allowAnonymous: true });
    assert.equal((await first.permit() as { readonly code: number }).code, 401);
    assert.deepEqual(first.lines, [[`Cannot authenticate the request for ${path.path}: down`, { error }]]);
    const second = gate({ authorize: fail });
    assert.deepEqual(await second.permit(), {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: "Internal error occurred: the authorization check failed",
      reason: "InternalError",
      code: 500,
    });
    assert.deepEqual(second.lines, [[`Cannot decide on get ${path.path}: down`, { error }]]);
  });

  it("names in its refusal what was requested", async () => {
    const { gate: one } = gate({});
    const refused = async (of: Parameters<typeof one.permit>[0], headers = {}) => {
      const { message, reason, details } = await one.permit(of, context(headers)) as {
        readonly message: string;
        readonly reason: string;
        readonly details?: unknown;
      };
      return [message, reason, details];
    };
    assert.deepEqual(await refused(askedOfPath("/apis")), [
      'forbidden: User "system:anonymous" cannot get path "/apis"',
      "Forbidden",
      {},
    ]);
    const list = askedOf({ ...path, subresource: "status" }, { verb: "list", name: "" });
    assert.deepEqual(await refused(list), [
      'pods is forbidden: User "system:anonymous" cannot list resource "pods/status" in API group "" in the ' +
      'namespace "shop"',
      "Forbidden",
      { kind: "pods" },
    ]);
    const [message, reason] = await refused(asked, { "Impersonate-User": "root" });
    assert.match(String(message), /^this cache does not impersonate users: /);
    assert.equal(reason, "Forbidden");
  });
});

describe("newCors", () => {
  const app = (options: Parameters<typeof newCors>[0], status = 200) => {
    const hono = new Hono().use(newCors(options));
    return hono.all("*", (c) => {
      const response = c.text("here");
      if (status !== 200) Object.defineProperty(response, "status", { value: status });
      return response;
    });
  };
  const shown = async (app: Hono, init: RequestInit) => {
    const { status, headers } = await app.request("/", init);
    return {
      status,
      origin: headers.get("Access-Control-Allow-Origin"),
      exposed: headers.has("Access-Control-Expose-Headers"),
      vary: headers.get("Vary"),
    };
  };
  const Origin = "https://dashboard.example";
  const preflight = { "Access-Control-Request-Method": "GET" };

  it("says nothing to a request without an origin, and Vary only where the answer depends on it", async () => {
    const nothing = { status: 200, origin: null, exposed: false };
    assert.deepEqual(await shown(app({ origins: "*" }), {}), { ...nothing, vary: null });
    assert.deepEqual(await shown(app({ origins: [Origin] }), {}), { ...nothing, vary: "Origin" });
    const any = { status: 200, origin: "*", exposed: true, vary: null };
    assert.deepEqual(await shown(app({ origins: "*" }), { headers: { Origin } }), any);
  });

  it("lets a preflight pass, and nothing that only looks like one", async () => {
    const ask = (method: string, headers: Record<string, string>) =>
      shown(app({ origins: [Origin] }), { method, headers: { Origin, ...headers } });
    const yes = { origin: Origin, vary: "Origin" };
    assert.deepEqual(await ask("OPTIONS", preflight), { ...yes, status: 204, exposed: false });
    for (const [method, headers] of [["GET", preflight], ["OPTIONS", {}]] as const) {
      assert.deepEqual(await ask(method, headers), { ...yes, status: 200, exposed: true });
    }
  });

  it("leaves the headers of a WebSocket alone", async () => {
    const headers = { Origin };
    assert.equal((await shown(app({ origins: [Origin] }, 102), { headers })).origin, Origin);
    assert.deepEqual(await shown(app({ origins: [Origin] }, 101), { headers }), {
      status: 101,
      origin: null,
      exposed: false,
      vary: null,
    });
  });

  it("refuses origins that no page of a browser has", () => {
    for (const origin of ["ftp://dashboard.example", "ws://dashboard.example", new URL(Origin)]) {
      assert.throws(
        () => newCors({ origins: [origin as string] }),
        /^TypeError: Cannot allow the origin ".*": it must be a scheme, a host and perhaps a port, such as /,
      );
    }
  });
});

describe("socketTokenOf and the other checks of WebSockets", () => {
  const TOKEN = "base64url.bearer.authorization.k8s.io.";
  const ofProtocols = (protocols: string | undefined) =>
    context({
      Upgrade: "WebSocket",
      ...(protocols !== undefined && { "Sec-WebSocket-Protocol": protocols }),
    });

  it("bring one token, beside another subprotocol, in an alphabet that URLs have", () => {
    const tokens: readonly (readonly [protocols: string | undefined, token: string | undefined])[] = [
      [`${TOKEN}YS10b2tlbg, watch`, "a-token"],
      [`watch,${TOKEN}YS10b2tlbg`, "a-token"],
      [`${TOKEN}YS10b2tlbg`, undefined],
      [`${TOKEN}YS10b2tlbg,,`, undefined],
      [`${TOKEN}YS10b2tlbg, ${TOKEN}YS10b2tlbg, watch`, undefined],
      [`${TOKEN}, watch`, undefined],
      [`${TOKEN}YQ==, watch`, undefined],
      [`${TOKEN}YS10+2tlbg, watch`, undefined],
      [`${TOKEN}A, watch`, undefined],
      ["watch", undefined],
      [undefined, undefined],
    ];
    for (const [protocols, token] of tokens) {
      assert.equal(socketTokenOf(ofProtocols(protocols)), token, protocols);
    }
    assert.equal(
      socketTokenOf(context({ "Sec-WebSocket-Protocol": `${TOKEN}YS10b2tlbg, watch` })),
      undefined,
    );
    assert.equal(socketProtocolOf(ofProtocols(`,${TOKEN}YQ, watch, other`)), "watch");
    assert.equal(socketProtocolOf(ofProtocols(undefined)), undefined);
  });

  it("have the handshake of RFC 6455; between Workers, none", () => {
    const problem = (headers: Record<string, string>) => handshakeProblem(context(headers));
    const key = { "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" };
    const whole = { Connection: "keep-alive, Upgrade", "Sec-WebSocket-Version": "13", ...key };
    assert.equal(problem(whole), undefined);
    assert.equal(problem({}), undefined);
    assert.equal(problem(key), undefined);
    const version = "missing or bad WebSocket Version";
    assert.equal(problem({ ...whole, "Sec-WebSocket-Version": "8" }), version);
    assert.equal(problem({ Connection: "upgrade", ...key }), version);
    assert.equal(problem({ "Sec-WebSocket-Version": "8" }), version);
    for (const wrong of [{ ...whole, "Sec-WebSocket-Key": "short" }, { "Sec-WebSocket-Key": "short" }]) {
      assert.equal(problem(wrong), "missing or bad WebSocket Key");
    }
    assert.equal(
      problem({ Connection: "Upgrade", "Sec-WebSocket-Version": "13" }),
      "missing or bad WebSocket Key",
    );
  });

  it("are for pages of the host of the request, whatever name the server has for itself", () => {
    const may = (Origin: string | undefined, Host?: string) =>
      mayOpenSocket(
        context({ ...(Origin && { Origin }), ...(Host && { Host }) }, "http://inside:8080/api"),
        undefined,
      );
    assert.equal(may(undefined), true);
    assert.equal(may("https://inside:8080"), true);
    assert.equal(may("https://cache.example", "Cache.example"), true);
    assert.equal(may("https://inside:8080", "cache.example"), false);
    for (const other of ["null", "ws://inside:8080", "https://inside", "https://inside:8080.evil.example"]) {
      assert.equal(may(other), false, other);
    }
  });
});

describe("foreignPage and the other refusals", () => {
  it("say what is refused, and what to do", () => {
    const shown = [foreignPage(), tooManyRequests(), failed()].map(({ code, reason, message, details }) => {
      return [code, reason, message, details];
    });
    assert.deepEqual(shown, [
      [
        403,
        "Forbidden",
        "pages of this origin may not open WebSockets here: the option `cors` names those that may",
        {},
      ],
      [429, "TooManyRequests", "Too many requests are being answered, please try again later.", {
        retryAfterSeconds: 1,
      }],
      [
        500,
        "InternalError",
        "Internal error occurred: the cache cannot read what it needs to answer; its log says why",
        undefined,
      ],
    ]);
    const pods = { group: "", resource: "pods" };
    assert.match(
      String(notServed(pods, "log").message),
      /of pods: "log" \(kubectl logs\) is not served here; send it /,
    );
    assert.match(
      String(notServed(pods, "own").message),
      /of pods: "own" is not served here; send it to the API server/,
    );
    assert.deepEqual(notServed(pods, "own").details, { kind: "pods" });
    assert.match(String(noTunnel("exec").message), /^"exec" \(kubectl exec\) needs a tunnel, /);
    assert.match(String(noTunnel("own").message), /^this request needs a tunnel, /);
    assert.deepEqual(noTunnel("own").details, {});
  });

  it("name the fault of a name that is no segment of a path", () => {
    for (
      const [name, why] of [[".", "be '.'"], ["..", "be '..'"], ["a%", "contain '%'"], ["a/%", "contain '/'"]]
    ) {
      const { code, reason, message } = nameProblem(name)!;
      assert.deepEqual([code, reason], [400, "BadRequest"]);
      assert.equal(message, `Name parameter invalid: "${name}": may not ${why}`);
    }
    for (const name of ["", "a.b", "...", "a"]) assert.equal(nameProblem(name), undefined);
  });
});
