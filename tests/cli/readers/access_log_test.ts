import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { Hono } from "hono";
import { type AccessLogEntry, newAccessLog } from "../../../src/cli/readers/access_log.ts";

describe("newAccessLog", () => {
  it("has the address of a client that leaves in the middle of a stream, which its socket forgets", async () => {
    const entries: AccessLogEntry[] = [];
    const app = new Hono();
    app.use("*", newAccessLog(new FakeClock(), (entry) => void entries.push(entry)).middleware);
    app.get("/stream", () => new Response(new ReadableStream()));
    const socket: { remoteAddress?: string } = { remoteAddress: "10.0.0.7" };
    const response = await app.request("/stream", {}, { incoming: { socket } });
    socket.remoteAddress = undefined;
    await response.body!.cancel();
    assert.deepEqual(entries.map(({ client, path, status }) => [client, path, status]), [
      ["10.0.0.7", "/stream", 200],
    ]);
  });
});
