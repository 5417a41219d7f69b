import { createTlsFetch } from "@listwatch/cache/node";
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";

/** Answers each request on a connection by its number there, and counts the connections. */
async function serve(answer: (socket: Socket, number: number) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let requests = 0;
    socket.on("error", () => {});
    socket.on("data", () => answer(socket, requests++));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

// Only Node uses a fetch over node:http, and shows whether a connection is used again.
describe("createTlsFetch", () => {
  it("sends a GET again on a new connection when the server had closed the kept one, and nothing else", async () => {
    const { url, sockets, stop } = await serve((socket, number) => {
      if (number > 0) socket.resetAndDestroy();
      else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    try {
      const fetch = createTlsFetch();
      for (let i = 0; i < 3; i++) {
        assert.equal(await (await fetch(url)).text(), "ok");
        await turn();
      }
      assert.equal(sockets.length, 3);
      // A write may have had its effect: it is not sent twice.
      await assert.rejects(async () => await fetch(url, { method: "POST", body: "x" }));
      assert.equal(sockets.length, 3);
    } finally {
      stop();
    }
  });

  it("uses the connection of an answer without a body again", async () => {
    const { url, sockets, stop } = await serve((socket) => socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
    try {
      const fetch = createTlsFetch();
      for (let i = 0; i < 3; i++) {
        assert.equal((await fetch(url)).status, 204);
        await turn();
      }
      assert.equal(sockets.length, 1);
    } finally {
      stop();
    }
  });
});
