import {
  metaNamespaceKey,
  NetworkError,
  newCluster,
  parseResource,
  type ResourceClient,
} from "@listwatch/cache";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { quickRetries, Reflected, stopAll } from "./reflected.ts";
import { UnreliableNetwork } from "./unreliable_network.ts";
import type { DataObject } from "./writers.ts";

const COUNT = 30;

describe("SharedIndexInformer of an API server that has compacted old versions", {
  skip: skipWithoutOwnServer,
}, () => {
  let connection: OwnConnection;
  before(async () => {
    // Reads and watches of Secrets go to etcd, so that a compaction takes effect immediately.
    connection = await startOwn(["--watch-cache-sizes=secrets#0"]);
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it(
    "receives lost deletes as tombstones when its watch is refused after a restart",
    { timeout: 60_000 },
    () =>
      missChanges(connection, "v1/configmaps", async () => {
        await connection.server.compact();
        await connection.server.restart();
      }),
  );

  it("receives lost deletes as tombstones when its watch is refused with an ERROR event", {
    timeout: 60_000,
  }, () =>
    missChanges(connection, "v1/secrets", async () => {
      await connection.server.compact();
    }));

  it(
    "lists again as a whole when its continue token expires in the middle of a list",
    { timeout: 60_000 },
    async () => {
      const [namespace] = await connection.createNamespaces("pages");
      const client = connection.cluster.resource<DataObject>("v1/secrets", { namespace });
      await createMany(client, 250, connection.labels);

      const network = new UnreliableNetwork(connection.config.fetch!);
      const source = newCluster({ ...connection.config, fetch: network.fetch })
        .resource<DataObject>("v1/secrets", { namespace });
      let pages = 0;
      const interrupted: ListerWatcher<DataObject> = {
        list: async (options, context) => {
          const page = await source.list(options, context);
          if (++pages === 3) {
            // One on a page that has arrived, one on a later page.
            await client.delete("item-001");
            await client.delete("item-249");
            await client.create({ metadata: { name: "item-000-new", namespace }, data: {} });
            await connection.server.compact();
          }
          return page;
        },
        watch: (options, context) => source.watch(options, context),
      };
      const reflector = { useWatchList: false, watchListPageSize: 50 };
      await using reflected = new Reflected(interrupted, { name: "the interrupted informer", reflector });
      await reflected.synced();
      const items = await reflected.equalsServer(client);
      assert.equal(items.length, 249);

      const lists = network.requests.filter(({ url }) => !url.searchParams.has("watch"));
      const limits = lists.map((
        { url },
      ) => [url.searchParams.get("limit"), url.searchParams.has("continue")]);
      assert.deepEqual(limits, [["50", false], ["50", true], ["50", true], ["50", true], [null, false]]);
      assert.deepEqual(reflected.errors, []);
      assert.equal(reflected.history.count("add"), 249, "no notification of the earlier pages");
      assert.equal(reflected.history.events.length, 249);
    },
  );
});

/**
 * Informers are cut off, miss changes of each kind, and come back to
 * a server that knows nothing of their versions.
 */
async function missChanges(
  connection: OwnConnection,
  resource: string,
  forget: () => Promise<void>,
): Promise<void> {
  const { cluster, config, labels } = connection;
  const [namespace] = await connection.createNamespaces("changes");
  const client = cluster.resource<DataObject>(parseResource(resource), { namespace });
  await createMany(client, COUNT, labels);
  const network = new UnreliableNetwork(config.fetch!);
  const source = newCluster({ ...config, fetch: network.fetch }).resource<DataObject>(
    parseResource(resource),
    {
      namespace,
    },
  );
  const reflect = (name: string, options: { deltaFifo?: boolean; useWatchList?: boolean } = {}) => {
    const { useWatchList, deltaFifo } = options;
    return new Reflected(source, { name, deltaFifo, reflector: { useWatchList, ...quickRetries() } });
  };
  const all = [
    reflect("streamed"),
    reflect("listed", { useWatchList: false }),
    reflect("in a DeltaFIFO", { deltaFifo: true }),
  ];
  try {
    for (const one of all) await one.synced();
    await eventually(() => assert.equal(network.count("watch"), 3));
    // A watch that breaks before its first event starts again with a list, and would not be refused.
    await client.patch(nameOf(3), { data: { before: "" } });
    for (const one of all) await one.equalsServer(client);
    network.goDown();
    await eventually(() =>
      all.forEach(({ name, informer }) => assert.equal(informer.status().phase, "backingOff", name))
    );
    const received = all.map(({ history }) => history.events.length);
    const known = all.map(({ informer }) =>
      new Map(informer.indexer.list().map((object) => [metaNamespaceKey(object), object]))
    );

    const deleted: string[] = [];
    const recreated: string[] = [];
    const changed: string[] = [];
    const created: string[] = [];
    for (let i = 0; i < COUNT; i += 5) {
      const names = [nameOf(i), nameOf(i + 1), nameOf(i + 2), nameOf(COUNT + i)];
      await client.delete(names[0]);
      await client.delete(names[1]);
      await client.create({ metadata: { name: names[1], namespace, labels }, data: { again: "" } });
      await client.patch(names[2], { data: { changed: "" } });
      await client.create({ metadata: { name: names[3], namespace, labels }, data: {} });
      [deleted, recreated, changed, created].forEach((keys, j) => keys.push(`${namespace}/${names[j]}`));
    }
    await forget();
    assert.deepEqual(all.map(({ history }) => history.events.length), received, "nothing gets through");
    const statuses = all.map((one) => one.statuses.length);
    network.comeBack();

    for (const [i, one] of all.entries()) {
      await one.equalsServer(client);
      assert.ok(one.failures(statuses[i]).includes("Expired"), `${one.name}: ${one.failures(statuses[i])}`);
      // The error handler receives the network failure; a version that is too old is no error to report.
      assert.deepEqual(one.errors.filter((error) => !(error instanceof NetworkError)), [], one.name);
      const events = one.history.events.slice(received[i]);
      const keys = (type: string) =>
        events.filter((event) => event.type === type).map(({ key }) => key).sort();
      assert.deepEqual(keys("tombstone"), deleted, one.name);
      assert.deepEqual(keys("delete"), [], one.name);
      assert.deepEqual(keys("add"), created.toSorted(), one.name);
      const updates = events.filter(({ type, key, resourceVersion }) =>
        type === "update" && known[i].get(key)?.metadata?.resourceVersion !== resourceVersion
      );
      // An object that was created again under its old name looks like a change, as in client-go.
      assert.deepEqual(updates.map(({ key }) => key).sort(), [...recreated, ...changed].sort(), one.name);
      for (const { type, key, object } of events) {
        if (type === "tombstone") assert.equal(object, known[i].get(key), "the last known state");
      }
    }
  } finally {
    await stopAll(all);
  }
}

function nameOf(i: number): string {
  return `item-${String(i).padStart(3, "0")}`;
}

async function createMany(
  client: ResourceClient<DataObject>,
  count: number,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await client.create({ metadata: { name: nameOf(i), namespace: client.namespace, labels }, data: {} });
  }
}
