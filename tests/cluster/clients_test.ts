import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { seededRandom } from "@listwatch/cache/testing";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { pause } from "./eventually.ts";
import { type GoInformer, startGoInformer } from "./go_informer.ts";
import { everyResource, type Host, type Runtime, RUNTIMES, startHost } from "./hosts/host.ts";
import { quickRetries, Reflected } from "./reflected.ts";
import { type DataObject, newSeed, runWriters, WriteLog } from "./writers.ts";

/** A cache on one runtime, a cache of that cache, and their clients. */
interface Served {
  readonly runtime: Runtime;
  readonly host: Host;
  readonly second: Host;
  readonly streaming: GoInformer;
  readonly listing: GoInformer;
  readonly reflected: Reflected<DataObject>;
}

describe("readApi with its clients, while objects change, the API server restarts and the cache restarts", {
  skip: skipWithoutOwnServer,
}, () => {
  let connection: OwnConnection;
  const all: Served[] = [];

  before(async () => {
    connection = await startOwn();
    const { cluster, server, kubeconfigPath, labels } = connection;
    const namespaces = await connection.createNamespaces("north", "south");
    const log = new WriteLog();
    const random = seededRandom(newSeed());
    const options = { cluster, resource: "v1/configmaps", namespaces, labels, names: 40, log, random };
    const write = (writes: number) => runWriters(options, { writers: 4, writes });
    await write(20);

    const { resources } = await everyResource(cluster);
    const configMaps = resources.filter(({ group, resource }) => group === "" && resource === "configmaps");
    all.push(
      ...await Promise.all(RUNTIMES.map(async (runtime) => {
        const host = await startHost(runtime, { upstream: server, resources: configMaps });
        const second = await startHost(runtime, { upstream: host, resources: configMaps });
        const { url } = host;
        const [streaming, listing] = await Promise.all([
          startGoInformer({ url, kubeconfigPath, useWatchList: true }),
          startGoInformer({ url, kubeconfigPath, useWatchList: false }),
        ]);
        const reflected = new Reflected<DataObject>(
          newCluster({ server: second.url }).resource("v1/configmaps"),
          {
            name: `the informer of the second cache on ${runtime}`,
            ofCache: true,
            reflector: quickRetries(),
          },
        );
        await reflected.synced();
        return { runtime, host, second, streaming, listing, reflected };
      })),
    );
    assert.ok(await write(40));

    const interrupted = write(Infinity);
    await pause(300);
    await server.kill();
    assert.equal(await interrupted, false, "the server was killed amid writes");
    await server.restart();
    assert.ok(await write(40));

    const uninterrupted = write(80);
    await Promise.all(all.map(async ({ host }) => {
      await host.kill();
      await host.restart();
    }));
    assert.ok(await uninterrupted);
    assert.ok(await write(20));
  });
  after(async () => {
    await Promise.all(
      all.flatMap(({ streaming, listing, reflected }) => [streaming, listing, reflected])
        .map((client) => client[Symbol.asyncDispose]()),
    );
    await Promise.all(all.map(({ second }) => second[Symbol.asyncDispose]()));
    await Promise.all(all.map(({ host }) => host[Symbol.asyncDispose]()));
    await connection?.[Symbol.asyncDispose]();
  });

  for (const runtime of RUNTIMES) {
    for (const mode of ["streaming", "listing"] as const) {
      it(
        `client-go's ${mode} informers equal the API server in the end: ${runtime}`,
        { timeout: 120_000 },
        async () => {
          const { objects, difference, faults, events } = await served(runtime)[mode].compare();
          assert.equal(difference, undefined);
          assert.deepEqual(faults, []);
          assert.ok(objects > 20, `${objects} objects`);
          for (const name of ["typed", "dynamic", "metadata"]) {
            for (const type of ["add", "update", "delete"]) {
              assert.ok(
                events[name][type] > 20,
                `the ${name} informer received ${events[name][type]} of type ${type}`,
              );
            }
          }
        },
      );
    }

    it(`an informer of a cache of the cache equals the API server in the end: ${runtime}`, {
      timeout: 120_000,
    }, async () => {
      const { reflected } = served(runtime);
      await reflected.equalsServer(connection.cluster.resource<DataObject>("v1/configmaps"));
      assert.ok(reflected.history.count("update") > 20);
    });

    it(`client-go's tools for lists and watches work: ${runtime}`, { timeout: 120_000 }, async () => {
      assert.deepEqual(await served(runtime).streaming.check(), {
        "consistency detector": "",
        pager: "",
        UntilWithSync: "",
        RetryWatcher: "",
        "informer watcher": "",
      });
    });
  }

  function served(runtime: Runtime): Served {
    const found = all.find((one) => one.runtime === runtime);
    assert.ok(found, runtime);
    return found;
  }
});
