import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configMap, deployment, FakeClock, type InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { call, type Json, withServer } from "./helpers.ts";

const PODS = "/api/v1/pods";

function names(list: Json): string[] {
  return list.items.map(({ metadata }: Json) => `${metadata.namespace}/${metadata.name}`);
}

function seed(server: InMemoryApiServer): void {
  for (const name of ["web-10", "web-2", "web.1", "web-1"]) {
    server.create("v1/pods", pod(name, { namespace: "a" }));
  }
  server.create("v1/pods", pod("x", { namespace: "a-2" }));
}

describe("InMemoryApiServer: a list", () => {
  it("is in the order of storage keys, byte by byte", () =>
    withServer({}, async (server) => {
      seed(server);
      const { body } = await call(server, "GET", PODS);
      assert.deepEqual(names(body), ["a-2/x", "a/web-1", "a/web-10", "a/web-2", "a/web.1"]);
    }));

  it("has kind and apiVersion once, and for custom resources in every item", () =>
    withServer({
      customResources: [{ group: "x.io", version: "v1", resource: "dials", kind: "Dial", namespaced: false }],
    }, async (server) => {
      server.create("apps/v1/deployments", deployment("web"));
      server.create("x.io/v1/dials", { metadata: { name: "d" } });
      const deployments = (await call(server, "GET", "/apis/apps/v1/deployments")).body;
      assert.deepEqual([deployments.kind, deployments.apiVersion], ["DeploymentList", "apps/v1"]);
      assert.deepEqual([deployments.items[0].kind, deployments.items[0].apiVersion], [undefined, undefined]);
      const dials = (await call(server, "GET", "/apis/x.io/v1/dials")).body;
      assert.deepEqual([dials.kind, dials.items[0].kind, dials.items[0].apiVersion], [
        "DialList",
        "Dial",
        "x.io/v1",
      ]);
    }));

  it("is that of a shard, as its pages, its watches and what is deleted of it", () =>
    withServer({}, async (server) => {
      for (let i = 0; i < 30; i++) {
        server.create("v1/pods", pod(`web-${i}`, { namespace: "a", uid: `${i}-uid` }));
      }
      const all = names((await call(server, "GET", PODS)).body);
      const selectors = [
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')",
      ];
      const [low, high] = selectors.map((selector) => `shardSelector=${encodeURIComponent(selector)}`);
      const lists = await Promise.all(
        [low, high].map(async (query) => (await call(server, "GET", `${PODS}?${query}`)).body),
      );
      assert.deepEqual(lists.flatMap(names).toSorted(), all.toSorted());
      for (const [i, list] of lists.entries()) {
        assert.ok(list.items.length > 0);
        assert.deepEqual(list.metadata, {
          resourceVersion: server.resourceVersion,
          shardInfo: { selector: selectors[i] },
        });
      }
      const { body: { items, metadata } } = await call(server, "GET", `${PODS}?limit=2&${high}`);
      assert.deepEqual(items, lists[1].items.slice(0, 2));
      assert.deepEqual([metadata.remainingItemCount, metadata.shardInfo], [undefined, {
        selector: selectors[1],
      }]);
      const { status, body: refused } = await call(server, "GET", `${PODS}?shardSelector=x`);
      assert.deepEqual([status, refused.message.slice(0, 48)], [
        400,
        "invalid shard selector: unexpected expression ki",
      ]);
      await call(server, "DELETE", `/api/v1/namespaces/a/pods?${low}`);
      assert.deepEqual(names((await call(server, "GET", PODS)).body), names(lists[1]));
    }));

  it("of an unknown namespace is empty", () =>
    withServer({}, async (server) => {
      seed(server);
      const { status, body } = await call(server, "GET", "/api/v1/namespaces/nowhere/pods");
      assert.deepEqual([status, body.items, body.metadata], [200, [], { resourceVersion: "6" }]);
    }));

  it("is selected by labels and fields", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("a", { labels: { app: "web", tier: "front" }, nodeName: "n1" }));
      server.create("v1/pods", pod("b", { labels: { app: "web" }, nodeName: "n2" }));
      server.create("v1/pods", pod("c", { labels: { app: "db" }, phase: "Failed" }));
      const list = async (query: string) => names((await call(server, "GET", `${PODS}?${query}`)).body);
      assert.deepEqual(await list("labelSelector=app+in+(web,db),!tier"), ["default/b", "default/c"]);
      assert.deepEqual(await list("fieldSelector=spec.nodeName%3Dn1"), ["default/a"]);
      assert.deepEqual(await list("fieldSelector=status.phase!%3DFailed&labelSelector=app"), [
        "default/a",
        "default/b",
      ]);
      assert.deepEqual(await list("fieldSelector=metadata.name=c,metadata.namespace=default"), ["default/c"]);
      assert.deepEqual(await list("fieldSelector=spec.hostNetwork=false,spec.nodeName="), ["default/c"]);
    }));

  it("refuses malformed selectors, and fields that cannot be selected", () =>
    withServer({}, async (server) => {
      assert.equal((await call(server, "GET", `${PODS}?labelSelector=app+in`)).status, 400);
      const unknown = await call(server, "GET", `${PODS}?fieldSelector=spec.priority%3D1`);
      assert.deepEqual([unknown.status, unknown.body.message], [
        400,
        "field label not supported: spec.priority",
      ]);
      const ofDeployment = await call(
        server,
        "GET",
        "/apis/apps/v1/deployments?fieldSelector=status.replicas%3D1",
      );
      assert.equal(ofDeployment.status, 400);
    }));
});

describe("InMemoryApiServer: a paged list", () => {
  it("is one snapshot, also if objects are written meanwhile", () =>
    withServer({}, async (server) => {
      for (const name of ["b", "d", "f", "h"]) server.create("v1/pods", pod(name));
      const first = (await call(server, "GET", `${PODS}?limit=2`)).body;
      assert.deepEqual([names(first), first.metadata.resourceVersion, first.metadata.remainingItemCount], [
        ["default/b", "default/d"],
        "5",
        2,
      ]);
      server.create("v1/pods", pod("a"));
      server.create("v1/pods", pod("e"));
      server.delete("v1/pods", "default/f");
      server.patch("v1/pods", "default/h", { metadata: { labels: { late: "yes" } } });
      const next = `${PODS}?limit=1&continue=${first.metadata.continue}`;
      const second = (await call(server, "GET", next)).body;
      assert.deepEqual([names(second), second.metadata.resourceVersion], [["default/f"], "5"]);
      const third = (await call(server, "GET", `${PODS}?continue=${second.metadata.continue}`)).body;
      assert.deepEqual([names(third), third.metadata], [["default/h"], { resourceVersion: "5" }]);
      assert.equal(third.items[0].metadata.labels, undefined);
      assert.deepEqual(names((await call(server, "GET", PODS)).body), [
        "default/a",
        "default/b",
        "default/d",
        "default/e",
        "default/h",
      ]);
    }));

  it("is one page if the limit is not reached", () =>
    withServer({}, async (server) => {
      seed(server);
      for (const query of ["limit=5", "limit=500", "limit=0", "limit=-1"]) {
        // deno-lint-ignore no-await-in-loop
        const { body } = await call(server, "GET", `${PODS}?${query}`);
        assert.deepEqual([query, body.items.length, body.metadata.continue], [query, 5, undefined]);
      }
    }));

  it("ends where a field selector names the only object that there can be", () =>
    withServer({}, async (server) => {
      for (const namespace of ["one", "two"]) {
        for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace }));
      }
      const page = async (pods: string) =>
        (await call(server, "GET", `${pods}?limit=1&fieldSelector=metadata.name%3Db`)).body;
      const inOne = await page("/api/v1/namespaces/one/pods");
      assert.deepEqual([names(inOne), inOne.metadata.continue], [["one/b"], undefined]);
      const anywhere = await page("/api/v1/pods");
      assert.deepEqual([names(anywhere), typeof anywhere.metadata.continue], [["one/b"], "string"]);
    }));

  it("does not count the remaining items with a selector", () =>
    withServer({}, async (server) => {
      for (let i = 0; i < 6; i++) server.create("v1/pods", pod(`p${i}`, { labels: { odd: String(i % 2) } }));
      const seen: string[] = [];
      let token = "";
      do {
        // deno-lint-ignore no-await-in-loop
        const { body } = await call(server, "GET", `${PODS}?limit=2&labelSelector=odd%3D1&continue=${token}`);
        seen.push(...names(body));
        assert.equal(body.metadata.remainingItemCount, undefined);
        token = body.metadata.continue ?? "";
      } while (token !== "");
      assert.deepEqual(seen, ["default/p1", "default/p3", "default/p5"]);
    }));

  it("stays within its namespace", () =>
    withServer({}, async (server) => {
      seed(server);
      const first = (await call(server, "GET", "/api/v1/namespaces/a/pods?limit=3")).body;
      assert.equal(first.metadata.remainingItemCount, 1);
      const rest = await call(server, "GET", `/api/v1/namespaces/a/pods?continue=${first.metadata.continue}`);
      assert.deepEqual(names(rest.body), ["a/web.1"]);
    }));

  it("shows no other namespace with a token of that namespace", () =>
    withServer({}, async (server) => {
      for (const namespace of ["a", "b", "c"]) {
        for (const name of ["x", "y"]) server.create("v1/pods", pod(name, { namespace }));
      }
      const path = (namespace: string) => `/api/v1/${namespace && `namespaces/${namespace}/`}pods`;
      for (const from of ["a", "b", ""]) {
        const first = (await call(server, "GET", `${path(from)}?limit=1`)).body;
        for (const into of ["a", "b", "c"]) {
          const rest = await call(server, "GET", `${path(into)}?continue=${first.metadata.continue}`);
          const others = names(rest.body).filter((name) => !name.startsWith(`${into}/`));
          assert.deepEqual(others, [], `${from} in ${into}`);
        }
      }
    }));

  it("ends with 410 once its version is compacted, with a token that continues at the newest", () =>
    withServer({}, async (server) => {
      for (const name of ["b", "d", "f"]) server.create("v1/pods", pod(name));
      const first = (await call(server, "GET", `${PODS}?limit=1`)).body;
      server.create("v1/pods", pod("e"));
      server.compact();
      const expired = await call(server, "GET", `${PODS}?limit=2&continue=${first.metadata.continue}`);
      assert.deepEqual([expired.status, expired.body.reason, expired.body.code], [410, "Expired", 410]);
      assert.match(
        expired.body.message,
        /^The provided continue parameter is too old to display a consistent list/,
      );
      const onward = await call(server, "GET", `${PODS}?limit=2&continue=${expired.body.metadata.continue}`);
      assert.deepEqual([names(onward.body), onward.body.metadata.resourceVersion], [[
        "default/d",
        "default/e",
      ], "5"]);
    }));

  it("is refused for a malformed token, and for a token with a resourceVersion", () =>
    withServer({}, async (server) => {
      seed(server);
      const token = (await call(server, "GET", `${PODS}?limit=1`)).body.metadata.continue;
      const encode = (text: string) => btoa(text).replaceAll("=", "");
      for (
        const query of [
          "continue=zzz",
          `continue=${encode('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}')}`,
          `continue=${encode('{"v":"meta.k8s.io/v1","rv":1,"start":""}')}`,
          `continue=${encode('{"v":"meta.k8s.io/v2","rv":1,"start":"a"}')}`,
          `continue=${token}&resourceVersion=6`,
        ]
      ) {
        // deno-lint-ignore no-await-in-loop
        const { status, body } = await call(server, "GET", `${PODS}?${query}`);
        assert.deepEqual([query, status, body.reason], [query, 400, "BadRequest"]);
      }
    }));

  it("has pages no larger than the server allows", () =>
    withServer({ maxPageSize: 2 }, async (server) => {
      seed(server);
      assert.equal((await call(server, "GET", `${PODS}?limit=500`)).body.items.length, 2);
      assert.equal((await call(server, "GET", PODS)).body.items.length, 5);
    }));
});

describe("InMemoryApiServer: a list at a resourceVersion", () => {
  it("of 0 is complete from the watch cache, and in pages without it", async () => {
    for (const [watchCache, count] of [[true, 5], [false, 2]] as const) {
      // deno-lint-ignore no-await-in-loop
      await withServer({ watchCache }, async (server) => {
        seed(server);
        const { body } = await call(server, "GET", `${PODS}?limit=2&resourceVersion=0`);
        assert.equal(body.items.length, count);
      });
    }
  });

  it("is the newest, exactly that one, or not older, by resourceVersionMatch", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("a"));
      server.create("v1/pods", pod("b"));
      const at = async (query: string) => {
        const { body } = await call(server, "GET", `${PODS}?${query}`);
        return [body.metadata.resourceVersion, ...names(body)];
      };
      assert.deepEqual(await at("resourceVersion=2"), ["3", "default/a", "default/b"]);
      assert.deepEqual(await at("resourceVersion=2&resourceVersionMatch=NotOlderThan&limit=5"), [
        "3",
        "default/a",
        "default/b",
      ]);
      assert.deepEqual(await at("resourceVersion=2&resourceVersionMatch=Exact"), ["2", "default/a"]);
      assert.deepEqual(await at("resourceVersion=2&limit=5"), ["2", "default/a"]);
      assert.deepEqual(await at("resourceVersion=1&resourceVersionMatch=Exact"), ["1"]);
    }));

  it("that is compacted is 410 for an exact match", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("a"));
      server.create("v1/pods", pod("b"));
      server.compact("3");
      const exact = await call(server, "GET", `${PODS}?resourceVersion=2&resourceVersionMatch=Exact`);
      assert.deepEqual([exact.status, exact.body.reason, exact.body.message], [
        410,
        "Expired",
        "The resourceVersion for the provided list is too old.",
      ]);
      assert.equal((await call(server, "GET", `${PODS}?resourceVersion=2`)).status, 200);
      assert.equal(
        (await call(server, "GET", `${PODS}?resourceVersion=3&resourceVersionMatch=Exact`)).status,
        200,
      );
    }));

  it("drops old versions once the history is full", () =>
    withServer({ historyLimit: 2 }, async (server) => {
      for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name));
      const status = async (version: number) =>
        (await call(server, "GET", `${PODS}?resourceVersion=${version}&resourceVersionMatch=Exact`)).status;
      assert.deepEqual([await status(1), await status(2), await status(4)], [410, 200, 200]);
    }));

  it("from the future waits for it, three seconds long, and is then 504", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      seed(server);
      for (const path of [`${PODS}?resourceVersion=7`, "/api/v1/namespaces/a/pods/web-1?resourceVersion=7"]) {
        let isAnswered = false;
        const answer = call(server, "GET", path).finally(() => isAnswered = true);
        // deno-lint-ignore no-await-in-loop
        await clock.advance(2_999);
        assert.equal(isAnswered, false);
        // deno-lint-ignore no-await-in-loop
        await clock.advance(1);
        // deno-lint-ignore no-await-in-loop
        const { status, body, headers } = await answer;
        assert.deepEqual([status, headers.get("Retry-After"), body], [504, "1", {
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message: "Timeout: Too large resource version: 7, current: 6",
          reason: "Timeout",
          details: {
            causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
            retryAfterSeconds: 1,
          },
          code: 504,
        }]);
      }
      assert.equal(clock.pendingTimers, 0);
    });
  });

  it("from the future is answered as soon as it is reached", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      seed(server);
      const answer = call(server, "GET", `${PODS}?resourceVersion=7`);
      await clock.advance(1_000);
      server.create("v1/configmaps", configMap("other"));
      const { status, body } = await answer;
      assert.deepEqual([status, body.metadata.resourceVersion, clock.pendingTimers], [200, "7", 0]);
    });
  });

  it("from the future leaves nothing behind when the client aborts", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      const stop = new AbortController();
      const answer = server.fetch(`http://in-memory${PODS}?resourceVersion=9`, { signal: stop.signal });
      await clock.advance(10);
      assert.equal(clock.pendingTimers, 1);
      stop.abort(new Error("enough"));
      await assert.rejects(answer, { message: "enough" });
      await clock.advance(0);
      assert.equal(clock.pendingTimers, 0);
    });
  });

  it("is refused with 400 or 422 for contradicting options, and by a get with 500", () =>
    withServer({}, async (server) => {
      seed(server);
      const refusals: [path: string, status: number, message: string][] = [
        [`${PODS}?limit=ten`, 400, 'strconv.ParseInt: parsing "ten": invalid syntax'],
        [
          `${PODS}?resourceVersion=abc`,
          400,
          'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": ' +
          "invalid syntax",
        ],
        [
          `${PODS}?resourceVersionMatch=Exact`,
          422,
          'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is ' +
          "forbidden unless resourceVersion is provided",
        ],
        [
          "/api/v1/namespaces/a/pods/web-1?resourceVersion=abc",
          500,
          'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
        ],
      ];
      for (const [path, status, message] of refusals) {
        // deno-lint-ignore no-await-in-loop
        const answer = await call(server, "GET", path);
        assert.deepEqual([path, answer.status, answer.body.message], [path, status, message]);
      }
    }));

  it("keeps its digits beyond 2^53", () =>
    withServer({ initialResourceVersion: "18446744073709551000" }, async (server) => {
      server.create("v1/pods", pod("a"));
      server.create("v1/pods", pod("b"));
      const first = (await call(server, "GET", `${PODS}?limit=1`)).body;
      assert.equal(first.metadata.resourceVersion, "18446744073709551002");
      server.delete("v1/pods", "default/b");
      const second = await call(server, "GET", `${PODS}?continue=${first.metadata.continue}`);
      assert.deepEqual(names(second.body), ["default/b"]);
    }));
});

it("InMemoryApiServer ignores `watch` in the query of a get", () =>
  withServer({}, async (server) => {
    seed(server);
    const { body } = await call(server, "GET", "/api/v1/namespaces/a/pods/web-1?watch=1");
    assert.equal(body.kind, "Pod");
  }));

it("InMemoryApiServer indents its answers for curl and ?pretty=true", () =>
  withServer({}, async (server) => {
    const text = async (query: string, headers: Record<string, string>) =>
      await (await server.fetch(`http://in-memory${PODS}${query}`, { headers })).text();
    assert.match(await text("?pretty=true", {}), /\n {2}"items": \[\]/);
    assert.match(await text("", { "User-Agent": "curl/8.5.0" }), /\n {2}"items": \[\]/);
    assert.doesNotMatch(await text("", {}), /\n ./);
  }));
