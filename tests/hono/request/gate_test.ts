import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import { MergedInformer, type ReadApiOptions } from "@listwatch/cache/hono";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get } from "../reading.ts";
import { readApi } from "../read_api.ts";

const pods = () => ({
  informer: FakeInformer.with([object("shop/web-1", 5), object("kube-system/dns-1", 6)], 10),
  resource: "v1/pods",
});

/** What users pass whom no type holds back. */
// deno-lint-ignore no-explicit-any
const untyped = (value: unknown): any => value;

const PATHS = [
  "/api",
  "/apis",
  "/api/v1",
  "/api/v1/pods",
  "/api/v1/pods?watch=1",
  "/api/v1/namespaces/shop/pods",
  "/api/v1/namespaces/shop/pods/web-1",
  "/api/v1/nothing",
  "/api/v1/namespaces/shop/pods/web-1/log",
  "/api/v1/%zz",
];

async function statusesOf(options: Partial<ReadApiOptions>): Promise<Set<number>> {
  const api = readApi({ resources: [pods()], logger: silentLogger, ...options });
  const statuses = new Set<number>();
  for (const path of PATHS) {
    for (const method of ["GET", "POST", "DELETE", "HEAD"]) {
      const response = await api.request(path, { method });
      assert.doesNotMatch(await response.text(), /web-1"[^"]*"metadata|dns-1/);
      statuses.add(response.status);
    }
  }
  return statuses;
}

describe("Authorize, the hook,", () => {
  const NO_YES: unknown[] = [
    undefined,
    null,
    false,
    "",
    "no",
    "true",
    0,
    1,
    NaN,
    {},
    [],
    [true],
    { allowed: true },
    new Boolean(true),
    Symbol("yes"),
    () => true,
  ];

  it("opens with true only: whatever else it answers is 403, for every path and method", async () => {
    for (const answer of NO_YES) {
      for (const decision of [answer, Promise.resolve(answer)]) {
        const statuses = await statusesOf({ authorize: untyped(() => decision) });
        assert.deepEqual([...statuses], [403], String(typeof answer));
      }
    }
  });

  it("receives little, however long a request is: answers are kept by what it receives", async () => {
    const long = "a".repeat(50_000);
    const received: string[] = [];
    const authorize = (request: unknown) => {
      received.push(JSON.stringify(request));
      return false;
    };
    const api = readApi({ resources: [pods()], logger: silentLogger, authorize });
    const paths = [
      `/api/v1/pods?fieldSelector=metadata.name%3D${long}`,
      `/api/v1/pods?labelSelector=${long}`,
      `/api/v1/namespaces/shop/pods/${long}`,
      `/api/v1/namespaces/${long}/pods`,
      `/api/${long}`,
      `/apis/${long}/v1`,
      `/openapi/v3/${long}`,
      `/indices/${long}`,
      `/indices/pods/${long}`,
      `/indices/pods?namespace=${long}`,
      `/indices/pods/byNode/a?namespace=${long}`,
    ];
    for (const path of paths) {
      const response = await api.request(path);
      assert.equal(response.status, 403, path.slice(0, 50));
      assert.ok((await response.text()).length < 10_000, path.slice(0, 50));
    }
    assert.equal(received.length, paths.length);
    for (const text of received) assert.ok(text.length < 5_000, text.slice(0, 200));
  });

  it("decides on what is read, where a parameter is there twice or in another spelling", async () => {
    const rules: Record<string, (name: string, namespace: string | undefined, verb: string) => boolean> = {
      "the name web-1": (name) => name === "web-1",
      "the namespace shop": (_, namespace) => namespace === "shop",
      lists: (_name, _namespace, verb) => verb === "list",
    };
    const [name, other] = ["fieldSelector=metadata.name%3Dweb-1", "fieldSelector=metadata.name%3Ddns-1"];
    const [shop, system] = ["namespace=shop", "namespace=kube-system"];
    const queries = [
      ...[[name, other], [other, name], [name, "fieldSelector="], ["fieldSelector=", name]].map((pair) =>
        `/api/v1/pods?${pair.join("&")}`
      ),
      `/api/v1/pods?${name}&field%53elector=metadata.name%3Ddns-1`,
      `/api/v1/pods?${name}&fieldSelector=metadata.name%3Ddns-1;`,
      `/api/v1/pods?FieldSelector=metadata.name%3Dweb-1&${other}`,
      ...[[shop, system], [system, shop], [shop, "namespace="], ["namespace=", shop]].map((pair) =>
        `/indices/pods/byNode/n?${pair.join("&")}`
      ),
      `/indices/pods/byNode/n?${shop}&name%73pace=kube-system`,
      ...["watch=0&watch=1", "watch=1&watch=0", "watch=&watch=0", "watch=false&Watch=true"].map((query) =>
        `/api/v1/pods?timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&${query}`
      ),
    ];
    for (const [rule, isPermitted] of Object.entries(rules)) {
      const clock = new FakeClock();
      const byNode = { byNode: () => ["n"] };
      const informer = FakeInformer.with(
        [object("shop/web-1", 5), object("kube-system/dns-1", 6)],
        10,
        byNode,
      );
      const api = readApi({
        resources: [{ informer, resource: "v1/pods" }],
        authorize: ({ name, namespace, verb }) => isPermitted(name, namespace, verb),
        logger: silentLogger,
        clock,
      });
      let answered = 0;
      for (const query of queries) {
        const response = await api.request(query);
        const body = response.text();
        await clock.advance(2_000);
        const text = await body;
        if (response.status !== 200) continue;
        answered++;
        const isWatch = text.includes('"type":"ADDED"');
        const shown = Array.from(text.matchAll(/"name":"((?:web|dns)-1)"/g), ([, each]) => each);
        if (rule === "lists") assert.ok(!isWatch, `${query}: ${text}`);
        else assert.deepEqual(shown.filter((each) => each !== "web-1"), [], `${rule}: ${query}`);
      }
      assert.ok(answered >= 2, rule);
    }
  });

  it("refuses where it throws, rejects or never answers", async () => {
    const clock = new FakeClock();
    const failing = [() => untyped(null).status.allowed, () => Promise.reject(new Error("down"))];
    for (const authorize of failing) assert.deepEqual([...await statusesOf({ authorize })], [500]);
    const api = readApi({
      resources: [pods()],
      authorize: () => new Promise(() => {}),
      hookTimeoutMs: 2_000,
      logger: silentLogger,
      clock,
    });
    const answer = api.request("/api/v1/pods");
    await clock.advance(1_999);
    assert.equal(clock.pendingTimers, 1);
    await clock.advance(1);
    assert.equal((await answer).status, 500);
    assert.equal(clock.pendingTimers, 0);
  });

  it("sends the text that it returns to the reader", async () => {
    const why = "only the namespace shop may be read";
    const api = readApi({
      resources: [pods()],
      authorize: ({ namespace }) => namespace === "shop" || why,
    });
    assert.equal((await get(api, "/api/v1/namespaces/shop/pods")).items.length, 1);
    assert.match((await get(api, "/api/v1/pods", { status: 403 })).message, new RegExp(`: ${why}$`));
  });

  it("is logged once if it returns something that is no decision", async () => {
    const lines: string[] = [];
    const logger = { ...silentLogger, error: (message: string) => void lines.push(message) };
    const api = readApi({ resources: [pods()], authorize: untyped(() => undefined), logger });
    for (let i = 0; i < 5; i++) await get(api, "/api/v1/pods", { status: 403 });
    assert.equal(lines.length, 1);
    assert.match(lines[0], /authorize hook answered with undefined, which is no decision: only true/);
  });
});

describe("Authenticate, the hook,", () => {
  it("knows an object with a name only: whatever else it answers is 401, for every path and method", async () => {
    const strangers: unknown[] = [
      undefined,
      null,
      false,
      true,
      "",
      "jane",
      1,
      {},
      [],
      [{ name: "jane" }],
      { name: "" },
      { name: 7 },
      { user: "jane" },
      { name: "jane", expiresAtMs: "later" },
      { name: "jane", expiresAtMs: NaN },
      () => ({ name: "jane" }),
    ];
    for (const user of strangers) {
      for (const answer of [user, Promise.resolve(user)]) {
        for (const rule of [{ authorize: () => true }, { allowAnonymous: true }]) {
          const statuses = await statusesOf({ authenticate: untyped(() => answer), ...rule });
          assert.deepEqual([...statuses], [401], JSON.stringify(user));
        }
      }
    }
  });

  it("that fails or never answers knows no user: 401, and authorize is not called", async () => {
    const clock = new FakeClock();
    let asked = 0;
    const options = (authenticate: unknown): ReadApiOptions => ({
      resources: [pods()],
      authenticate: untyped(authenticate),
      authorize: () => {
        asked++;
        return true;
      },
      logger: silentLogger,
      clock,
    });
    const throwing = readApi(options(() => untyped(undefined).header));
    await get(throwing, "/api/v1/pods", { status: 401 });
    await get(readApi(options(() => Promise.reject(new Error("down")))), "/api/v1/pods", { status: 401 });
    const answer = readApi(options(() => new Promise(() => {}))).request("/api/v1/pods");
    await clock.advance(10_000);
    assert.equal((await answer).status, 401);
    assert.equal(asked, 0);
  });

  it("returns no user once the credential has ended", async () => {
    const clock = new FakeClock(1_000_000);
    const api = readApi({
      resources: [pods()],
      authenticate: () => ({ name: "jane", expiresAtMs: 1_005_000 }),
      authorize: () => true,
      clock,
    });
    await get(api, "/api/v1/pods");
    await clock.advance(5_000);
    await get(api, "/api/v1/pods", { status: 401 });
  });
});

describe("readApi's switches", () => {
  it("are booleans: any other value is a TypeError, whatever it looks like", () => {
    for (const value of ["false", "true", "", 0, 1, null, {}, []]) {
      for (const name of ["allowAnonymous", "allowSecrets"]) {
        const options = { resources: [pods()], authorize: () => true, [name]: untyped(value) };
        assert.throws(() => readApi(options), TypeError, `${name}: ${JSON.stringify(value)}`);
      }
      assert.throws(() => readApi({ resources: [pods()], allowAnonymous: untyped(value) }), TypeError);
    }
  });

  it("and hooks are functions: anything else is a TypeError", () => {
    for (const value of [true, null, "allow", {}]) {
      const authorize = untyped(value);
      assert.throws(() => readApi({ resources: [pods()], authorize }), /`authorize`: it must be a function/);
      const authenticate = untyped(value);
      assert.throws(
        () => readApi({ resources: [pods()], authenticate, allowAnonymous: true }),
        /`authenticate`: it must be a function/,
      );
    }
  });
});

describe("readApi refusing a request", () => {
  it("shows a stranger nothing of what is served: writes and unknown methods are refused as reads are", async () => {
    const api = readApi({ resources: [pods()], authenticate: () => undefined, authorize: () => true });
    const answers = new Set<string>();
    for (const path of ["/api/v1/pods", "/api/v1/gizmos", "/api/v1/namespaces/shop/pods/web-1", "/apis/x"]) {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const response = await api.request(path, { method });
        answers.add(`${response.status} ${await response.text()}`);
      }
    }
    assert.deepEqual(Array.from(answers, (answer) => answer.slice(0, 3)), ["401"]);
  });

  it("has its body read only where its sender is known, and only up to a limit", async () => {
    let known = false;
    const api = readApi({
      resources: [pods()],
      authenticate: () => known ? { name: "jane" } : undefined,
      authorize: () => true,
    });
    const send = async (megabytes: number) => {
      let pulled = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulled++ < megabytes * 16) controller.enqueue(new Uint8Array(64 * 1024));
          else controller.close();
        },
      }, { highWaterMark: 0 });
      const init: RequestInit & { duplex: "half" } = { method: "POST", body, duplex: "half" };
      const response = await api.fetch(new Request("http://cache/api/v1/namespaces/shop/pods", init));
      return { pulled, status: response.status, connection: response.headers.get("Connection") };
    };
    assert.deepEqual(await send(1), { pulled: 0, status: 401, connection: null });
    known = true;
    assert.deepEqual(await send(1), { pulled: 17, status: 405, connection: null });
    const { pulled, ...rest } = await send(100);
    assert.deepEqual(rest, { status: 405, connection: "close" });
    assert.ok(pulled <= 34, `${pulled} pieces`);
  });

  it("names the informers that wait on /readyz only for users that may read it", async () => {
    const informer = new FakeInformer();
    for (const allowed of [true, false]) {
      const api = readApi({ resources: [{ informer, resource: "v1/pods" }], authorize: () => allowed });
      const response = await api.request("/readyz");
      assert.equal(response.status, 503);
      assert.equal((await response.text()).includes("pods"), allowed);
    }
    const api = readApi({ resources: [pods()], authorize: () => false });
    assert.equal(await (await api.request("/readyz?verbose")).text(), "ok");
  });
});

describe("readApi, in every answer,", () => {
  it("says what it is, and keeps itself from pages of other sites", async () => {
    const api = readApi({ resources: [pods()], allowAnonymous: true });
    const paths = [...PATHS, "/version", "/healthz", "/livez", "/readyz", "/api/v1/pods?limit=ten"];
    for (const path of paths) {
      const { headers, body } = await api.request(path);
      assert.equal(headers.get("X-Content-Type-Options"), "nosniff", path);
      assert.equal(headers.get("Cross-Origin-Resource-Policy"), "same-origin", path);
      await body?.cancel();
    }
    await settle();
  });
});

describe("ReadApiOptions.allowSecrets", () => {
  it("are recognised by what their informer lists, whatever they are called", () => {
    const listed = { group: "", version: "v1", resource: "secrets" };
    const informer = Object.assign(FakeInformer.with([object("shop/key", 5)], 10), { resource: listed });
    const named = { group: "example.com", version: "v1", resource: "keys", kind: "Key", namespaced: true };
    assert.throws(
      () => readApi({ resources: [{ informer, resource: named }], authorize: () => true }),
      /allowSecrets: true/,
    );
    assert.throws(
      () => readApi({ resources: [{ informer, resource: "v1/configmaps" }], allowAnonymous: true }),
      /allowSecrets: true/,
    );
    readApi({ resources: [{ informer, resource: named }], authorize: () => true, allowSecrets: true });
    const others = { ...named, resource: "secrets" };
    readApi({ resources: [{ informer: new FakeInformer(), resource: others }], authorize: () => true });
  });

  it("are recognised by any of several sources, and by their kind or their name in any case", () => {
    const of = (resource: string) =>
      Object.assign(FakeInformer.with([], 10), { resource: { group: "", version: "v1", resource } });
    const merged = new MergedInformer([
      { name: "a", informer: of("configmaps") },
      { name: "b", informer: of("secrets") },
    ]);
    const core = { group: "", version: "v1", namespaced: true };
    const cases: readonly ReadApiOptions["resources"][number][] = [
      { informer: merged, resource: "v1/configmaps" },
      { informer: of("keys"), resource: { ...core, resource: "keys", kind: "Secret" } },
      { informer: of("keys"), resource: { ...core, resource: "Secrets", kind: "Key" } },
    ];
    for (const resource of cases) {
      for (const allowSecrets of [undefined, false]) {
        const options = {
          resources: [resource],
          authorize: () => true,
          ...(allowSecrets === false && { allowSecrets }),
        };
        assert.throws(() => readApi(options), /allowSecrets: true/);
      }
    }
  });
});

describe("readApi, for a reader that impersonates a user,", () => {
  it("refuses every path, whatever the hooks say", async () => {
    const called: string[] = [];
    const options: Partial<ReadApiOptions>[] = [
      { allowAnonymous: true },
      { authenticate: () => ({ name: "proxy", groups: ["system:masters"] }), authorize: () => true },
      {
        authorize: ({ path }) => {
          called.push(path);
          return true;
        },
      },
    ];
    for (const option of options) {
      const api = readApi({ resources: [pods()], logger: silentLogger, ...option });
      for (
        const [name, value] of [
          ["Impersonate-User", "jane"],
          ["impersonate-group", "system:masters"],
          ["Impersonate-Uid", "1"],
          ["Impersonate-Extra-scopes", "view"],
          ["Impersonate-User", ""],
        ]
      ) {
        for (const path of [...PATHS, "/indices/pods", "/indices/pods/namespace/shop", "/openapi/v3"]) {
          const response = await api.request(path, { headers: { [name]: value } });
          const body = await response.text();
          assert.equal(response.status, 403, `${path} ${name}: ${body}`);
          assert.match(body, /does not impersonate users/);
        }
      }
    }
    assert.deepEqual(called, []);
  });
});
