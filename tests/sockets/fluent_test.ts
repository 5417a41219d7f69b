/**
 * `./compat/fluent` on the cluster that a kubeconfig names, as programs use it.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import { K8s, newK8s, type Watcher } from "@listwatch/cache/compat/fluent";
import { serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { kubeconfigText } from "../cli/real_cluster.ts";

class V1Pod {
  metadata?: { name?: string };
}

describe("K8s of ./compat/fluent", () => {
  it("watches the cluster that KUBECONFIG names, with one watch for two watchers", async () => {
    using server = new InMemoryApiServer();
    const stop = new AbortController();
    const { url } = await serveFetch(server.fetch, { signal: stop.signal, logger: silentLogger });
    const folder = mkdtempSync(join(tmpdir(), "listwatch-fluent-"));
    const before = process.env.KUBECONFIG;
    const watchers: Watcher<V1Pod>[] = [];
    try {
      writeFileSync(join(folder, "config"), kubeconfigText(url));
      process.env.KUBECONFIG = join(folder, "config");
      server.create("v1/pods", pod("a", { namespace: "shop" }));
      const calls: string[] = [];
      let wake = () => {};
      const record = (who: string) => (object: V1Pod, phase: string) => {
        calls.push(`${who} ${phase} ${object.metadata?.name}`);
        wake();
      };
      const until = async (count: number) => {
        while (calls.length < count) await new Promise<void>((resolve) => wake = resolve);
        return calls.splice(0).sort();
      };
      watchers.push(...["one", "two"].map((who) => K8s(V1Pod).InNamespace("shop").Watch(record(who))));
      await Promise.all(watchers.map((watcher) => watcher.start()));
      assert.deepEqual(await until(2), ["one ADDED a", "two ADDED a"]);
      server.delete("v1/pods", "shop/a");
      assert.deepEqual(await until(2), ["one DELETED a", "two DELETED a"]);
      assert.equal(server.openWatches, 1);
    } finally {
      for (const watcher of watchers) await watcher[Symbol.asyncDispose]();
      if (before === undefined) delete process.env.KUBECONFIG;
      else process.env.KUBECONFIG = before;
      stop.abort();
      rmSync(folder, { recursive: true });
    }
  });

  it("rejects the start where there is no cluster", async () => {
    const before = process.env.KUBECONFIG;
    try {
      process.env.KUBECONFIG = join(tmpdir(), "no", "such", "config");
      const watcher = newK8s({ logger: silentLogger })(V1Pod).Watch(() => {});
      await assert.rejects(watcher.start(), { name: "KubeconfigError" });
    } finally {
      if (before === undefined) delete process.env.KUBECONFIG;
      else process.env.KUBECONFIG = before;
    }
  });
});
