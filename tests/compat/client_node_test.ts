import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isForbidden } from "@listwatch/cache";
import {
  clusterOfKubeConfig,
  ListWatch,
  ListWatchError,
  makeInformer,
} from "@listwatch/cache/compat/client-node";
import { answerStatus, pod } from "@listwatch/cache/testing";
import type { Pod } from "kubernetes-types/core/v1";
import { kubeConfig, PODS, World } from "./client_node_world.ts";

describe("makeInformer of client-node", () => {
  it("reports what is there, and each change in the turn in which it was stored", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    const held: (string | undefined)[] = [];
    informer.on(
      "change",
      () => held.push(informer.list().map((pod) => pod.metadata?.labels?.v ?? "").join()),
    );
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "add a"]);
    world.create("b");
    world.update("a", { v: "2" });
    world.delete("b");
    assert.deepEqual(await world.received(), ["add b", "update a", "delete b"]);
    assert.deepEqual(held, ["", ",", "2,", "2"]);
    assert.equal(informer.get("a", "shop")?.metadata?.labels?.v, "2");
  });

  it("holds nothing and asks for nothing before it is started", async () => {
    using world = new World();
    world.create("a");
    const informer = world.make();
    assert.deepEqual(await world.received(), []);
    assert.deepEqual(informer.list(), []);
    assert.equal(informer.get("a", "shop"), undefined);
    assert.equal(informer.latestResourceVersion(), "");
    assert.equal(informer.status(), undefined);
    assert.equal(world.server.requests.length, 0);
    await informer.stop();
  });

  it("finds objects by name and namespace, and those that are in none", async () => {
    using world = new World();
    world.create("a");
    world.server.create("v1/pods", pod("a", { namespace: "other" }));
    world.server.create("v1/nodes", { metadata: { name: "node-1" } });
    await using pods = world.make();
    await using nodes = world.make({ path: "/api/v1/nodes" });
    await Promise.all([pods.start(), nodes.start()]);
    assert.equal(pods.list().length, 2);
    assert.deepEqual(pods.list("other").map(({ metadata }) => metadata?.namespace), ["other"]);
    assert.deepEqual(pods.list("nowhere"), []);
    assert.equal(pods.get("a"), undefined);
    assert.equal(pods.get("a", "shop")?.metadata?.namespace, "shop");
    assert.equal(nodes.get("node-1")?.metadata?.name, "node-1");
  });

  it("follows the resourceVersion", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    await informer.start();
    assert.equal(informer.latestResourceVersion(), world.server.resourceVersion);
    world.create("b");
    await world.received();
    assert.equal(informer.latestResourceVersion(), world.server.resourceVersion);
  });

  it("sends the selectors, its own and those of the path, with lists and watches, as the config's user", async () => {
    using world = new World();
    const path = "/api/v1/namespaces/shop/pods?labelSelector=tier%3Dfront&timeoutSeconds=5";
    await using informer = world.make({
      path,
      labels: "app=web",
      fields: "spec.nodeName=node-1",
      reflector: { useWatchList: false },
    });
    await informer.start();
    await world.received();
    const asked = world.server.requests.map(({ path, query, headers }) => [
      path,
      query.labelSelector,
      query.fieldSelector,
      headers.get("Authorization"),
    ]);
    const expected = ["/api/v1/namespaces/shop/pods", "tier=front,app=web", "spec.nodeName=node-1"];
    assert.deepEqual(asked, [[...expected, "Bearer of-the-config"], [...expected, "Bearer of-the-config"]]);
    assert.deepEqual(world.server.requests.map(({ isWatch }) => isWatch), [false, true]);
  });

  it("lists in pages, and connects once for all of them", async () => {
    using world = new World();
    for (let n = 0; n < 7; n++) world.create(`pod-${n}`);
    // A server that has no cache of its own answers every list in pages.
    world.server.intercept((request, next) => {
      const url = new URL(request.url);
      url.searchParams.delete("resourceVersion");
      return next(new Request(url, request));
    }, { match: ({ isWatch }) => !isWatch });
    await using informer = world.make({ reflector: { useWatchList: false, watchListPageSize: 3 } });
    await informer.start();
    assert.deepEqual(
      world.server.requests.filter(({ isWatch }) => !isWatch).map(({ query }) => query.limit),
      [
        "3",
        "3",
        "3",
      ],
    );
    assert.equal(informer.list().length, 7);
    assert.equal((await world.received()).filter((call) => call === "connect").length, 1);
  });

  for (const useWatchList of [true, false]) {
    it(`connects again when a watch has ended, and reports nothing twice, ${useWatchList ? "with" : "without"} streamed lists`, async () => {
      using world = new World();
      world.create("a");
      await using informer = world.make({ reflector: { useWatchList } });
      await informer.start();
      await world.received();
      for (const name of ["b", "c"]) {
        world.server.closeWatches();
        // deno-lint-ignore no-await-in-loop -- one after the other
        await world.clock.advance(60_000);
        world.create(name);
        // deno-lint-ignore no-await-in-loop -- one after the other
        assert.deepEqual(await world.received(), ["connect", `add ${name}`]);
      }
    });
  }

  it("reports a failure to the handler of the options, too", async () => {
    using world = new World();
    const errors: Error[] = [];
    world.server.intercept(answerStatus(403), { times: 1 });
    await using informer = world.make({
      reflector: { useWatchList: false, watchErrorHandler: (error) => void errors.push(error) },
    });
    await informer.start();
    assert.deepEqual(errors.map(isForbidden), [true]);
    assert.deepEqual(await world.received(), ["error 403"]);
  });

  it("lists again when the history is gone: the deleted first, no error", async () => {
    using world = new World();
    for (const name of ["a", "b", "c"]) world.create(name);
    await using informer = world.make();
    await informer.start();
    await world.received();
    world.server.intercept(answerStatus(503), { match: ({ isWatch }) => isWatch, times: 1 });
    world.server.closeWatches();
    world.update("a", { v: "2" });
    world.delete("b");
    world.create("d");
    world.server.compact();
    await world.clock.advance(120_000);
    const received = await world.received();
    assert.deepEqual(received.filter((call) => !/connect|error 503/.test(call)), [
      "delete b",
      "update a",
      "add d",
    ]);
    assert.deepEqual(informer.list().map(({ metadata }) => metadata?.name).sort(), ["a", "c", "d"]);
  });
});

describe("makeInformer of client-node when a server deletes what is not held", () => {
  it("calls no callback, as client-node", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make({ reflector: { useWatchList: false } });
    world.server.intercept(() => {
      const metadata = { name: "unknown", namespace: "shop", uid: "u", resourceVersion: "9" };
      return new Response(`${JSON.stringify({ type: "DELETED", object: { metadata } })}\n`);
    }, { match: ({ isWatch }) => isWatch, times: 1 });
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "add a"]);
    assert.equal(informer.latestResourceVersion(), "9");
  });
});

describe("makeInformer of client-node when requests fail", () => {
  it("reports the error, with client-node's properties, and continues by itself", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    const errors: ListWatchError[] = [];
    informer.on("error", (error) => errors.push(error));
    const end = world.server.intercept(answerStatus(403, { message: "no" }));
    await informer.start(); // as in client-node, the first failure is no rejection
    assert.equal(informer.list().length, 0);
    assert.ok(errors[0] instanceof ListWatchError);
    assert.deepEqual([errors[0].statusCode, errors[0].code], [403, 403]);
    assert.ok(isForbidden(errors[0]) && isForbidden(errors[0].cause));
    assert.match(errors[0].reason, /no/);
    end();
    await world.clock.advance(120_000);
    assert.deepEqual((await world.received()).filter((call) => call !== "error 403"), ["connect", "add a"]);
    assert.equal(informer.status()?.phase, "watching");
  });

  it("is not disturbed by programs that start it again, as client-node needs it", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    informer.on("error", () => {
      world.clock.setTimeout(() => informer.start(), 5_000);
    });
    world.server.intercept(answerStatus(500), { times: 3 });
    await informer.start();
    await world.clock.advance(120_000);
    assert.deepEqual((await world.received()).filter((call) => call !== "error 500"), ["connect", "add a"]);
    assert.equal(world.server.openWatches, 1);
  });

  it("names the system's code where nothing answers, and what a config cannot do", async () => {
    using world = new World();
    const away = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
    await using informer = world.make({
      fetch: () => Promise.reject(new TypeError("failed", { cause: away })),
    });
    await informer.start();
    assert.deepEqual((await world.received()).slice(0, 1), ["error ECONNREFUSED"]);
    const plugin = { ...kubeConfig, applyToHTTPSOptions: () => Promise.reject(new Error("no plugin")) };
    const errors: Error[] = [];
    await using other = makeInformer<Pod>(plugin, PODS, undefined, "", "", {
      fetch: world.server.fetch,
      clock: world.clock,
      logger: world.logger,
    });
    other.on("error", (error) => errors.push(error));
    await other.start();
    assert.match(errors[0].message, /Cannot apply the credentials of the KubeConfig: no plugin/);
  });

  it("rejects a start without a cluster, and a path of something else at once", async () => {
    using world = new World();
    const informer = makeInformer<Pod>({ ...kubeConfig, getCurrentCluster: () => null }, PODS);
    await assert.rejects(informer.start(), /Cannot use the KubeConfig: it has no current cluster/);
    for (const path of ["pods", "/api/v1", "/api/v1/watch/pods", "/version"]) {
      assert.throws(() => world.make({ path }), /must be the path of a collection/);
    }
    assert.throws(() => world.make({ path: "/api/v1/namespaces/shop/pods/a" }), /metadata\.name=a/);
  });
});

describe("ListWatch.stop and start", () => {
  it("keeps what is held, and after the next start reports the difference", async () => {
    using world = new World();
    for (const name of ["a", "b", "c"]) world.create(name);
    await using informer = world.make();
    await informer.start();
    await informer.stop();
    await world.received();
    world.update("a", { v: "2" });
    world.delete("b");
    world.create("d");
    assert.deepEqual(await world.received(), []);
    assert.deepEqual(informer.list().map(({ metadata }) => metadata?.name), ["a", "b", "c"]);
    assert.equal(world.server.openWatches, 0);
    const restarted = informer.start();
    assert.equal(informer.get("b", "shop")?.metadata?.name, "b", "until it has listed");
    await restarted;
    assert.deepEqual(await world.received(), ["connect", "delete b", "update a", "add d"]);
    assert.deepEqual(informer.list().map(({ metadata }) => metadata?.name), ["a", "c", "d"]);
    await informer.stop();
    await informer.start();
    assert.deepEqual(await world.received(), ["connect"]);
  });

  it("reports another object of the same name and version: of another server at the same address", async () => {
    using world = new World();
    world.create("a");
    const { uid } = world.server.get<Pod>("v1/pods", "shop/a")!.metadata!;
    let isAnother = false;
    world.server.intercept(async (request, next) => {
      const response = await next(request);
      return isAnother
        ? new Response((await response.text()).replaceAll(uid!, "another"), response)
        : response;
    }, { match: ({ isWatch }) => !isWatch });
    await using informer = world.make({ reflector: { useWatchList: false } });
    await informer.start();
    await informer.stop();
    await world.received();
    await informer.start();
    assert.deepEqual(await world.received(), ["connect"]);
    await informer.stop();
    isAnother = true;
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "update a"]);
  });

  it("calls no callback any more, also when a callback stops it in the middle of a list", async () => {
    using world = new World();
    for (const name of ["a", "b", "c"]) world.create(name);
    await using informer = world.make();
    informer.on("add", () => void informer.stop());
    await informer.start();
    world.create("d");
    assert.deepEqual(await world.received(), ["connect", "add a"]);
    assert.equal(world.server.openWatches, 0);
  });

  it("reports after the next start what a callback has cut off in the middle of a list", async () => {
    using world = new World();
    for (const name of ["a", "b", "c", "d"]) world.create(name);
    await using informer = world.make();
    let stops = 1;
    for (const verb of ["add", "delete"] as const) {
      informer.on(verb, () => {
        if (stops-- > 0) void informer.stop();
      });
    }
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "add a"]);
    world.delete("d");
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "add b", "add c"]);
    await informer.stop();
    for (const name of ["b", "c"]) world.delete(name);
    stops = 1;
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "delete b"]);
    await informer.start();
    assert.deepEqual(await world.received(), ["connect", "delete c"]);
  });

  it("reports after the next start all of a list that was stored in the middle of the stop", async () => {
    for (let turns = 1; turns <= 8; turns++) {
      using world = new World();
      for (let i = 0; i < 3_000; i++) world.create(`p-${i}`);
      await using informer = world.make();
      const known = new Set<string>();
      informer.on("add", ({ metadata }) => known.add(metadata!.name!));
      const started = informer.start();
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setTimeout(resolve));
      await informer.stop();
      await started;
      await informer.start();
      assert.equal(known.size, 3_000, `stopped after ${turns} turns`);
    }
  });

  it("can be called without a start, and twice", async () => {
    using world = new World();
    const informer = world.make();
    await informer.stop();
    await informer.start();
    await Promise.all([informer.stop(), informer.stop()]);
    assert.equal(world.server.openWatches, 0);
    assert.equal(world.clock.pendingTimers, 0);
  });
});

describe("ListWatch.on and off", () => {
  it("add and remove a callback once, for changes from then on", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    await informer.start();
    const seen: (string | undefined)[] = [];
    const callback = (object: Pod) => seen.push(object.metadata?.name);
    informer.on("change", callback);
    informer.on("add", callback);
    world.create("b");
    await world.received();
    informer.off("add", callback);
    informer.off("update", callback);
    informer.off("update", callback);
    world.create("c");
    world.update("c", { v: "2" });
    world.delete("c");
    await world.received();
    assert.deepEqual(seen, ["b", "b", "c", "c"]);
  });

  it("refuse a verb that there is not", () => {
    using world = new World();
    const informer = world.make();
    for (const verb of ["adds", "constructor"]) {
      assert.throws(() => informer.on(verb as "add", () => {}), /the verbs are add, update/);
      assert.throws(() => informer.off(verb as "add", () => {}), /the verbs are add, update/);
    }
  });

  it("log what a callback throws or rejects with, and call the others", async () => {
    using world = new World();
    world.create("a");
    await using informer = world.make();
    informer.on("add", () => {
      throw new Error("broken");
    });
    informer.on("add", () => Promise.reject(new Error("rejected")));
    const seen: unknown[] = [];
    informer.on("add", (object) => seen.push(object.metadata?.name));
    await informer.start();
    await world.received();
    assert.deepEqual(seen, ["a"]);
    assert.deepEqual(world.logger.of("error"), [
      'error: v1/pods: a callback for "add" threw: broken',
      'error: v1/pods: a callback for "add" threw: rejected',
    ]);
  });
});

describe("ListWatch", () => {
  it("starts by itself, on the config of a Watch", async () => {
    using world = new World();
    world.create("a");
    const options = { fetch: world.server.fetch, clock: world.clock, logger: world.logger };
    const watch = { config: kubeConfig };
    await using informer = new ListWatch<Pod>(
      PODS,
      watch,
      undefined,
      undefined,
      undefined,
      undefined,
      options,
    );
    informer.on("add", (object) => world.calls.push(`add ${object.metadata?.name}`));
    await world.clock.advance(0);
    assert.deepEqual(await world.received(), ["add a"]);
    const nowhere = { config: { ...kubeConfig, getCurrentCluster: () => null } };
    new ListWatch<Pod>(PODS, nowhere, undefined, true, "", "", options);
    await world.received();
    assert.match(world.logger.of("error")[0], /it has no current cluster/);
  });

  it("holds whole objects, which can be written back, or less of them", async () => {
    using world = new World();
    const managedFields = [{ manager: "me", operation: "Update", apiVersion: "v1" }] as const;
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}" };
    const whole = {
      metadata: { name: "a", namespace: "shop", annotations, managedFields: [...managedFields] },
    };
    world.server.create("v1/pods", whole);
    await using informer = world.make();
    await using smaller = world.make({ drop: ["metadata.managedFields"] });
    await Promise.all([informer.start(), smaller.start()]);
    assert.deepEqual(informer.get("a", "shop")?.metadata?.annotations, annotations);
    assert.equal(informer.get("a", "shop")?.metadata?.managedFields?.[0].manager, "me");
    assert.equal(smaller.get("a", "shop")?.metadata?.managedFields, undefined);
  });
});

describe("clusterOfKubeConfig", () => {
  it("makes a cluster with the namespace of the context and the credentials of the config", async () => {
    using world = new World();
    let token = 0;
    const rotating = {
      ...kubeConfig,
      applyToHTTPSOptions: (options: { headers?: Record<string, string>; auth?: string }) => {
        // The password of a config that has a token, too, is not sent.
        if (++token >= 3 && token <= 4) options.auth = "me:secret";
        if (token !== 3 && token !== 5) {
          options.headers = { authorization: `Bearer ${token}`, "Impersonate-User": "jane" };
        }
        return Promise.resolve();
      },
    };
    const cluster = clusterOfKubeConfig(rotating, { fetch: world.server.fetch, headers: { "X-Mine": "1" } });
    assert.equal(cluster.namespace, "shop");
    for (let n = 0; n < 5; n++) await cluster.request("/version");
    assert.deepEqual(
      world.server.requests.map(({ headers }) =>
        ["Authorization", "Impersonate-User", "X-Mine"].map((name) => headers.get(name))
      ),
      [
        ["Bearer 1", "jane", "1"],
        ["Bearer 2", "jane", "1"],
        ["Basic bWU6c2VjcmV0", null, "1"],
        ["Bearer 4", "jane", "1"],
        [null, null, "1"],
      ],
    );
  });

  it("sends no credentials of another cluster that the config has been switched to", async () => {
    using world = new World();
    let name = "one";
    const config = {
      ...kubeConfig,
      getCurrentCluster: () => ({ server: `http://${name}` }),
      applyToHTTPSOptions: (options: { headers?: Record<string, string> }) => {
        options.headers = { Authorization: `Bearer of-${name}` };
        return Promise.resolve();
      },
    };
    const cluster = clusterOfKubeConfig(config, { fetch: world.server.fetch });
    await cluster.request("/version");
    name = "two";
    await assert.rejects(
      cluster.request("/version"),
      /Cannot use the KubeConfig for "http:\/\/one": it was switched to another cluster; make one for each/,
    );
    name = "one";
    await cluster.request("/version");
    assert.deepEqual(world.server.requests.map(({ headers }) => headers.get("Authorization")), [
      "Bearer of-one",
      "Bearer of-one",
    ]);
  });

  it("refuses a header that cannot be sent, without showing it", async () => {
    using world = new World();
    const broken = (headers: Record<string, string>) => ({
      ...kubeConfig,
      applyToHTTPSOptions: (options: { headers?: Record<string, string> }) => {
        options.headers = headers;
        return Promise.resolve();
      },
    });
    const wrong: Record<string, string>[] = [{ Authorization: "Bearer secret\nsecret" }, {
      "X-Secret": "secret\n",
    }];
    for (const headers of wrong) {
      const cluster = clusterOfKubeConfig(broken(headers), {
        fetch: world.server.fetch,
      });
      await assert.rejects(
        cluster.request("/version"),
        (error: Error) => !/secret/.test(error.message),
      );
    }
    assert.equal(world.server.requests.length, 0);
  });
});
