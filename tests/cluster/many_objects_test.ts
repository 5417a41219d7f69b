import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newCluster, type ResourceClient } from "@listwatch/cache";
import { listAllPages, type ListerWatcher } from "@listwatch/cache/reflector";
import { connect, type TestConnection } from "./connection.ts";
import { assertSameObjects, Reflected } from "./reflected.ts";
import { UnreliableNetwork } from "./unreliable_network.ts";
import type { DataObject } from "./writers.ts";

const COUNT = 5_000;
const WRITERS = 16;

describe("ResourceClient and SharedIndexInformer with 5,000 ConfigMaps", () => {
  let connection: TestConnection;
  let namespace: string;
  let client: ResourceClient<DataObject>;
  let network: UnreliableNetwork;
  let source: ResourceClient<DataObject>;
  const resource = "v1/configmaps";
  before(async () => {
    connection = await connect();
    const { cluster, config, labels, labelSelector } = connection;
    [namespace] = await connection.createNamespaces("many");
    client = cluster.resource(resource, { namespace, labelSelector });
    network = new UnreliableNetwork(config.fetch!);
    source = newCluster({ ...config, fetch: network.fetch }).resource(resource, { namespace, labelSelector });
    let next = 0;
    await Promise.all(Array.from({ length: WRITERS }, async () => {
      while (next < COUNT) {
        const name = `item-${String(next++).padStart(4, "0")}`;
        await client.create({
          metadata: { name, namespace, labels },
          data: { name, text: "日本語".repeat(20) },
        });
      }
    }));
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("list ten pages of one version, whatever is written meanwhile", {
    timeout: 120_000,
  }, async () => {
    const { items: expected } = await client.list();
    assert.equal(expected.length, COUNT);
    const pages: number[] = [];
    network.requests.length = 0;
    const writing: Promise<unknown>[] = [];
    const list = await listAllPages(source, { limit: 500 }, {
      signal: AbortSignal.timeout(60_000),
      onPage: (items, remaining) => {
        pages.push(items);
        // With a selector the server sends no count.
        assert.equal(remaining, undefined);
        if (items === 2_000) {
          writing.push(client.delete("item-0001"), client.delete("item-4999"));
          writing.push(client.patch("item-4000", { data: { changed: "" } }));
        }
      },
    });
    await Promise.all(writing);
    assert.deepEqual(pages, Array.from({ length: 10 }, (_, i) => (i + 1) * 500));
    assert.deepEqual([network.count("list"), network.count("page")], [1, 9]);
    assert.ok(list.paginated);
    assertSameObjects(list.items, expected, "the pages");
  });

  it("sync page by page", { timeout: 120_000 }, async () => {
    network.requests.length = 0;
    // The most recent data: a server with a watch cache sends no pages for resourceVersion "0".
    const paging: ListerWatcher<DataObject> = {
      list: (options, context) => source.list({ ...options, resourceVersion: "" }, context),
      watch: (options, context) => source.watch(options, context),
    };
    await using reflected = new Reflected(paging, {
      name: "the paging informer",
      reflector: { useWatchList: false },
    });
    await reflected.synced();
    const items = await reflected.equalsServer(client);
    assert.deepEqual([network.count("list"), network.count("page")], [1, Math.ceil(items.length / 500) - 1]);
    assert.ok(
      reflected.history.events.every(({ type, isInInitialList }) => type === "add" && isInInitialList),
    );
    const progress = reflected.statuses.filter(({ phase }) => phase === "listing").map((status) =>
      status.progress?.items
    );
    assert.deepEqual(progress.slice(0, 4), [0, 500, 1000, 1500]);
  });

  it("sync with a streamed list", { timeout: 120_000 }, async () => {
    network.requests.length = 0;
    await using reflected = new Reflected(source, { name: "the streaming informer" });
    await reflected.synced();
    await reflected.equalsServer(client);
    assert.deepEqual([network.count("list"), network.count("page"), network.count("watch")], [0, 0, 1]);
    assert.ok(
      reflected.history.events.every(({ type, isInInitialList }) => type === "add" && isInInitialList),
    );
    assert.deepEqual(reflected.phases(), ["streaming", "watching"]);
  });
});
