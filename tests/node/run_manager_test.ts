import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { defineController, Manager } from "@listwatch/cache/controller";
import { runManager } from "@listwatch/cache/node";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";

describe("runManager", () => {
  it("serves health until a signal ends the manager, and leaves no listener", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const pods = defineController({ name: "pods", for: cluster.resource("v1/pods"), reconcile: () => {} });
    const manager = new Manager(cluster, { controllers: [pods], logger: new LogRecorder() });
    const before = process.listenerCount("SIGTERM");
    const log = new LogRecorder();
    const running = runManager(manager, { port: 0, host: "127.0.0.1", logger: log });
    for (let i = 0; i < 2_000 && log.lines.length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const url = `http://127.0.0.1:${/port ([0-9]+)/.exec(log.lines[0])![1]}/healthz`;
    const answer = await fetch(url);
    assert.deepEqual([answer.status, await answer.text()], [200, "ok\n"]);
    assert.equal(process.listenerCount("SIGTERM"), before + 1);
    process.emit("SIGTERM", "SIGTERM");
    await running;
    assert.equal(process.listenerCount("SIGTERM"), before);
    await assert.rejects(fetch(url));
  });
});
