import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { readApiOf } from "../../../src/hono/read_api.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { GZIP_STATE_BYTES } from "../../../src/hono/send/gzip.ts";
import { MOST_PIECE } from "../../../src/hono/request/readers.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const INDEX = { paths: { "api/v1": { serverRelativeURL: "/openapi/v3/api/v1" } } };
const DOCUMENT = { info: { description: "random ".repeat(50_000) }, paths: {} };

function newApi(options: Partial<ReadApiOptions> = {}) {
  const deployment = object("shop/web", 3, { spec: { replicas: 1 } });
  const informers = {
    "v1/pods": FakeInformer.with([object("shop/web", 3)], 9, { byName: ({ metadata }) => [metadata!.name!] }),
    "apps/v1/deployments": FakeInformer.with([deployment], 9),
  };
  const state = newReadApiState({
    resources: Object.entries(informers).map(([resource, informer]) => ({ informer, resource })),
    allowAnonymous: true,
    clock: new FakeClock(),
    logger: silentLogger,
    openApi: (path) => Promise.resolve(Response.json(path === "/openapi/v3" ? INDEX : DOCUMENT)),
    ...options,
  });
  const api = readApiOf(state);
  /** A request of a client, whose answer is not sent before that promise settles. */
  const request = (path: string, completed: Promise<void>, headers: Readonly<Record<string, string>>) =>
    api.request(path, { headers }, { completed, remoteAddr: { hostname: "10.0.0.1" } });
  return { state, api, informers, request };
}

describe("readApi, while an answer is not sent yet,", () => {
  const answers = [
    ["/api", "application/json"],
    ["/api/v1", "application/json"],
    ["/apis", AGGREGATED],
    ["/apis/apps/v1", "application/yaml"],
    ["/indices/pods", "application/json"],
    ["/indices/pods/byName", "application/json"],
    ["/openapi/v3", "application/json"],
    ["/apis/apps/v1/namespaces/shop/deployments/web/scale", "application/json"],
    ["/api/v1/namespaces/shop/pods/web", "application/json"],
    ["/api/v1/pods", "application/json"],
  ] as const;

  for (const [path, accept] of answers) {
    it(`counts the bytes of ${path} for its reader`, async () => {
      const { state, request } = newApi();
      const { promise: sent, resolve: send } = Promise.withResolvers<void>();
      const response = await request(path, sent, { Accept: accept });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.equal(state.readers.heldBytes, text.length);
      send();
      await settle();
      assert.equal(state.readers.heldBytes, 0);
    });

    it(`refuses ${path} by 429 once all bytes are spent`, async () => {
      const { request } = newApi({ maxReaderBytes: 5_000 });
      const never = new Promise<void>(() => {});
      const statuses = new Set<number>();
      for (let i = 0; i < 100; i++) statuses.add((await request(path, never, { Accept: accept })).status);
      assert.deepEqual(statuses, new Set([200, 429]));
    });
  }

  for (const encoding of ["identity", "gzip"]) {
    for (const path of ["/openapi/v2", "/openapi/v3/api/v1"]) {
      it(`counts one piece of ${path} (${encoding}), and refuses it once all bytes are spent`, async () => {
        const { state, request } = newApi({ maxReaderBytes: 1_000_000 });
        const { promise: sent, resolve: send } = Promise.withResolvers<void>();
        const accept = { Accept: "application/json", "Accept-Encoding": encoding };
        const bodies: Response[] = [];
        for (let i = 1; i <= 15; i++) {
          bodies.push(await request(path, sent, accept));
          assert.equal(bodies[i - 1].headers.get("Content-Encoding"), encoding === "gzip" ? "gzip" : null);
          assert.equal(state.readers.heldBytes, i * MOST_PIECE);
        }
        assert.equal((await request(path, sent, accept)).status, 429);
        for (const { body } of bodies) await body!.cancel();
        send();
        await settle();
        assert.equal(state.readers.heldBytes, 0);
      });
    }
  }

  it("counts a kept document of OpenAPI and its compressed form once each, and neither once they are dropped", async () => {
    const document = JSON.stringify(DOCUMENT).length;
    for (const room of [1_000_000, document + MOST_PIECE + 10]) {
      const { state: { readers }, api } = newApi({ maxReaderBytes: room });
      let gzipped = 0;
      for (let i = 0; i < 2; i++) {
        const answer = await api.request("/openapi/v2", { headers: { "Accept-Encoding": "gzip" } });
        gzipped = (await answer.arrayBuffer()).byteLength;
      }
      await settle();
      if (room === 1_000_000) {
        const spare = room - document - gzipped;
        assert.deepEqual([readers.keepSpare(spare), readers.keepSpare(1)], [true, false]);
        readers.unkeep(spare);
      }
      assert.equal(readers.keep(room), true, "everything gives way");
    }
  });

  it("counts what compressing a list of its own takes, which ends no other answer", async () => {
    const { state: { readers }, api, informers } = newApi({ maxReaderBytes: 10_000_000 });
    informers["v1/pods"].put(object("shop/large", 10, { text: "random ".repeat(50_000) }));
    // A state of the past is made for one reader.
    const path = "/api/v1/pods?resourceVersion=10&resourceVersionMatch=Exact";
    const encodingOf = async () => {
      const response = await api.request(path, { headers: { "Accept-Encoding": "gzip" } });
      const held = readers.heldBytes;
      await response.body!.cancel();
      await settle();
      return [response.headers.get("Content-Encoding"), held];
    };
    const [encoding, held] = await encodingOf();
    const piece = readers.sharedListPieceLength;
    assert.equal(encoding, "gzip");
    assert.ok(Number(held) >= piece + GZIP_STATE_BYTES && Number(held) < piece + GZIP_STATE_BYTES + 100);
    const other = readers.enter("other")!;
    other.onSpent = () => assert.fail("the answer of another reader has ended");
    assert.ok(other.take(10_000_000 - GZIP_STATE_BYTES - piece + 1_000));
    assert.equal((await encodingOf())[0], null);
    assert.ok(other.heldBytes > 0);
  });

  it("holds nothing for a list any more of which an object cannot be read", async () => {
    const { state: { readers }, api, informers } = newApi();
    for (const name of ["a", "b", "c"]) {
      informers["v1/pods"].put(object(`shop/${name}`, 10, { text: "x".repeat(MOST_PIECE) }));
    }
    const unreadable = { toJSON: () => assert.fail("the object cannot be read") };
    informers["v1/pods"].put(object("shop/z", 11, { unreadable }));
    const response = await api.request("/api/v1/pods");
    await assert.rejects(response.text(), /cannot be read/);
    await settle();
    assert.deepEqual([readers.heldBytes, readers.count], [0, 0]);
  });

  it("counts the bytes of the index of OpenAPI for its reader below the path of another app, too", async () => {
    const { state, api } = newApi();
    const { promise: sent, resolve: send } = Promise.withResolvers<void>();
    const response = await new Hono().route("/cluster", api).request("/cluster/openapi/v3", {}, {
      completed: sent,
    });
    const text = await response.text();
    assert.match(text, /"\/cluster\/openapi\/v3\/api\/v1/);
    assert.equal(state.readers.heldBytes, text.length);
    send();
    await settle();
    assert.equal(state.readers.heldBytes, 0);
  });
});
