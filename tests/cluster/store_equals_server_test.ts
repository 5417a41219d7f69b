import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newCluster, type ResourceClient } from "@listwatch/cache";
import { seededRandom } from "@listwatch/cache/testing";
import { connect, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { assertAllReceived, Reflected, stopAll } from "./reflected.ts";
import { UnreliableNetwork } from "./unreliable_network.ts";
import { type DataObject, MARK, newSeed, runWriters, WriteLog } from "./writers.ts";

describe("SharedIndexInformer of a real API server", () => {
  let connection: TestConnection;
  let namespaces: string[];
  let client: ResourceClient<DataObject>;
  before(async () => {
    connection = await connect();
    namespaces = await connection.createNamespaces("north", "south");
    client = connection.cluster.resource("v1/configmaps", { labelSelector: connection.labelSelector });
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("equals the server after random writes, and notifies of each version once", {
    timeout: 120_000,
  }, async () => {
    const { cluster, labels } = connection;
    const log = new WriteLog();
    const random = seededRandom(newSeed());
    const options = { cluster, resource: "v1/configmaps", namespaces, labels, names: 25, log, random };
    await runWriters(options, { writers: 4, writes: 40 });
    const deletedUids = log.deletedUids();

    const network = new UnreliableNetwork(connection.config.fetch!);
    const source = newCluster({ ...connection.config, fetch: network.fetch })
      .resource<DataObject>("v1/configmaps", { labelSelector: connection.labelSelector });
    const streaming = new Reflected(source, { name: "the streaming informer" });
    const started = [streaming];
    try {
      await streaming.synced();
      assert.equal(network.count("list"), 0, "the present objects came as a watch");
      assert.equal(network.count("watch"), 1);
      const listing = new Reflected(source, {
        name: "the listing informer",
        reflector: { useWatchList: false },
      });
      const compressing = new Reflected(source, { name: "the informer with a DeltaFIFO", deltaFifo: true });
      started.push(listing, compressing);
      await Promise.all(started.map((one) => one.synced()));
      assert.equal(network.count("list"), 1);

      // Until here the handlers received present objects, from now on writes.
      await eventually(() => {
        for (const { history, informer } of started) {
          assert.equal(history.objects.size, informer.indexer.list().length);
        }
      });
      for (const { isInInitialList, type } of started.flatMap(({ history }) => history.events)) {
        assert.deepEqual([type, isInInitialList], ["add", true]);
      }

      // About half of 1,960 random writes meet an object that they can write, fewer where writers meet.
      await runWriters(options, { writers: 6, writes: 300 });
      assert.ok(log.acknowledged > 600, `only ${log.acknowledged} writes took effect`);
      for (const one of started) await one.equalsServer(client);

      for (const reflected of [streaming, listing]) {
        assert.deepEqual(reflected.history.count("tombstone"), 0, reflected.name);
        assertAllReceived(reflected, log, deletedUids);
      }
      for (const { history } of started) {
        for (const { object } of history.events) {
          assert.ok(log.marks.has(object.metadata?.annotations?.[MARK] ?? ""), "no writer wrote this");
        }
      }
    } finally {
      await stopAll(started);
    }
  });
});
