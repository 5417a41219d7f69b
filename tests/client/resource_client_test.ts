import {
  isConflict,
  isExpired,
  isForbidden,
  type KubernetesObject,
  NamespaceSet,
  newCluster,
  parseResource,
  StatusError,
} from "@listwatch/cache";
import { DecodeError, newStatus, type TypedResourceOptions } from "@listwatch/cache/client";
import type { ListerWatcher, Quarantined, WatchItem } from "@listwatch/cache/reflector";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as z from "zod/mini";
import { podList, recorder } from "./recorder.ts";

const SERVER = "https://api.example";

type Pod = KubernetesObject & { spec?: { nodeName?: string } };

function client(
  response: Response | (() => Response),
  options: TypedResourceOptions<Pod> = {},
  resource = "v1/pods",
) {
  const { fetch, asked } = recorder(response);
  return {
    pods: newCluster({ server: SERVER, fetch }).resource<Pod>(parseResource(resource), options),
    asked,
  };
}

function lines(...values: unknown[]): Response {
  return new Response(values.map((value) => `${JSON.stringify(value)}\n`).join(""), {
    headers: { "Content-Type": "application/json" },
  });
}

async function all<T>(stream: AsyncIterable<readonly T[]>): Promise<T[]> {
  const items: T[] = [];
  for await (const batch of stream) items.push(...batch);
  return items;
}

describe("ResourceClient of several namespaces", () => {
  const namespaces = new NamespaceSet(["a", "b"]);
  const versions: Record<string, string> = { a: "10", b: "9" };
  const ages: Record<string, string> = { a: "0", b: "7" };

  function clientOfBoth() {
    const urls: URL[] = [];
    const fetch = (url: string) => {
      urls.push(new URL(url));
      const [, namespace] = /namespaces\/([a-z]+)/.exec(url)!;
      const items = [
        { metadata: { name: "web", namespace, uid: `uid-${namespace}`, resourceVersion: "1" } },
        {},
      ];
      return Response.json({
        kind: "PodList",
        apiVersion: "v1",
        metadata: { resourceVersion: versions[namespace] },
        items,
      }, { headers: { Age: ages[namespace] } });
    };
    return { pods: newCluster({ server: SERVER, fetch }).resource<Pod>("v1/pods", { namespaces }), urls };
  }

  it("lists all of each, at the oldest version: up to that one everything is there", async () => {
    const { pods, urls } = clientOfBoth();
    const page = await pods.list({ limit: 1, labelSelector: "app" });
    assert.deepEqual(page.metadata, { resourceVersion: "9" });
    assert.equal(page.ageMs, 7_000, "as old as the oldest");
    assert.deepEqual(page.items.map(({ metadata }) => metadata?.namespace), ["a", "b"]);
    assert.equal(page.quarantined?.length, 2);
    assert.deepEqual(urls.map(({ search }) => search), ["?labelSelector=app", "?labelSelector=app"]);
  });

  it("is watched in one of them at a time", async () => {
    const { pods } = clientOfBoth();
    await assert.rejects(pods.watch(), TypeError);
    assert.equal(pods.inNamespace("a").namespace, "a");
    const both = { namespaces, namespace: "a" };
    assert.throws(() => newCluster({ server: SERVER }).resource<Pod>("v1/pods", both), TypeError);
  });
});

describe("ResourceClient.metadata", () => {
  it("wants metadata only, and nothing stale, beside the headers of the client", async () => {
    const { pods, asked } = client(podList(), { headers: { "X-Own": "1" } });
    await pods.metadata!().list();
    const { headers } = asked[0];
    assert.match(headers.get("Accept")!, /as=PartialObjectMetadataList;/);
    assert.deepEqual([headers.get("Cache-Control"), headers.get("X-Own")], ["stale-if-error=0", "1"]);
  });
});

describe("ResourceClient.patch", () => {
  it("says what it sends, whatever headers the client has", async () => {
    const { pods, asked } = client(Response.json(pod("a")), { headers: { "Content-Type": "text/plain" } });
    await pods.patch("a", { metadata: { labels: { a: "b" } } });
    assert.equal(asked[0].headers.get("Content-Type"), "application/merge-patch+json");
  });
});

describe("ResourceClient.identity", () => {
  it("is another one for each selector, namespace and projection", () => {
    const options: TypedResourceOptions<Pod>[] = [
      {},
      { namespace: "shop" },
      { labelSelector: "a=b" },
      { fieldSelector: "a=b" },
      { metadataOnly: true },
      { drop: ["metadata.annotations"] },
      { drop: ["metadata.annotations", "metadata.labels"] },
    ];
    const identities = options.map((each) =>
      (client(podList(), each).pods as { identity?: string }).identity
    );
    assert.equal(new Set(identities).size, options.length);
  });
});

describe("ResourceClient.list", () => {
  it("asks for just what was given: unset, empty, zero and false options are absent", async () => {
    const { pods, asked } = client(podList());
    await pods.list();
    await pods.list({
      resourceVersion: "",
      limit: 0,
      continue: "",
      timeoutSeconds: 0,
      allowWatchBookmarks: false,
      sendInitialEvents: false,
      labelSelector: "",
    });
    await pods.list({
      resourceVersion: "0",
      limit: 500,
      resourceVersionMatch: "NotOlderThan",
      continue: "abc",
    });
    assert.deepEqual(asked.map(({ query }) => query), [
      {},
      {},
      { resourceVersion: "0", limit: "500", resourceVersionMatch: "NotOlderThan", continue: "abc" },
    ]);
    assert.equal(asked[0].target, "/api/v1/pods");
    assert.equal(
      asked[0].headers.get("Accept"),
      "application/json;drop=metadata.managedFields,application/json",
    );
  });

  it("is narrowed by the client's namespace and selectors, which a call's own replace", async () => {
    const { pods, asked } = client(podList(), {
      namespace: "shop",
      labelSelector: "app in (a, b)",
      fieldSelector: "spec.nodeName=n1",
      headers: { "X-Mine": "1" },
    }, "apps/v1/deployments");
    await pods.list();
    await pods.list({ labelSelector: "x=y" });
    assert.equal(
      asked[0].target,
      "/apis/apps/v1/namespaces/shop/deployments?labelSelector=app+in+%28a%2C+b%29&fieldSelector=spec.nodeName%3Dn1",
    );
    assert.deepEqual(asked[1].query, { labelSelector: "x=y", fieldSelector: "spec.nodeName=n1" });
    assert.equal(asked[0].headers.get("X-Mine"), "1");
  });

  it("gives the page with each item's kind filled in, and sets broken items aside", async () => {
    const received: Quarantined[] = [];
    const response = Response.json({
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: "7", continue: "more", remainingItemCount: 3 },
      items: [{ metadata: { name: "a" }, extra: 1 }, { metadata: { name: "" } }],
    });
    const { pods } = client(response, { onInvalid: (quarantined) => received.push(quarantined) });
    const page = await pods.list();
    assert.deepEqual(page.metadata, { resourceVersion: "7", continue: "more", remainingItemCount: 3 });
    assert.deepEqual(page.items, [
      { metadata: { name: "a" }, extra: 1, apiVersion: "v1", kind: "Pod" } as Pod,
    ]);
    assert.deepEqual(page.quarantined, [{ reason: "must not be empty", path: "items[1].metadata.name" }]);
    assert.deepEqual(received, page.quarantined);
  });

  it("says how old its content is, where it comes from a cache", async () => {
    for (
      const [age, ageMs] of [["61", 61_000], ["0", undefined], ["old", undefined], [undefined, undefined]]
    ) {
      const response = podList();
      if (age !== undefined) response.headers.set("Age", `${age}`);
      const { pods } = client(response);
      assert.equal((await pods.list()).ageMs, ageMs);
    }
  });

  it("says in its error what could not be listed and where", async () => {
    const refused = Response.json(newStatus(403, "Forbidden", "no"), { status: 403 });
    const text = async (options: TypedResourceOptions<Pod>, resource?: string) => {
      const error = await client(refused, options, resource).pods.list().catch((error) => error);
      assert.ok(error instanceof StatusError && isForbidden(error));
      return error.message;
    };
    assert.equal(await text({}), 'Cannot list "pods": the server answered 403: no');
    assert.equal(
      await text({ namespace: "shop" }, "apps/v1/deployments"),
      'Cannot list "deployments.apps" in "shop": the server answered 403: no',
    );
  });

  it("refuses an answer that is a Table, a page of HTML, no list, or nothing", async () => {
    const refusal = async (response: Response) => {
      const error = await client(response).pods.list().catch((error) => error);
      assert.ok(error instanceof DecodeError, String(error));
      return error.message;
    };
    assert.match(
      await refusal(Response.json({ kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: {}, rows: [] })),
      /^Cannot list "pods": unsupported list: the server answered with a Table/,
    );
    assert.match(
      await refusal(new Response("<html>", { headers: { "Content-Type": "text/html" } })),
      /answered with a page of HTML .* is there a login or a proxy before it\?$/,
    );
    assert.match(await refusal(Response.json({})), /the answer is no list: metadata is missing/);
    assert.match(await refusal(new Response(null)), /Cannot list "pods": the answer is not JSON/);
  });

  it("throws a Status that came with a 200", async () => {
    const { pods } = client(Response.json(newStatus(410, "Expired", "too old")));
    await assert.rejects(pods.list(), isExpired);
  });
});

describe("ResourceClient.watch", () => {
  it("asks with watch=true, and gives the events as they came", async () => {
    const events = [
      { type: "ADDED", object: pod("a", { namespace: "shop" }) },
      { type: "BOOKMARK", object: { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "9" } } },
    ];
    const { pods, asked } = client(lines(...events), { namespace: "shop" });
    const stream = await pods.watch({
      resourceVersion: "7",
      allowWatchBookmarks: true,
      sendInitialEvents: true,
      resourceVersionMatch: "NotOlderThan",
      timeoutSeconds: 301,
    });
    assert.deepEqual(await all(stream), events);
    assert.deepEqual(asked[0].query, {
      watch: "true",
      resourceVersion: "7",
      allowWatchBookmarks: "true",
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      timeoutSeconds: "301",
    });
    assert.equal(asked[0].target.split("?")[0], "/api/v1/namespaces/shop/pods");
  });

  it("continues after an object that is broken, and reports it with its place", async () => {
    const { pods } = client(lines(
      { type: "ADDED", object: pod("a") },
      { type: "ADDED", object: { metadata: { name: 1 } } },
      { type: "ADDED", object: pod("b") },
    ));
    const items = await all(await pods.watch());
    assert.deepEqual(items.map((item) => item.type), ["ADDED", "QUARANTINED", "ADDED"]);
    const { quarantined } = items[1] as Extract<WatchItem<Pod>, { type: "QUARANTINED" }>;
    assert.equal(quarantined.path, "object.metadata.name");
  });

  it("that is refused says so before there is a stream", async () => {
    const { pods } = client(
      Response.json(newStatus(410, "Expired", "too old resource version"), { status: 410 }),
      { namespace: "default" },
    );
    await assert.rejects(pods.watch(), (error) => {
      assert.ok(isExpired(error));
      assert.equal(
        (error as Error).message,
        'Cannot watch "pods" in "default": the server answered 410: too old resource version',
      );
      return true;
    });
  });

  it("without a body ends at once, and one with HTML or a code that is not 200 is refused", async () => {
    assert.deepEqual(await all(await client(new Response(null)).pods.watch()), []);
    const refusal = async (init: ResponseInit) => {
      let isCancelled = false;
      const body = new ReadableStream<Uint8Array>({ cancel: () => void (isCancelled = true) });
      const fetch = () => new Response(body, init);
      const watched = newCluster({ server: SERVER, fetch }).resource("v1/pods").watch();
      const error = await watched.then(() => assert.fail("it is watched"), (error: Error) => error);
      assert.ok(isCancelled, "its connection is free");
      return error.message;
    };
    const html = { headers: { "Content-Type": "text/html; charset=utf-8" } };
    assert.match(await refusal(html), /Cannot watch "pods": .* answered with a page of HTML/);
    assert.match(await refusal({ status: 202 }), / answered 202, and a watch begins with 200$/);
  });

  it("answered with a list has no events but the error that says so", async () => {
    const items = await all(await client(podList("a")).pods.watch());
    assert.deepEqual(items.map((item) => item.type), ["ERROR"]);
  });

  it("accepts frames up to maxFrameBytes", async () => {
    const { pods } = client(lines({ type: "ADDED", object: pod("a".repeat(100)) }), { maxFrameBytes: 100 });
    assert.equal((await all(await pods.watch()))[0].type, "ERROR");
  });

  it("ends with the signal's reason, and so does its connection", async () => {
    const server = new InMemoryApiServer();
    const controller = new AbortController();
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
    const stream = await pods.watch({ resourceVersion: server.resourceVersion }, {
      signal: controller.signal,
    });
    const next = stream[Symbol.asyncIterator]().next();
    const reason = new Error("enough");
    controller.abort(reason);
    await assert.rejects(next, reason);
    server.close();
  });
});

describe("ResourceClient: verbs", () => {
  const kept = () => Response.json(pod("a", { namespace: "shop" }));

  it("go to one object, by its own namespace, the call's or the client's", async () => {
    const { pods, asked } = client(kept(), { namespace: "shop" });
    await pods.get("a");
    await pods.get("a", { namespace: "other", subresource: "status" });
    await pods.create({ metadata: { name: "b" } }, { query: { dryRun: "All" } });
    await pods.create({ metadata: { name: "b", namespace: "own" } });
    await pods.replace({ metadata: { name: "b", namespace: "own", resourceVersion: "3" } });
    await pods.patch("a", { metadata: { labels: { x: null } } }, { subresource: "status" });
    await pods.delete("a", {
      propagationPolicy: "Foreground",
      gracePeriodSeconds: 0,
      preconditions: { uid: "u" },
    });
    assert.deepEqual(asked.map(({ method, target }) => `${method} ${target}`), [
      "GET /api/v1/namespaces/shop/pods/a",
      "GET /api/v1/namespaces/other/pods/a/status",
      "POST /api/v1/namespaces/shop/pods?dryRun=All",
      "POST /api/v1/namespaces/own/pods",
      "PUT /api/v1/namespaces/own/pods/b",
      "PATCH /api/v1/namespaces/shop/pods/a/status",
      "DELETE /api/v1/namespaces/shop/pods/a",
    ]);
    assert.equal(asked[5].headers.get("Content-Type"), "application/merge-patch+json");
    assert.equal(asked[5].body, '{"metadata":{"labels":{"x":null}}}');
    assert.deepEqual(JSON.parse(asked[6].body), {
      kind: "DeleteOptions",
      apiVersion: "v1",
      gracePeriodSeconds: 0,
      propagationPolicy: "Foreground",
      preconditions: { uid: "u" },
    });
  });

  it("delete nothing in a dry run, of which an API server reads in the body alone", async () => {
    const { pods, asked } = client(kept());
    await pods.delete("a", { query: { dryRun: "All" } });
    assert.deepEqual(JSON.parse(asked[0].body).dryRun, ["All"]);
  });

  it("give the object as the server keeps it", async () => {
    const { pods } = client(kept());
    assert.deepEqual(await pods.get("a"), pod("a", { namespace: "shop" }) as Pod);
  });

  it("refuse an answer that is not accepted", async () => {
    const { pods } = client(Response.json({ kind: "Pod", metadata: {} }), { namespace: "shop" });
    await assert.rejects(
      pods.get("a"),
      (error) =>
        error instanceof DecodeError &&
        error.message ===
          'Cannot get "a" of "pods" in "shop": the answer is not accepted: metadata.name is missing, must be a string',
    );
  });

  it("refuse a name that would lead elsewhere, before anything is sent", async () => {
    const { pods, asked } = client(kept());
    await assert.rejects(pods.delete(""), /Cannot delete "pods": the name is empty/);
    await assert.rejects(pods.replace({ metadata: {} }), /the name is empty/);
    const { name } = ({} as Pod).metadata ?? {};
    await assert.rejects(pods.delete(name!), /Cannot delete undefined of "pods": the name is empty/);
    await assert.rejects(pods.get(null as unknown as string), /the name is empty/);
    for (const name of [".", "..", "a/b", "a%2Fb"]) {
      await assert.rejects(pods.delete(name), TypeError);
      await assert.rejects(pods.get("a", { namespace: name }), TypeError);
      assert.throws(() => client(kept(), { namespace: name }), TypeError);
    }
    assert.equal(asked.length, 0);
  });

  it("work with an API server, which refuses a replacement that comes too late", async () => {
    const server = new InMemoryApiServer();
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods", {
      namespace: "default",
    });
    const created = await pods.create(pod("a"));
    const patched = await pods.patch("a", { metadata: { labels: { x: "1" } } });
    assert.deepEqual(patched.metadata?.labels, { x: "1" });
    await assert.rejects(pods.replace(created), isConflict);
    await pods.replace({ ...patched, metadata: { ...patched.metadata, labels: { x: "2" } } });
    assert.deepEqual((await pods.get("a")).metadata?.labels, { x: "2" });
    const steps = [{ op: "test", path: "/metadata/labels/x", value: "2" }, {
      op: "remove",
      path: "/metadata/labels/x",
    }];
    assert.deepEqual((await pods.patch("a", steps)).metadata?.labels ?? {}, {});
    await assert.rejects(pods.patch("a", steps), StatusError);
    await pods.delete("a");
    assert.deepEqual((await pods.list()).items, []);
    server.close();
  });
});

describe("ResourceClient", () => {
  it("that is no resource's text is refused", () => {
    assert.throws(
      () => client(podList(), {}, "pods"),
      /Cannot read "pods" as a resource: .*findResource of .\/client finds it by such a name/,
    );
  });

  it("may be given by its parts", async () => {
    const { fetch, asked } = recorder(podList());
    await newCluster({ server: SERVER, fetch }).resource({
      group: "example.com",
      version: "v1",
      resource: "widgets",
    })
      .list();
    assert.equal(asked[0].target, "/apis/example.com/v1/widgets");
  });

  it("has the type of its schema, and refuses objects of another shape", async () => {
    const Widget = z.looseObject({ spec: z.looseObject({ replicas: z.number() }) });
    const { fetch } = recorder(Response.json({
      kind: "WidgetList",
      apiVersion: "example.com/v1",
      metadata: {},
      items: [{ metadata: { name: "a" }, spec: { replicas: 1 } }, { metadata: { name: "b" }, spec: {} }],
    }));
    const widgets = newCluster({ server: SERVER, fetch }).resource("example.com/v1/widgets", {
      schema: Widget,
    });
    const { items, quarantined } = await widgets.list();
    const replicas: number = items[0].spec.replicas;
    const name: string | undefined = items[0].metadata?.name;
    assert.deepEqual([items.length, replicas, name], [1, 1, "a"]);
    assert.equal(quarantined?.[0].path, "items[1].spec.replicas");
    // @ts-expect-error a Widget's replicas is a number
    const text: string = items[0].spec.replicas;
    assert.equal(text, 1);
  });

  it("is a ListerWatcher of its type", () => {
    const { pods } = client(podList());
    const source: ListerWatcher<Pod> = pods;
    assert.equal(source, pods);
    // @ts-expect-error it does not watch services
    const services: ListerWatcher<KubernetesObject & { spec: { clusterIP: string } }> = pods;
    assert.ok(services);
  });
});

describe("ResourceClient.describe", () => {
  it("finds the kind and the scope of a resource by discovery", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    assert.deepEqual(await cluster.resource("apps/v1/deployments").describe(), {
      apiVersion: "apps/v1",
      kind: "Deployment",
      isNamespaced: true,
    });
    assert.equal((await cluster.resource("v1/nodes").describe()).isNamespaced, false);
  });

  it("says that the server does not serve it", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    await assert.rejects(
      cluster.resource("v1/widgets").describe(),
      /Cannot discover "widgets": http:\/\/in-memory serves v1 without it/,
    );
  });

  it("says so of a version without resources, of which Go writes null", async () => {
    const { pods } = client(Response.json({ kind: "APIResourceList", groupVersion: "v1", resources: null }));
    await assert.rejects(pods.describe(), /Cannot discover "pods".*serves v1 without it/);
  });
});

describe("ResourceClient.on", () => {
  it("asks another server with the same options", async () => {
    const there = recorder(podList());
    const { pods, asked } = client(podList(), { namespace: "shop", labelSelector: "app=web" });
    const other = newCluster({ server: "https://other.example", fetch: there.fetch });
    await pods.on(other).list();
    assert.equal(asked.length, 0);
    assert.deepEqual(there.urls, [
      "https://other.example/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb",
    ]);
    assert.equal(pods.on(other).cluster.server, "https://other.example");
  });
});

describe("ResourceClient.managedFields", () => {
  it("keeps the managed fields, and leaves out what it left out besides", async () => {
    const item = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web-1", managedFields: [{ manager: "me" }], labels: { a: "b" } },
      spec: { nodeName: "n1" },
    };
    const body = () =>
      Response.json({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items: [item] });
    const { pods } = client(body, { drop: ["metadata.labels"] });
    assert.deepEqual((await pods.list()).items[0].metadata, { name: "web-1" });
    assert.deepEqual((await pods.managedFields().list()).items[0].metadata, {
      name: "web-1",
      managedFields: [{ manager: "me" }],
    });
  });
});

describe("ResourceClient.clusterUid", () => {
  it("is the uid of the namespace kube-system, which every cluster has, and nothing else", async () => {
    const { pods, asked } = client(Response.json({ metadata: { name: "kube-system", uid: "one" } }));
    assert.equal(await pods.clusterUid(), "one");
    assert.equal(asked[0].target, "/api/v1/namespaces/kube-system");
    for (const answer of [{ metadata: { name: "kube-system" } }, { metadata: { uid: "" } }, {}, []]) {
      await assert.rejects(client(Response.json(answer)).pods.clusterUid(), DecodeError);
    }
  });
});

describe("ResourceClient.apply", () => {
  it("sends the configuration as an apply patch in the name of its manager", async () => {
    const answer = { apiVersion: "v1", kind: "Pod", metadata: { name: "web-1", namespace: "shop" } };
    const { pods, asked } = client(() => Response.json(answer));
    const config = { apiVersion: "v1", kind: "Pod", metadata: { name: "web-1", namespace: "shop" } };
    await pods.apply(config, { fieldManager: "me", force: true });
    assert.deepEqual([asked[0].method, asked[0].target, asked[0].headers.get("Content-Type")], [
      "PATCH",
      "/api/v1/namespaces/shop/pods/web-1?fieldManager=me&force=true",
      "application/apply-patch+yaml",
    ]);
    assert.deepEqual(JSON.parse(asked[0].body), config);
    for (const type of [{}, { apiVersion: "v1" }, { kind: "Pod" }]) {
      assert.throws(
        () => pods.apply({ ...type, metadata: { name: "a" } }, { fieldManager: "me" }),
        /Cannot apply "a" of "pods": a configuration has `apiVersion` and `kind`/,
      );
    }
  });
});
