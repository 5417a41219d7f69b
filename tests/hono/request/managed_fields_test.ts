import assert from "node:assert/strict";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { parse } from "yaml";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";
const BARE = "application/json;drop=metadata.managedFields";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/** A pod with managedFields, before and behind other metadata. */
function pod(name: string, version: number, { first = false } = {}): TestObject {
  const managedFields = [{ manager: "kubelet", fieldsV1: { "f:status": { 'k:{"type":"Ready"}': {} } } }];
  const { metadata } = object(name, version, { labels: { app: "web" } });
  return {
    metadata: first ? { managedFields, ...metadata } : { ...metadata, managedFields },
    spec: { containers: [{ name: "managedFields" }], managedFields: "of another place" },
  };
}

function apiOf(objects: readonly TestObject[] = [pod("shop/a", 1), pod("shop/b", 2, { first: true })]) {
  const informer = FakeInformer.with(objects, 10);
  return { informer, api: readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true }) };
}

/** A document as it is without the managedFields of metadata. */
function bare(document: Json): Json {
  const omit = (name: string, value: Json): Json =>
    name === "metadata" ? { ...value, managedFields: undefined } : value;
  return JSON.parse(JSON.stringify(document, omit));
}

describe("withoutManagedFields", () => {
  it("shows objects, metadata and rows of Tables without them, and everything else of them", async () => {
    const { api } = apiOf();
    const forms: [path: string, accept: string][] = [
      [PODS, "application/json"],
      [`${PODS}?pretty=1`, "application/json"],
      ["/api/v1/namespaces/shop/pods/b", "application/json"],
      [PODS, METADATA.replace("Metadata;", "MetadataList;")],
      ["/api/v1/namespaces/shop/pods/a", METADATA],
      [PODS, TABLE],
      [`${PODS}?includeObject=Object`, TABLE],
      [`${PODS}?includeObject=None`, TABLE],
      [`${PODS}?fields=metadata,spec.containers`, "application/json"],
    ];
    for (const [path, accept] of forms) {
      const whole = await get(api, path, { accept });
      assert.equal(JSON.stringify(whole).includes('"kubelet"'), !path.includes("None"), `${path} ${accept}`);
      const dropped = await get(api, path, {
        accept: `${accept};drop=metadata.managedFields,application/json`,
      });
      assert.deepEqual(dropped, bare(whole), `${path} ${accept}`);
    }
  });

  it("shows them in YAML without them", async () => {
    const { api } = apiOf();
    const read = async (accept: string) =>
      await (await api.request(PODS, { headers: { Accept: accept } })).text();
    const whole = await read("application/yaml");
    assert.ok(whole.includes("kubelet"));
    assert.deepEqual(
      parse(await read("application/yaml;drop=metadata.managedFields")),
      bare(parse(whole)),
    );
  });

  it("shows the events of watches without them, which others receive with them", async () => {
    const { api, informer } = apiOf();
    const initial = "watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1";
    for (const query of ["watch=1&resourceVersion=10", initial]) {
      for (const accept of ["application/json", METADATA, TABLE]) {
        const whole = await WatchReader.open(api, `${PODS}?${query}`, accept);
        const dropped = await WatchReader.open(
          api,
          `${PODS}?${query}`,
          `${accept};drop=metadata.managedFields`,
        );
        const version = informer.indexer.list().length + 10;
        informer.put(pod(`shop/new-${version}`, version, { first: version % 2 === 0 }));
        const count = query === initial ? version - 10 + 2 : 1;
        const events = await whole.events(count);
        assert.ok(JSON.stringify(events).includes('"kubelet"'));
        assert.deepEqual(await dropped.events(count), bare(events), `${query} ${accept}`);
      }
    }
  });

  it("has an ETag of its own", async () => {
    const { api } = apiOf();
    for (const path of [PODS, "/api/v1/namespaces/shop/pods/a"]) {
      const tag = async (accept: string) =>
        (await api.request(path, { headers: { Accept: accept } })).headers.get("ETag");
      const [whole, dropped] = [await tag("application/json"), await tag(BARE)];
      assert.ok(whole && dropped);
      assert.notEqual(whole, dropped);
      const headers = { Accept: BARE, "If-None-Match": dropped };
      assert.equal((await api.request(path, { headers })).status, 304);
    }
  });

  it("is the only cut that a client can ask for, as in kube-apiserver", async () => {
    const { api } = apiOf();
    const other = "application/json;drop=spec";
    await get(api, PODS, { accept: other, status: 406 });
    const { items } = await get(api, PODS, { accept: `${other}, application/json` });
    assert.ok(items[0].metadata.managedFields);
    const empty = await get(api, PODS, { accept: "application/json;drop=" });
    assert.ok(empty.items[0].metadata.managedFields);
  });

  it("is requested by an informer that drops them, and by no other one", async () => {
    const { api } = apiOf();
    const received: string[] = [];
    const fetch = async (url: string | URL | Request, init?: RequestInit) => {
      const response = await api.request(String(url), init);
      if (!String(url).includes("/pods")) return response;
      const [body, copy] = response.body!.tee();
      const reader = copy.pipeThrough(new TextDecoderStream()).getReader();
      (async () => {
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          received.push(next.value);
        }
      })().catch(() => {});
      return new Response(body, response);
    };
    const cluster = newCluster({ server: "http://cache.test", fetch });
    for (
      const [options, arrives] of [[{}, false], [{ keep: "everything" }, true], [
        { metadataOnly: true },
        false,
      ]] as const
    ) {
      received.length = 0;
      const informer = new SharedIndexInformer(cluster.resource("v1/pods", options));
      const stop = new AbortController();
      const run = informer.run(stop.signal);
      await informer.synced();
      assert.equal(received.join("").includes('"kubelet"'), arrives);
      assert.equal(informer.indexer.list().length, 2);
      stop.abort();
      await run;
    }
  });

  it("shares its bytes with the whole view where the informer drops them anyway", async () => {
    const { api: upstream } = apiOf();
    const fetch = async (url: string | URL | Request, init?: RequestInit) =>
      await upstream.request(String(url), init);
    const cluster = newCluster({ server: "http://cache.test", fetch });
    const stop = new AbortController();
    const tags: Record<string, boolean> = {};
    for (const keep of ["", "everything"] as const) {
      const informer = new SharedIndexInformer(cluster.resource("v1/pods", keep === "" ? {} : { keep }));
      const run = informer.run(stop.signal);
      await informer.synced();
      const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
      const tag = async (accept: string) =>
        (await api.request(PODS, { headers: { Accept: accept } })).headers.get("ETag");
      tags[keep] = await tag("application/json") === await tag(BARE);
      void run;
    }
    stop.abort();
    assert.deepEqual(tags, { "": true, everything: false });
  });
});
