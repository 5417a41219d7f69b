import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { type Cluster, silentLogger } from "@listwatch/cache";
import { defineController } from "@listwatch/cache/controller";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { ControllerProcess } from "../../../src/testing/controllers/process.ts";

describe("ControllerProcess", () => {
  it("sends nothing of a request that was given up while the network had it", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    let cluster: Cluster | undefined;
    let sending: Promise<Response> | undefined;
    const process = new ControllerProcess({
      name: "p",
      define: (given) => {
        cluster = given;
        return defineController({ name: "c", for: given.resource("v1/pods"), reconcile() {} });
      },
      memory: new Map(),
      clock,
      fetch: async (url, init) => await server.fetch(url, init),
      network: async ({ method, url, init }, send) => {
        if (method !== "POST") return await send(url, init);
        await arrived;
        return await (sending = send(url, init));
      },
      random: () => 0,
      manager: { logger: silentLogger },
    });
    const request = new AbortController();
    const body = { metadata: { name: "a" }, data: {} };
    const path = "/api/v1/namespaces/default/configmaps";
    const asking = cluster!.request(path, { method: "POST", body, signal: request.signal });
    await clock.advance(0);
    request.abort(new Error("given up"));
    await assert.rejects(asking, /given up/);
    arrive();
    await clock.advance(0);
    await assert.rejects(sending!, /given up/);
    assert.deepEqual(server.list("v1/configmaps").items, []);
    process.kill();
    server.close();
  });
});
