/**
 * The read API under requests that no client sends by accident: seeded, so that a
 * failure can be repeated with `LISTWATCH_FUZZ_SEED`.
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { labelIndexFunc, silentLogger } from "@listwatch/cache";
import type { Authorize, UserInfo } from "@listwatch/cache/hono";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { settle } from "../../src/util/clock.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { FakeInformer, object } from "./fake_informer.ts";
import { readApi } from "./read_api.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";
import { propertyOptions } from "../property.ts";

const WHOLE = 24_000;
const { numRuns: REQUESTS } = propertyOptions(WHOLE);
const NAMESPACES = ["shop", "shop-2", "shopping", "sho", "kube-system", "constructor"];
const USERS = ["jane", "joe", "admin"];
/** The namespaces that each user may read; `admin` reads everything. */
const ALLOWED: Record<string, readonly string[]> = { jane: ["shop"], joe: ["shop-2", "constructor"] };

/** A mark in every object that says where it is, so that an answer shows what it gave away. */
const marker = (where: string) => `<in ${where}>`;

function newFuzzedApi(clock: FakeClock) {
  const objects = NAMESPACES.flatMap((namespace) =>
    Array.from({ length: 12 }, (_, i) =>
      object(`${namespace}/p-${i}`, i + 1, {
        labels: { app: `a${i % 3}`, "constructor": "x" },
        spec: { nodeName: `n${i % 2}`, where: marker(namespace) },
      }))
  );
  const pods = FakeInformer.with(objects, 100, { labels: labelIndexFunc() });
  const nodes = FakeInformer.with(
    Array.from({ length: 5 }, (_, i) => object(`n${i}`, i + 1, { spec: { where: marker("the cluster") } })),
    100,
  );
  const late = new FakeInformer();
  const authorize: Authorize = (request) => {
    const name = request.user?.name ?? "";
    if (name === "admin" || request.scope === "path") return true;
    return request.scope === "namespace" && ALLOWED[name].includes(request.namespace);
  };
  const api = readApi({
    resources: [
      { informer: pods, resource: "v1/pods" },
      { informer: nodes, resource: "v1/nodes" },
      {
        informer: pods,
        resource: WIDGET_RESOURCE,
      },
      { informer: late, resource: "apps/v1/deployments" },
    ],
    authenticate: (c): UserInfo | undefined => {
      const name = c.req.header("Authorization")?.replace(/^Bearer /, "") ?? "";
      return USERS.includes(name) ? { name } : undefined;
    },
    authorize,
    eventWindow: 50,
    freshnessTimeoutMs: 0,
    clock,
    logger: silentLogger,
  });
  return { pods, app: new Hono().route("/", api).route("/at/:mount", api) };
}

/** Makes requests out of pieces, some of them of earlier answers. */
class RequestMaker {
  readonly #random: () => number;
  /** Tokens and versions of earlier answers to any user. */
  readonly tokens: string[] = ["zzz", btoa("{}"), ""];
  #version = 100;

  constructor(random: () => number) {
    this.#random = random;
  }

  set version(version: number) {
    this.#version = version;
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)];
  }

  request(): { path: string; init: RequestInit; user: string | undefined } {
    const user = this.chance(0.9) ? this.pick(USERS) : undefined;
    const headers: [string, string][] = [];
    if (user !== undefined) headers.push(["Authorization", `Bearer ${user}`]);
    else if (this.chance(0.5)) {
      headers.push(["Authorization", this.pick(["Bearer ", "Basic x", "janex", "Bearer Jane"])]);
    }
    if (this.chance(0.25)) headers.push(["Accept", this.#accept()]);
    if (this.chance(0.1)) headers.push([this.pick(HEADERS), this.#noise(40)]);
    const method = this.chance(0.85)
      ? "GET"
      : this.pick(["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
    const body = method === "GET" || method === "HEAD" || this.chance(0.3)
      ? undefined
      : this.pick(["{}", "", "x".repeat(10_000), '{"kind":"Pod"}']);
    const query = this.#query();
    return {
      path: `${this.#path(user)}${query === "" ? "" : `?${query}`}`,
      init: { method, headers, ...(body !== undefined && { body }) },
      user,
    };
  }

  #path(user: string | undefined): string {
    const mount = this.chance(0.1) ? "/at/somewhere" : "";
    const [root, resource] = this.chance(0.9)
      ? this.pick([["/api/v1", "pods"], ["/api/v1", "pods"], ["/apis/example.com/v1", "widgets"], [
        "/api/v1",
        "nodes",
      ]])
      : [this.pick(["/api", "/apis", "/apis/apps/v1"]), this.pick(["deployments", "secrets", "pods"])];
    const segments: string[] = [];
    const namespaces = user !== undefined && this.chance(0.6) ? ALLOWED[user] ?? NAMESPACES : NAMESPACES;
    if (resource !== "nodes" && this.chance(0.7)) {
      segments.push("namespaces", this.#odd(this.pick(namespaces)));
    }
    if (this.chance(0.95)) segments.push(this.#odd(resource));
    if (this.chance(0.25)) segments.push(this.#odd(`p-${Math.floor(this.#random() * 14)}`));
    if (this.chance(0.03)) segments.push(this.pick(["log", "status", "exec", "..", "."]));
    if (this.chance(0.04)) segments.splice(Math.floor(this.#random() * 3), 0, this.pick(ODD_SEGMENTS));
    return mount + [root, ...segments].join("/") + (this.chance(0.05) ? "/" : "");
  }

  #odd(segment: string): string {
    if (this.chance(0.97)) return segment;
    const at = Math.floor(this.#random() * segment.length);
    return this.pick([
      encodeURIComponent(segment.toUpperCase()),
      segment.slice(0, at) + this.pick(ODD_SEGMENTS) + segment.slice(at),
      Array.from(segment, (c) => `%${c.charCodeAt(0).toString(16)}`).join(""),
      this.#noise(30),
      "",
      "x".repeat(300),
    ]);
  }

  #query(): string {
    const parts: string[] = [];
    const add = (name: string, value: string) => parts.push(`${name}=${value}`);
    if (this.chance(0.25)) add("watch", this.pick(["1", "true", "", "0", "false", "yes", "TRUE"]));
    if (this.chance(0.3)) add("limit", this.pick(["1", "2", "5", "0", "-1", "1e3", "9999999999", "x", "+3"]));
    if (this.chance(0.2)) add("continue", encodeURIComponent(this.#token()));
    if (this.chance(0.2)) add("resourceVersion", this.#resourceVersion());
    if (this.chance(0.15)) add("resourceVersionMatch", this.pick(["Exact", "NotOlderThan", "exact", ""]));
    if (this.chance(0.15)) add("sendInitialEvents", this.pick(["true", "false", "1"]));
    if (this.chance(0.15)) add("allowWatchBookmarks", "true");
    if (this.chance(0.1)) add("timeoutSeconds", this.pick(["0", "1", "-1", "x", "99999999999999999999"]));
    if (this.chance(0.15)) add("labelSelector", encodeURIComponent(this.pick(SELECTORS)));
    if (this.chance(0.15)) add("fieldSelector", encodeURIComponent(this.#fields()));
    if (this.chance(0.1)) add("includeObject", this.pick(["None", "Metadata", "Object", "x"]));
    this.#screen(add);
    if (this.chance(0.1)) add("pretty", this.pick(["1", "true", "x"]));
    if (this.chance(0.03)) {
      parts.push(this.pick(["%zz", "&&&", "=", "watch", "limit[]=1", "__proto__=1", this.#noise(50)]));
    }
    return parts.join("&");
  }

  /** The parameters of screens. */
  #screen(add: (name: string, value: string) => void): void {
    const odd = (values: readonly string[]) =>
      encodeURIComponent(this.chance(0.95) ? this.pick(values) : this.#noise(30));
    if (this.chance(0.1)) add("fields", odd(PATHS));
    if (this.chance(0.1)) add("filter", odd(PATHS.flatMap((path) => REQUIREMENTS.map((one) => path + one))));
    if (this.chance(0.08)) {
      add("sortBy", odd(PATHS.flatMap((path) => [path, `${path}:desc`, `sum(${path})`])));
    }
    if (this.chance(0.04)) add("offset", odd(["0", "3", "-1", "99999999999"]));
    if (this.chance(0.04)) add("around", odd(["shop/p-1", "kube-system/p-1", "p-1", "/", "a/b/c"]));
    if (this.chance(0.05)) add("groupBy", odd(PATHS));
    if (this.chance(0.02)) add("sum", odd(PATHS));
    if (this.chance(0.01)) add(this.pick(["field", "sortby", "Filter", "group"]), "spec");
  }

  #token(): string {
    const token = this.pick(this.tokens);
    if (this.chance(0.8)) return token;
    try {
      const claims = JSON.parse(atob(token.replaceAll("-", "+").replaceAll("_", "/")));
      const start = `${this.pick(NAMESPACES)}/${this.pick(["", "p-0", "p-9", "\0", "/"])}`;
      const changed = {
        ...claims,
        ...this.pick([{ start }, { rv: "-1" }, { rv: this.#resourceVersion() }, { list: "" }]),
      };
      return btoa(JSON.stringify(changed)).replace(/=+$/, "");
    } catch {
      return token.slice(0, Math.floor(this.#random() * token.length));
    }
  }

  #resourceVersion(): string {
    const known = String(this.#version - Math.floor(this.#random() * 60));
    return this.pick([
      known,
      known,
      "0",
      "",
      "1",
      "007",
      "-1",
      "x",
      String(this.#version + 5),
      "9".repeat(30),
    ]);
  }

  #fields(): string {
    const value = this.pick([...NAMESPACES, "p-1", "n0", "", "*", "a\\,b", "%"]);
    const field = this.pick([
      "metadata.name",
      "metadata.namespace",
      "spec.nodeName",
      "status.phase",
      "spec",
      "",
    ]);
    return `${field}${this.pick(["=", "==", "!=", "~"])}${value}`;
  }

  #accept(): string {
    return this.pick([
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
      "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
      "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      "application/json;drop=metadata.managedFields",
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
      "application/vnd.kubernetes.protobuf",
      "text/html",
      "*/*",
      ";;q=,",
      `${"a/b,".repeat(200)}`,
      this.#noise(30),
    ]);
  }

  /** Characters that a header and a URL may hold. */
  #noise(length: number): string {
    return Array.from(
      { length: Math.floor(this.#random() * length) + 1 },
      () => String.fromCharCode(0x21 + Math.floor(this.#random() * 0x5e)),
    ).join("").replaceAll(/[#?]/g, "_");
  }
}

const HEADERS = [
  "X-Remote-User",
  "If-None-Match",
  "User-Agent",
  "Host",
  "X-Forwarded-For",
  "Content-Type",
  "Range",
  "Impersonate-User",
];
const ODD_SEGMENTS = [
  "..",
  ".",
  "%2e%2e",
  "%2F",
  "%00",
  "%0a",
  "*",
  "",
  "%zz",
  "%ff",
  ";",
  "\\",
  "..%2fkube-system",
  "__proto__",
];
const SELECTORS = [
  "app=a1",
  "app in (a0,a2)",
  "!app",
  "app!=a1,constructor",
  "x>3",
  "app=",
  "=",
  "app in",
  "a,,b",
  "__proto__=x",
  "k".repeat(80),
];

const PATHS = [
  "spec.where",
  "spec.nodeName",
  "spec",
  "metadata",
  "metadata.namespace",
  "metadata.labels.app,spec.nodeName",
  'metadata.labels["constructor"]',
  "__proto__.where",
  "constructor",
  "spec[].a[]",
  "a..b",
  `a${".a".repeat(70)}`,
];
const REQUIREMENTS = [
  "",
  "=n1",
  "!=n1",
  "~in",
  " in (n0,n1)",
  " notin (",
  ">3",
  "<2026-01-31T12:00:00Z",
  '="x',
];

const STATUSES = new Set([200, 304, 400, 401, 403, 404, 405, 406, 410, 422, 500, 503, 504]);

/** What a user may see of an answer to any request. */
function assertFits(text: string, user: string | undefined): void {
  for (const [, where] of text.matchAll(/<in ([^>]*)>/g)) {
    assert.ok(
      user === "admin" || (user !== undefined && ALLOWED[user].includes(where)),
      `shows what is in ${where}`,
    );
  }
  // Tables and metadata have no marker, but the namespace.
  for (const [, where] of text.matchAll(/"namespace":\s*"([^"]*)"/g)) {
    assert.ok(user === "admin" || (user !== undefined && ALLOWED[user].includes(where)), `shows ${where}`);
  }
}

/** The answer, if necessary after a wait for a resourceVersion that does not come. */
async function answered(answer: Response | Promise<Response>, clock: FakeClock): Promise<Response> {
  let isThere = false;
  const settled = Promise.resolve(answer).finally(() => isThere = true);
  settled.catch(() => {});
  for (let turns = 0; !isThere; turns++) {
    assert.ok(turns < 1_000, "there is no answer");
    await new Promise((resolve) => setImmediate(resolve));
    if (!isThere) await clock.advance(0);
  }
  return await settled;
}

/** Reads the body; of a watch, until it is silent. */
async function readSome(response: Response): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let isOver = false;
  const pump = (async () => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
    }
    isOver = true;
  })();
  for (let quietTurns = 0; !isOver && quietTurns < 2;) {
    const { length } = text;
    await new Promise((resolve) => setImmediate(resolve));
    quietTurns = text.length === length ? quietTurns + 1 : 0;
  }
  if (!isOver) await reader.cancel();
  await pump;
  return text;
}

describe("readApi under fuzzing", () => {
  it(`answers ${REQUESTS} odd requests properly, and shows no user what they may not see`, async () => {
    const seed = Number(process.env.LISTWATCH_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`LISTWATCH_FUZZ_SEED=${seed}`);
    const random = seededRandom(seed);
    const clock = new FakeClock(1_700_000_000_000);
    const { pods, app } = newFuzzedApi(clock);
    const maker = new RequestMaker(random);
    const counts = new Map<number, number>();
    let shown = 0;
    let version = 100;
    for (let i = 0; i < REQUESTS; i++) {
      if (i % 40 === 0) {
        const namespace = maker.pick(NAMESPACES);
        const name = `${namespace}/p-${i % 12}`;
        version++;
        if (maker.chance(0.1)) pods.remove(name, version);
        else {pods.put(
            object(name, version, {
              labels: { app: maker.pick(["a1", "a7"]) },
              spec: { where: marker(namespace) },
            }),
          );}
        maker.version = version;
        await clock.advance(1_000);
      }
      const { path, init, user } = maker.request();
      const context = `seed ${seed}, request ${i}: ${init.method} ${path} ${JSON.stringify(init.headers)}`;
      try {
        const response = await answered(app.request(path, init), clock);
        const text = await readSome(response);
        counts.set(response.status, (counts.get(response.status) ?? 0) + 1);
        assertProper(response, text, { path, method: String(init.method) });
        assertFits(text, user);
        const names = Array.from(new Headers(init.headers).keys());
        const impersonates = names.some((name) => name.startsWith("impersonate-"));
        if (user === undefined && response.status !== 404) {
          assert.equal(response.status, impersonates ? 403 : 401);
        }
        if (response.status === 200 && text.includes("<in ")) shown++;
        const token = /"continue":\s*"([^"]+)"/.exec(text)?.[1];
        if (token !== undefined) {
          maker.tokens[maker.tokens.length < 200 ? maker.tokens.length : i % 200] = token;
        }
      } catch (error) {
        throw new Error(`${context}: ${(error as Error).message}`, { cause: error });
      }
    }
    await settle();
    assert.equal(clock.pendingTimers, 0, "something is left behind");
    // The fuzz is worth something only if it gets everywhere.
    const everywhere = [200, 400, 401, 403, 404, 405, 406, 410, 422, 503, 504];
    for (const status of REQUESTS < WHOLE ? everywhere.slice(0, 5) : everywhere) {
      assert.ok((counts.get(status) ?? 0) > 5, `${status}: ${JSON.stringify([...counts])}`);
    }
    assert.ok(shown > REQUESTS / 20, `only ${shown} answers showed objects`);
  });
});

function assertProper(
  { status, headers }: Response,
  text: string,
  { path, method }: { readonly path: string; readonly method: string },
): void {
  // Beside the API there is nothing but hono's own 404.
  if (!/^\/(at\/[^/]*\/)?apis?(\/|\?|$)/.test(new URL(path, "http://cache").pathname)) return;
  assert.ok(STATUSES.has(status), `status ${status}: ${text.slice(0, 200)}`);
  assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
  assert.equal(headers.get("Cross-Origin-Resource-Policy"), "same-origin");
  if (status === 304 || method === "HEAD") return;
  if (headers.get("Content-Type") === "text/plain; charset=utf-8") {
    const page = status === 400 ? "400 Bad Request" : "404 page not found\n";
    assert.equal(text, page);
    return;
  }
  assert.match(headers.get("Content-Type") ?? "", /^application\/json/);
  if (status >= 400) {
    const refusal = JSON.parse(text);
    assert.deepEqual([refusal.kind, refusal.status, refusal.code], ["Status", "Failure", status]);
    // A watch from a malformed version is 500, as from an API server.
    if (status === 500) assert.match(refusal.message, /^resourceVersion: Invalid value/);
    assert.ok(text.length < 6_000, `${text.length} characters`);
  } else if (text.startsWith('{"type":')) {
    for (const line of text.split("\n").slice(0, -1)) assert.match(JSON.parse(line).type, /^[A-Z]+$/);
  } else {
    // A watch of which nothing happened has no text.
    if (text !== "") JSON.parse(text);
  }
}
