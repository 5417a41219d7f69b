import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  fieldIndex,
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { get, names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly phase?: string };
}

/** How many parts of objects are parsed, besides the answers that a test reads, while something is done. */
async function countParsed(act: () => Promise<void>): Promise<number> {
  const { parse } = JSON;
  let parsed = 0;
  JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]) => {
    if (!text.startsWith('{"type"') && !text.includes('"items"')) parsed++;
    return parse(text, reviver);
  };
  try {
    await act();
  } finally {
    JSON.parse = parse;
  }
  return parsed;
}

describe("readApi: a field selector", () => {
  async function newWorld() {
    const server = new InMemoryApiServer();
    for (let i = 0; i < 30; i++) {
      const object = pod(`web-${i}`, { nodeName: `n${i % 3}` });
      server.create("v1/pods", { ...object, status: { phase: i < 6 ? "Pending" : "Running" } });
    }
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource<Pod>("v1/pods");
    const informer = new SharedIndexInformer(pods, {
      indexers: { byNode: fieldIndex<Pod>("spec.nodeName") },
      logger: silentLogger,
    });
    const running = informer.start();
    await informer.synced();
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      freshness: "as-is",
    });
    const read = async (fields: string) => {
      const path = `/api/v1/pods?fieldSelector=${encodeURIComponent(fields)}`;
      let found = 0;
      const opened = await countParsed(async () => void (found = names(await get(api, path)).length));
      return { found, opened };
    };
    return { api, read, [Symbol.asyncDispose]: () => running.stop() };
  }

  it("opens no object if one index or the key answers all of it", async () => {
    await using world = await newWorld();
    assert.deepEqual(await world.read("spec.nodeName=n1"), { found: 10, opened: 0 });
    assert.deepEqual(await world.read("spec.nodeName=n9"), { found: 0, opened: 0 });
    assert.deepEqual(await world.read("metadata.name=web-3"), { found: 1, opened: 0 });
    assert.deepEqual(await world.read("spec.nodeName=n1,metadata.namespace=default"), {
      found: 10,
      opened: 0,
    });
  });

  it("opens what the index finds if that has to fulfil more", async () => {
    await using world = await newWorld();
    assert.deepEqual(await world.read("spec.nodeName=n1,status.phase=Pending"), { found: 2, opened: 10 });
    assert.deepEqual(await world.read("spec.nodeName=n1,spec.nodeName=n2"), { found: 0, opened: 10 });
    assert.deepEqual(await world.read("metadata.name=web-3,metadata.name=web-4"), { found: 0, opened: 0 });
    assert.equal((await world.read("spec.nodeName!=n1")).found, 20);
  });

  it("opens no object for the initial events of a watch that an index answers", async () => {
    await using world = await newWorld();
    const path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" +
      "&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn1";
    const opened = await countParsed(async () => {
      const reader = await WatchReader.open(world.api, path);
      assert.equal((await reader.lines(10)).filter((line) => line.startsWith("ADDED")).length, 10);
    });
    assert.equal(opened, 0);
  });
});
