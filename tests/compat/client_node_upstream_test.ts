/**
 * What docs/from_client_node.md says of client-node 2's informer, where this package's differs.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, silentLogger } from "@listwatch/cache";
import { makeInformer as makeOurs } from "@listwatch/cache/compat/client-node";
import { pod } from "@listwatch/cache/testing";
import { RealCluster } from "../cli/real_cluster.ts";
import { until } from "../until.ts";

type MakeInformer = typeof makeOurs<KubernetesObject>;
type OnEvent = (phase: string, object: KubernetesObject) => Promise<void>;

/** What is used of client-node, whose own types bring those of Node into each file that imports them. */
interface ClientNode {
  KubeConfig: new () => {
    getCurrentCluster(): { readonly server: string } | null;
    applyToHTTPSOptions(options: object): Promise<void>;
    loadFromClusterAndUser(cluster: object, user: object): void;
    makeApiClient(api: unknown): { listPodForAllNamespaces(): Promise<{ items: KubernetesObject[] }> };
  };
  CoreV1Api: unknown;
  ListWatch: new (
    path: string,
    watch: { watch(path: string, query: unknown, onEvent: OnEvent): Promise<AbortController> },
    list: () => Promise<{ items: KubernetesObject[] }>,
    autoStart: boolean,
  ) => ReturnType<MakeInformer>;
  makeInformer: MakeInformer;
}

const load = (name: string): Promise<ClientNode> => import(name);
const { CoreV1Api, KubeConfig, ListWatch, makeInformer: makeTheirs } = await load("@kubernetes/client-node");

async function withInformers(
  test: (
    cluster: RealCluster,
    start: (make: MakeInformer) => ReturnType<MakeInformer>,
  ) => Promise<void>,
): Promise<void> {
  await using cluster = await RealCluster.start();
  cluster.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "c", server: cluster.url, skipTLSVerify: true }, { name: "u" });
  const api = config.makeApiClient(CoreV1Api);
  await test(cluster, (make) => make(config, "/api/v1/pods", () => api.listPodForAllNamespaces()));
}

const ours =
  ((config, path, list) =>
    makeOurs(config, path, list, undefined, undefined, { logger: silentLogger })) as MakeInformer;

describe("makeInformer of client-node and of ./compat/client-node", () => {
  it("differ in two starts at the same time", async () => {
    await withInformers(async (cluster, make) => {
      for (const [maker, watches] of [[ours, 1], [makeTheirs, 2]] as const) {
        const informer = make(maker);
        await Promise.all([informer.start(), informer.start()]);
        await until(() => cluster.server.openWatches === watches);
        await informer.stop();
        await until(() => cluster.server.openWatches === watches - 1);
      }
    });
  });

  it("differ in a callback that throws: theirs calls no other, and rejects where nothing handles it", async () => {
    let onEvent: OnEvent | undefined;
    const watch = {
      watch(_path: string, _query: unknown, callback: OnEvent) {
        onEvent = callback;
        return Promise.resolve(new AbortController());
      },
    };
    const informer = new ListWatch("/api/v1/pods", watch, () => Promise.resolve({ items: [] }), false);
    let calls = 0;
    informer.on("add", () => {
      throw new Error("of a callback");
    });
    informer.on("add", () => calls++);
    await informer.start();
    await assert.rejects(
      onEvent!("ADDED", { metadata: { name: "web-1" } }),
      /of a callback/,
    );
    assert.equal(calls, 0);
  });
});
