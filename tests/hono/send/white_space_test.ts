/**
 * Objects whose texts have white space, as an API server sends them to a browser (indented).
 * @module
 */

import assert from "node:assert/strict";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import fc from "fast-check";
import { propertyOptions } from "../../property.ts";
import { describe, it, storage } from "../storages.ts";
import { readApi } from "../read_api.ts";

type Json = Readonly<Record<string, unknown>>;

const SPACES = ["", "", " ", "\t", "\n  ", "\r\n", "\r"];

/** JSON text with white space between its parts; `space` chooses it. */
function spaced(value: unknown, space: () => string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const parts = isArray
    ? value.map((item) => spaced(item, space))
    : Object.entries(value).map(([name, field]) =>
      `${JSON.stringify(name)}${space()}:${space()}${spaced(field, space)}`
    );
  const inner = parts.map((part) => space() + part + space()).join(",");
  return isArray ? `[${inner}]` : `{${inner}}`;
}

/** An informer of an API server that lists these objects, and then sends these events. */
async function served(list: readonly string[], events: readonly string[]) {
  const stop = new AbortController();
  let watched = () => {};
  const isWatched = new Promise<void>((resolve) => watched = resolve);
  let send: ReadableStreamDefaultController<Uint8Array> | undefined;
  const cluster = newCluster({
    server: "http://in-memory",
    fetch: (url) => {
      const { searchParams } = new URL(String(url));
      if (searchParams.has("sendInitialEvents")) {
        return Promise.resolve(Response.json({ kind: "Status", code: 422 }, { status: 422 }));
      }
      if (!searchParams.has("watch")) {
        const text = `{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[${list}]}`;
        return Promise.resolve(new Response(text));
      }
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          send = controller;
          watched();
        },
      });
      return Promise.resolve(new Response(body));
    },
  });
  const informer = new SharedIndexInformer(cluster.resource("v1/pods"), {
    storage: storage(),
    logger: silentLogger,
  });
  const resources = [{ informer, resource: "v1/pods" }];
  const api = readApi({ resources, allowAnonymous: true, freshness: "as-is", logger: silentLogger });
  const running = informer.start(stop.signal);
  await informer.synced();
  await isWatched;
  for (const event of events) send!.enqueue(new TextEncoder().encode(`${event}\n`));
  return {
    /** What a watch from the start receives, up to its end. */
    watch: async (accept: string) => {
      await informer.waitForVersion(String(10 + events.length));
      const response = await api.request("/api/v1/pods?watch=1", { headers: { Accept: accept } });
      const text = response.text();
      for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 0));
      api.endWatches();
      return await text;
    },
    stop: async () => {
      stop.abort();
      await running.stop();
    },
  };
}

describe("readApi with objects whose texts have white space", () => {
  it("sends each event of a watch as one line, and as one message of server-sent events", async () => {
    const value = fc.dictionary(
      fc.constantFrom("a", "b", "spec"),
      fc.constantFrom("x", "\n", "\r", 1, null),
      {
        noNullPrototype: true,
      },
    );
    await fc.assert(
      fc.asyncProperty(value, value, fc.infiniteStream(fc.constantFrom(...SPACES)), async (a, b, spaces) => {
        const space = () => spaces.next().value;
        const object = (name: string, version: number, spec: Json) =>
          spaced({ metadata: { name, namespace: "shop", resourceVersion: String(version) }, spec }, space);
        const app = await served([object("a", 1, a), object("b", 2, a)], [
          `{"type":"MODIFIED","object":${object("a", 11, b).replace(/[\r\n]/g, " ")}}`,
        ]);
        const expected = [["a", b], ["b", a]];
        const read = (text: string) => {
          const { type, object } = JSON.parse(text);
          assert.equal(type, "ADDED");
          return [object.metadata.name, object.spec];
        };
        const lines = (await app.watch("application/json")).split("\n");
        assert.equal(lines.pop(), "");
        assert.deepEqual(lines.map(read), expected);
        const messages = (await app.watch("text/event-stream")).split("\n\n").flatMap((message) => {
          const data = message.split(/\r\n|\r|\n/).flatMap((line) => /^data: ?(.*)$/s.exec(line)?.[1] ?? []);
          return data.length === 0 ? [] : [data.join("\n")];
        });
        assert.deepEqual(messages.filter((text) => !text.includes("BOOKMARK")).map(read), expected);
        await app.stop();
      }),
      propertyOptions(30),
    );
  });
});
