import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { MergedInformer, readApi } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import { shardOf } from "@listwatch/cache/reflector";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { LogRecorder } from "../log_recorder.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";

const RESOURCE = "v1/configmaps";
const COUNT = 60;

describe("shardOf and MergedInformer on a kube-apiserver with ShardedListAndWatch", {
  skip: skipWithoutOwnServer,
}, () => {
  let connection: OwnConnection;
  let namespaces: string[];
  /** How many objects the lists of the server had. */
  const listed: number[] = [];

  before(async () => {
    connection = await startOwn(["--feature-gates=ShardedListAndWatch=true"]);
    namespaces = await connection.createNamespaces("a", "b", "c");
    const { cluster } = connection;
    await Promise.all(Array.from({ length: COUNT }, (_, i) => create(`settings-${i}`, namespaces[i % 3])));
    assert.equal((await cluster.resource(RESOURCE, { labelSelector: "shards" }).list()).items.length, COUNT);
  });
  after(() => connection?.[Symbol.asyncDispose]());

  async function create(name: string, namespace: string): Promise<void> {
    await connection.cluster.resource<KubernetesObject>(RESOURCE, { namespace })
      .create({ metadata: { name, labels: { shards: "" } } });
  }

  function source(options: { readonly namespace?: string } = {}) {
    const { config } = connection;
    const fetch: typeof globalThis.fetch = async (url, init) => {
      const response = await config.fetch!(String(url), init!);
      if (new URL(String(url)).searchParams.has("watch")) return response;
      const text = await response.text();
      listed.push(JSON.parse(text).items.length);
      return new Response(text, { status: response.status, headers: response.headers });
    };
    return newCluster({ ...config, fetch }).resource(RESOURCE, { labelSelector: "shards", ...options });
  }

  for (const by of ["uid", "namespace", "name"] as const) {
    it(`hold every object once, by ${by}${by === "name" ? "" : ": the server sends each shard its own"}`, async () => {
      listed.length = 0;
      const logger = new LogRecorder();
      const informers = [0, 1, 2].map((index) =>
        new SharedIndexInformer(shardOf(source(), { index, of: 3, by, logger }), {
          logger: silentLogger,
          reflector: { useWatchList: false },
        })
      );
      const running = informers.map((informer) => informer.start());
      await Promise.all(informers.map((informer) => informer.synced(AbortSignal.timeout(20_000))));
      const keys = () => informers.flatMap(({ indexer }) => indexer.listKeys());
      assert.equal(new Set(keys()).size, COUNT);
      assert.equal(keys().length, COUNT);
      assert.deepEqual(logger.lines, [], "the server has the feature");
      const sent = listed.reduce((sum, count) => sum + count, 0);
      assert.equal(sent, by === "name" ? 3 * COUNT : COUNT);
      await create(`late-${by}`, namespaces[0]);
      await eventually(() => assert.equal(keys().filter((key) => key.endsWith(`/late-${by}`)).length, 1));
      await connection.cluster.resource(RESOURCE, { namespace: namespaces[0] }).delete(`late-${by}`);
      await eventually(() => assert.equal(keys().length, COUNT));
      await Promise.all(running.map((each) => each.stop()));
    });
  }

  it("are one API to kubectl, whatever divides them", async () => {
    const kubectl = await ensureGoProgram("kubectl");
    const own = namespaces.map((namespace) => {
      const informer = new SharedIndexInformer(source({ namespace }), { logger: silentLogger });
      return { name: namespace, informer, running: informer.start() };
    });
    await Promise.all(own.map(({ informer }) => informer.synced(AbortSignal.timeout(20_000))));
    const { cluster } = connection;
    const [, , last] = namespaces;
    const stopping = new AbortController();
    const api = readApi({
      resources: [{ informer: new MergedInformer(own), resource: RESOURCE }],
      allowAnonymous: true,
      logger: silentLogger,
    });
    const served = await serveFetch(api.fetch, { signal: stopping.signal });
    const home = await Deno.makeTempDir({ prefix: "listwatch-shards-" });
    const run = async (...args: string[]) => {
      const command = new Deno.Command(kubectl, { args, clearEnv: true, env: { HOME: home }, stdin: "null" });
      const { code, stdout, stderr } = await command.output();
      const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
      assert.equal(code, 0, text(stderr));
      return text(stdout).replace(/\b[0-9]+(m[0-9]+)?s\b|\b[0-9]+m\b/g, "AGE").replace(/ +/g, " ");
    };
    const onServer = ["--kubeconfig", connection.kubeconfigPath];
    const onMerged = ["--server", String(served.url).replace(/\/$/, "")];
    for (
      const command of [
        "get cm -A -l shards",
        "get cm -A -l shards --chunk-size=7",
        `get cm -n ${last} -l shards -o name`,
        `get cm settings-5 -n ${last} -o yaml`,
        `get cm settings-3 -n ${namespaces[0]} -o json`,
        "get cm -A -l shards -o json",
      ]
    ) {
      const words = command.split(" ");
      const [expected, actual] = [await run(...words, ...onServer), await run(...words, ...onMerged)];
      assert.equal(actual, expected, command);
    }
    const pods = newCluster({ server: String(served.url).replace(/\/$/, "") }).resource(RESOURCE);
    const informer = new SharedIndexInformer(pods, { logger: silentLogger });
    const running = informer.start();
    await informer.synced(AbortSignal.timeout(20_000));
    assert.equal(informer.indexer.listKeys().length, COUNT);
    await Promise.all(namespaces.map((namespace) => create("late", namespace)));
    await eventually(() => assert.equal(informer.indexer.listKeys().length, COUNT + 3));
    await Promise.all(
      namespaces.map((namespace) => cluster.resource(RESOURCE, { namespace }).delete("late")),
    );
    await eventually(() => assert.equal(informer.indexer.listKeys().length, COUNT));
    await running.stop();
    stopping.abort();
    await Promise.all(own.map((shard) => shard.running.stop()));
    await Deno.remove(home, { recursive: true });
  });
});
