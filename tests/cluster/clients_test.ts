import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { join } from "node:path";
import process from "node:process";
import { newCluster } from "@listwatch/cache";
import { seededRandom } from "@listwatch/cache/testing";
import { buildRust, installNodePeers } from "../../benchmarks/lib/programs.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { type LineProcess, startLineProcess } from "../../scripts/lib/line_process.ts";
import { installTools } from "../../scripts/lib/tools.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually, pause } from "./eventually.ts";
import { type GoInformer, startGoInformer } from "./go_informer.ts";
import { everyResource, type Host, type Runtime, RUNTIMES, startHost } from "./hosts/host.ts";
import { quickRetries, Reflected } from "./reflected.ts";
import { type DataObject, newSeed, runWriters, WriteLog } from "./writers.ts";

const skipKubeRs = process.env.LISTWATCH_TEST_ALL === undefined
  ? "needs Rust and minutes to build: deno task test:cluster --all"
  : false;

/** A cache on one runtime, a cache of that cache, and their clients. */
interface Served {
  readonly runtime: Runtime;
  readonly host: Host;
  readonly second: Host;
  readonly streaming: GoInformer;
  readonly listing: GoInformer;
  readonly kubeRs: LineProcess | undefined;
  readonly clientNode: LineProcess;
  readonly reflected: Reflected<DataObject>;
}

/** What a client holds of each ConfigMap. */
type HeldObjects = readonly Pick<DataObject, "metadata" | "data">[];

describe("readApi with its clients, while objects change, the API server restarts and the cache restarts", {
  skip: skipWithoutOwnServer,
}, () => {
  let connection: OwnConnection;
  const all: Served[] = [];
  /** `@kubernetes/client-node` on the API server itself. */
  let control: LineProcess | undefined;

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
    const kubeRsProgram = skipKubeRs ? undefined : await buildKubeRs();
    all.push(
      ...await Promise.all(RUNTIMES.map(async (runtime) => {
        const host = await startHost(runtime, { upstream: server, resources: configMaps });
        const second = await startHost(runtime, { upstream: host, resources: configMaps });
        const { url } = host;
        const [streaming, listing, kubeRs, clientNode] = await Promise.all([
          startGoInformer({ url, kubeconfigPath, useWatchList: true }),
          startGoInformer({ url, kubeconfigPath, useWatchList: false }),
          kubeRsProgram === undefined ? undefined : startLineProcess(kubeRsProgram, { args: [url] }),
          startClientNode(url),
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
        return { runtime, host, second, streaming, listing, kubeRs, clientNode, reflected };
      })),
    );
    assert.ok(await write(40));

    control = await startClientNode(kubeconfigPath);
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
      all.flatMap(({ streaming, listing, kubeRs, clientNode, reflected }) => [
        streaming,
        listing,
        kubeRs,
        clientNode,
        reflected,
      ]).map((client) => client?.[Symbol.asyncDispose]()),
    );
    await control?.[Symbol.asyncDispose]();
    await Promise.all(all.map(({ second }) => second[Symbol.asyncDispose]()));
    await Promise.all(all.map(({ host }) => host[Symbol.asyncDispose]()));
    await connection?.[Symbol.asyncDispose]();
  });

  it("@kubernetes/client-node's informer of the API server itself equals it in the end", {
    timeout: 120_000,
  }, () => holdsAll(control!));

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

    it(`kube-rs' reflectors equal the API server in the end: ${runtime}`, {
      skip: skipKubeRs,
      timeout: 120_000,
    }, () => holdsAll(served(runtime).kubeRs!));

    it(`@kubernetes/client-node's informer equals the API server in the end: ${runtime}`, {
      timeout: 120_000,
    }, () => holdsAll(served(runtime).clientNode));

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

  /** Every store of a client equals the API server. */
  async function holdsAll(client: LineProcess): Promise<void> {
    const { items } = await connection.cluster.resource<DataObject>("v1/configmaps").list();
    const expected = summaries(items);
    await eventually(async () => {
      const stores = await client.ask("stores") as Record<string, HeldObjects>;
      for (const [name, objects] of Object.entries(stores)) {
        assert.deepEqual(summaries(objects), expected, name);
      }
    }, { timeoutMs: 90_000 });
  }

  function served(runtime: Runtime): Served {
    const found = all.find((one) => one.runtime === runtime);
    assert.ok(found, runtime);
    return found;
  }
});

async function startClientNode(target: string): Promise<LineProcess> {
  const { node } = await installTools();
  const cwd = await installNodePeers(console.log);
  return await startLineProcess(node, {
    args: [join(ROOT, "tests/cluster/client_node.mjs"), target],
    cwd,
  });
}

async function buildKubeRs(): Promise<string> {
  const folder = join(ROOT, "tests/cluster/kube_rs");
  const name = "kube_rs_clients";
  const program = await buildRust(
    { name, folder, binary: "listwatch-test-kube-rs", profile: "dev" },
    console.log,
  );
  assert.ok(program, "kube-rs could not be built");
  return program;
}

function summaries(objects: HeldObjects): string[] {
  return objects.map(({ metadata, data }) => {
    const { namespace, name, uid, resourceVersion, labels = {} } = metadata ?? {};
    const sorted = (record: Record<string, unknown> = {}) => Object.entries(record).sort();
    return JSON.stringify([namespace, name, uid, resourceVersion, sorted(labels), sorted(data ?? {})]);
  }).sort();
}
