import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, it } from "node:test";
import { ServedConnections } from "../../src/node/served_connections.ts";

describe("ServedConnections", () => {
  it("parses only the first of thousands of requests that arrive together", async () => {
    const connections = new ServedConnections({ handle() {}, writeTimeoutMs: Infinity, onUnread() {} });
    let requests = 0;
    const server = createServer(() => requests++);
    connections.serve(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = connect({ host: "127.0.0.1", port });
    client.on("error", () => {});
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10_000));
    await new Promise((resolve) => client.once("close", resolve));
    assert.ok(requests >= 1 && requests <= 20, String(requests));
    await new Promise((resolve) => server.close(resolve));
  });
});
