import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import {
  EMBEDDED_RESOURCES,
  newEmbeddedCluster,
  ServerWriter,
} from "../../../src/cli/living_cluster/embedded_cluster.ts";

describe("newEmbeddedCluster", () => {
  it("writes pods that start and end gracefully, and the API server refuses no write", async () => {
    for (const seed of [1, 2]) {
      const clock = new FakeClock(Date.UTC(2026, 0, 1));
      const { server, run } = newEmbeddedCluster({ clock, seed });
      const before = server.list("v1/pods").items.length;
      const resourceVersion = Number(server.resourceVersion);
      const stop = new AbortController();
      const running = run(stop.signal);
      let terminating = 0;
      for (let second = 0; second < 600; second += 2) {
        await clock.advance(2_000);
        const pods = server.list<KubernetesObject>("v1/pods").items;
        terminating += pods.filter(({ metadata }) => metadata?.deletionTimestamp).length;
        assert.ok(Math.abs(pods.length - before) < 25, `seed ${seed}: ${pods.length} pods`);
      }
      assert.ok(terminating > 0, `seed ${seed}: no pod was seen terminating`);
      assert.ok(Number(server.resourceVersion) > resourceVersion + 1_000, `seed ${seed}: too few writes`);
      const uids = new Set(
        server.list<KubernetesObject>("apps/v1/replicasets").items.map((r) => r.metadata?.uid),
      );
      for (const { metadata } of server.list<KubernetesObject>("v1/pods").items) {
        assert.ok(
          uids.has(metadata?.ownerReferences?.[0].uid),
          `seed ${seed}: ${metadata?.name} has no owner`,
        );
      }
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("deletes a pod after its grace period, and a pod without a node at once", async () => {
    const server = new InMemoryApiServer({ gracefulPodDeletion: true });
    const writer = new ServerWriter(server);
    for (const nodeName of ["worker-1", undefined]) {
      const { apiVersion, kind, metadata, spec, status } = pod("web-1", {
        namespace: "shop",
        nodeName,
        uid: `on ${nodeName}`,
      });
      const object = { apiVersion, kind, metadata, spec, status };
      writer.create(object);
      const deletionTimestamp = "2026-01-01T00:00:30Z";
      writer.update({
        ...object,
        metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 },
      });
      await writer.idle();
      const left = server.get<KubernetesObject>("v1/pods", "shop/web-1");
      assert.equal(left?.metadata?.deletionGracePeriodSeconds, nodeName === undefined ? undefined : 30);
      writer.delete(object);
      assert.equal(server.get("v1/pods", "shop/web-1"), undefined);
    }
    server.close();
  });

  it("keeps creation times of days ago", () => {
    const nowMs = Date.UTC(2026, 0, 20);
    const { server } = newEmbeddedCluster({ clock: new FakeClock(nowMs), seed: 1 });
    const [node] = server.list<KubernetesObject>("v1/nodes").items;
    assert.ok(nowMs - Date.parse(node.metadata?.creationTimestamp ?? "") > 5 * 24 * 3_600_000);
    server.close();
  });

  it("has objects of every default resource", () => {
    const { server } = newEmbeddedCluster({ clock: new FakeClock(), seed: 1 });
    for (const name of EMBEDDED_RESOURCES) {
      const [resource, group] = name.split(".");
      const found = server.list(group === undefined ? `v1/${resource}` : `${group}/v1/${resource}`);
      assert.ok(found.items.length > 0, name);
    }
    server.close();
  });
});
