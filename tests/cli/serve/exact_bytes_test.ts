/**
 * What readers of `serve` receive is what the API server sent, byte for byte.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { serve, type ServeOptions } from "@listwatch/cache/cli";
import { serveFetch } from "@listwatch/cache/node";
import { LogRecorder } from "../../log_recorder.ts";
import { kubeconfigText } from "../real_cluster.ts";

// What JSON.parse does not keep: digits, the order of such keys, `__proto__`, repeated keys, escapes.
const REST =
  '"z":9007199254740993,"2":1.0,"1":1e2,"__proto__":{"a":18446744073709551615},"data":{"k":"\\u00e9é日\\/"}';

function widget(name: string, version: number, isTyped: boolean): string {
  const type = isTyped ? '"kind":"ConfigMap","apiVersion":"v1",' : "";
  return `{${type}"metadata":${metadata(name, version)},${REST}}`;
}

function metadata(name: string, version: number): string {
  return `{"name":"${name}","namespace":"shop","uid":"u-${name}","resourceVersion":"${version}",` +
    '"generation":9007199254740993,"annotations":{"b":"","2":"","1":""}}';
}

const LIST = "/api/v1/namespaces/shop/configmaps";

/** An API server with two ConfigMaps, which changes one when the watch comes. */
function answer(request: Request): Response {
  const { pathname, searchParams } = new URL(request.url);
  const json = (text: string) => new Response(text, { headers: { "Content-Type": "application/json" } });
  if (pathname === "/version") return json('{"major":"1","minor":"36","gitVersion":"v1.36.0"}');
  if (pathname === "/api") return json('{"kind":"APIVersions","versions":["v1"]}');
  if (pathname === "/apis") return json('{"kind":"APIGroupList","groups":[]}');
  if (pathname === "/api/v1") {
    return json(
      '{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap",' +
        '"namespaced":true,"kind":"ConfigMap","verbs":["get","list","watch"]}]}',
    );
  }
  if (searchParams.has("sendInitialEvents")) {
    return new Response('{"kind":"Status","code":422,"reason":"Invalid"}', { status: 422 });
  }
  if (!searchParams.has("watch")) {
    const items = [widget("a", 1, false), widget("b", 2, false)];
    return json(
      `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[${items}]}`,
    );
  }
  return new Response(
    new ReadableStream({
      start(controller) {
        const line = `{"type":"MODIFIED","object":${widget("b", 6, true)}}\n`;
        controller.enqueue(new TextEncoder().encode(line));
      },
    }),
  );
}

/** Reads of one `serve`, or of one whose cluster is another `serve`. */
async function read(storage: ServeOptions["storage"], { aboveAnother = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "listwatch-exact-"));
  const stop = new AbortController();
  const api = await serveFetch(answer, { signal: stop.signal });
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, kubeconfigText(api.url));
  const start = () =>
    serve({
      source: { kind: "kubeconfig", path: kubeconfig },
      resources: ["configmaps"],
      port: 0,
      freshness: "as-is",
      ...(storage && { storage }),
      logger: new LogRecorder(),
      signal: stop.signal,
    });
  let served = await start();
  await served.synced();
  const below = served;
  if (aboveAnother) {
    await writeFile(kubeconfig, kubeconfigText(below.url));
    served = await start();
    await served.synced();
  }
  const text = async (path: string) => await (await fetch(served.url + path)).text();
  // The one above may start after the change.
  const from = aboveAnother ? "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&" : "";
  const watch = await text(`${LIST}?watch=1&${from}resourceVersion=${aboveAnother ? 6 : 5}&timeoutSeconds=1`);
  const list = await text(`${LIST}?resourceVersion=6&resourceVersionMatch=NotOlderThan`);
  const object = await text(`${LIST}/a`);
  const as = async (query: string, shape: string) => {
    const Accept = `application/json;as=${shape};v=v1;g=meta.k8s.io`;
    return await (await fetch(served.url + LIST + query, { headers: { Accept } })).text();
  };
  const version = "resourceVersion=6&resourceVersionMatch=NotOlderThan";
  const watched = `watch=1&${from}resourceVersion=${aboveAnother ? 6 : 5}&timeoutSeconds=1`;
  const tables = {
    lists: await as(`?${version}&includeObject=Object`, "Table"),
    one: await as("/a?includeObject=Object", "Table"),
    watch: await as(`?${watched}&includeObject=Object`, "Table"),
    metadata: await as(`?${version}`, "Table"),
    partialList: await as(`?${version}`, "PartialObjectMetadataList"),
    partialWatch: await as(`?${watched}`, "PartialObjectMetadata"),
    // The first events of this watch are of objects that were looked at.
    selected: await text(
      `${LIST}?watch=1&resourceVersion=0&timeoutSeconds=1&fieldSelector=${
        encodeURIComponent("metadata.name!=b")
      }`,
    ),
  };
  const indented = {
    list: await text(`${LIST}?resourceVersion=6&resourceVersionMatch=NotOlderThan&pretty=true`),
    object: await text(`${LIST}/a?pretty=true`),
  };
  stop.abort();
  await Promise.all([served.finished, below.finished]);
  await api.finished;
  await rm(folder, { recursive: true });
  return { watch, list, object, tables, indented };
}

describe("serve()", () => {
  for (const storage of [undefined, "texts", "short-texts"] as const) {
    it(`serves what the API server sent, byte for byte, with storage: ${storage}`, async () => {
      const { watch, list, object } = await read(storage);
      assert.equal(watch.split("\n")[0], `{"type":"MODIFIED","object":${widget("b", 6, true)}}`);
      assert.equal(object.trimEnd(), widget("a", 1, true));
      // Items of lists have no type, as an API server writes them.
      assert.ok(list.includes(`"items":[${widget("a", 1, false)},${widget("b", 6, false)}]`), list);
    });
  }

  for (const storage of [undefined, "short-texts"] as const) {
    it(`serves the objects of Tables and their metadata byte for byte, with storage: ${storage}`, async () => {
      const { tables } = await read(storage);
      const partial = (name: string, version: number) =>
        `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":${
          metadata(name, version)
        }}`;
      for (const text of [`"object":${widget("a", 1, true)}}`, `"object":${widget("b", 6, true)}}`]) {
        assert.ok(tables.lists.includes(text), tables.lists);
      }
      assert.ok(tables.one.includes(`"object":${widget("a", 1, true)}}]}`), tables.one);
      assert.ok(tables.watch.includes(`"object":${widget("b", 6, true)}}]}}\n`), tables.watch);
      assert.ok(tables.metadata.includes(`"object":${partial("a", 1)}}`), tables.metadata);
      assert.ok(tables.partialList.includes(`[${partial("a", 1)},${partial("b", 6)}]`), tables.partialList);
      assert.ok(tables.partialWatch.includes(`"object":${partial("b", 6)}}\n`), tables.partialWatch);
      const first = tables.selected.split("\n")[0];
      assert.equal(first, `{"type":"ADDED","object":${widget("a", 1, true)}}`);
      // What is around the objects is as ever.
      const { rows, columnDefinitions } = JSON.parse(tables.lists);
      assert.deepEqual(rows.map(({ cells }: { cells: unknown[] }) => cells[0]), ["a", "b"]);
      assert.equal(rows[0].cells.length, columnDefinitions.length);
    });
  }

  // curl asks for it by its name.
  for (const storage of [undefined, "short-texts"] as const) {
    it(`serves the same with line breaks and indents where that is requested, with storage: ${storage}`, async () => {
      const { list, object, indented } = await read(storage);
      const onOneLine = (text: string) => text.replaceAll(/\n */g, "").replaceAll('": ', '":');
      assert.ok(indented.object.startsWith('{\n  "kind": "ConfigMap",\n'), indented.object);
      assert.equal(onOneLine(indented.object), object.trimEnd());
      assert.ok(indented.list.includes('\n  "items": [\n    {\n      "metadata": {\n'), indented.list);
      assert.ok(indented.list.endsWith("\n    }\n  ]\n}"), indented.list);
      assert.equal(onOneLine(indented.list), list.trimEnd());
    });
  }

  for (const storage of ["texts", "short-texts"] as const) {
    it(`serves the same bytes above another serve, two caches from the API server, with storage: ${storage}`, async () => {
      const { watch, list, object } = await read(storage, { aboveAnother: true });
      assert.deepEqual(watch.split("\n").slice(0, 2), [
        `{"type":"ADDED","object":${widget("a", 1, true)}}`,
        `{"type":"ADDED","object":${widget("b", 6, true)}}`,
      ]);
      assert.equal(object.trimEnd(), widget("a", 1, true));
      assert.ok(list.includes(`"items":[${widget("a", 1, false)},${widget("b", 6, false)}]`), list);
    });
  }
});
