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

  it("are the same from a read API as from the API server: lists, their forms and pages, errors", async () => {
    const informer = new SharedIndexInformer(source(), { logger: silentLogger });
    const running = informer.start();
    await informer.synced(AbortSignal.timeout(20_000));
    const api = readApi({
      resources: [{ informer, resource: RESOURCE }],
      allowAnonymous: true,
      logger: silentLogger,
    });
    const accepts = [
      undefined,
      "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
      "application/json;as=Table;v=v1;g=meta.k8s.io",
    ];
    const range = (field: string, start: string, end: string) =>
      `shardRange(object.metadata.${field}, '0x${start}', '0x${end}')`;
    const [zero, half, end] = ["0".repeat(16), `8${"0".repeat(15)}`, `1${"0".repeat(16)}`];
    const selectors = [
      range("uid", zero, half),
      range("uid", half, end),
      range("namespace", half, end),
      `  ${range("uid", zero, `2${"0".repeat(15)}`)}||${range("uid", half, end).replaceAll(", ", " ,")} `,
      range("uid", zero, "8"),
      range("uid", half, zero),
      range("name", zero, half),
      `${range("uid", zero, half)} || ${range("namespace", half, end)}`,
      `${range("uid", zero, half)} && ${range("uid", half, end)}`,
      "shardRange(object.metadata.uid)",
      "x",
      " ",
    ];
    const answerOf = async (
      ask: (path: string, init: RequestInit) => Response | Promise<Response>,
      query: string,
      accept?: string,
    ) => {
      const path = `/api/v1/configmaps?labelSelector=shards&${query}`;
      const response = await ask(path, accept === undefined ? {} : { headers: { Accept: accept } });
      const { kind, message, metadata = {}, items = [], rows = [] } = await response.json();
      const objects = [...items ?? [], ...rows.map(({ object }: { object: unknown }) => object)];
      return {
        // kube-apiserver 1.37 refuses a selector with 500.
        status: response.status === 500 ? 400 : response.status,
        kind,
        message,
        isPage: metadata.continue !== undefined,
        remaining: metadata.remainingItemCount,
        // kube-apiserver 1.37 does not show it.
        ...(kind !== "PartialObjectMetadataList" && { shardInfo: metadata.shardInfo }),
        names: objects.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`),
      };
    };
    const seen = new Set<string>();
    for (const selector of selectors) {
      for (const more of ["", "&limit=5", "&resourceVersion=0"]) {
        for (const accept of more === "" ? accepts : [undefined]) {
          const query = `shardSelector=${encodeURIComponent(selector)}${more}`;
          const expected = await answerOf((path, init) => connection.ask(path, init), query, accept);
          const actual = await answerOf((path, init) => api.request(path, init), query, accept);
          assert.deepEqual(actual, expected, `${query} ${accept}`);
          seen.add(String(expected.status));
        }
      }
    }
    assert.deepEqual([...seen], ["200", "400"]);
    await running.stop();
  });

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
