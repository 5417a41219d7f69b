import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { answerStatus, InMemoryApiServer } from "@listwatch/cache/testing";
import { type ReflectedIndex, reflectedIndexers } from "../../../src/cli/cluster/select_resources.ts";
import type { ServeStep } from "../../../src/cli/serve/serve_options.ts";
import { reportSteps } from "../../../src/cli/serve/serve.ts";
import { builtinResource } from "../../../src/protocol/builtin_resources.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";

describe("reportSteps", () => {
  it("reports an outage of three resources once for each error code, and its end once", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: server.fetch,
      clock,
      logger: silentLogger,
    });
    const reflected = ["pods", "nodes", "services"].map((name) => {
      const resource = builtinResource({ group: "", version: "v1", resource: name })!;
      const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(
        cluster.resource<KubernetesObject>(resource),
        { name, indexers: reflectedIndexers({ resource }), clock, logger: silentLogger },
      );
      return { name, resource, informer };
    });
    const steps: ServeStep[] = [];
    const stop = reportSteps(reflected, {
      clock,
      report: (step) => void (step.type !== "syncing" && steps.push(step)),
      synced: () => Promise.all(reflected.map(({ informer }) => informer.synced())).then(() => {}),
    });
    const running = reflected.map(({ informer }) => informer.start());
    await Promise.all(reflected.map(({ informer }) => informer.synced()));
    await clock.advance(0);
    const types = () => steps.map(({ type }) => type);
    assert.deepEqual(types(), ["synced"]);

    const restore = server.intercept(answerStatus(500));
    server.closeWatches();
    await clock.advance(60_000);
    assert.deepEqual(types(), ["synced", "trouble"]);
    restore();
    const restoreOther = server.intercept(answerStatus(403));
    await clock.advance(60_000);
    assert.deepEqual(types(), ["synced", "trouble", "trouble"]);
    restoreOther();
    await clock.advance(60_000);
    assert.deepEqual(types(), ["synced", "trouble", "trouble", "recovered"]);

    stop();
    for (const { stop } of running) await stop();
    server.close();
    assert.equal(clock.pendingTimers, 0);
  });
});
