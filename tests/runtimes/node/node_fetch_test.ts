import { createTlsFetch } from "@listwatch/cache/node";
import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import { describe, it } from "node:test";

// Only Node uses a fetch over node:http, and shows whether a connection is used again.
describe("createTlsFetch", () => {
  it("sends a GET again on a new connection when the server had closed the kept one, and nothing else", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      let requests = 0;
      socket.on("error", () => {});
      socket.on("data", () => {
        if (requests++ > 0) socket.resetAndDestroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fetch = createTlsFetch();
    for (let i = 0; i < 3; i++) {
      assert.equal(await (await fetch(url)).text(), "ok");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(connections, 3);
    // A write may have had its effect: it is not sent twice.
    await assert.rejects(async () => await fetch(url, { method: "POST", body: "x" }));
    assert.equal(connections, 3);
    server.close();
  });

  it("uses the connection of an answer without a body again", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.on("error", () => {});
      socket.on("data", () => socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const fetch = createTlsFetch();
    for (let i = 0; i < 3; i++) {
      assert.equal((await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).status, 204);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(connections, 1);
    server.close();
  });
});
