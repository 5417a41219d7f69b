import { createTlsFetch } from "@listwatch/cache/node";
import assert from "node:assert/strict";
import process from "node:process";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import { pem } from "../../sockets/certificates.ts";

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

  it("joins what has arrived into one chunk", async () => {
    const { url, stop } = await serve(async (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (let i = 0; i < 50; i++) socket.write("4\r\nline\r\n");
      await turn();
      socket.end("4\r\nlast\r\n0\r\n\r\n");
    });
    try {
      const reader = (await createTlsFetch()(url)).body!.getReader();
      await turn();
      let chunks = 0;
      let bytes = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        chunks++;
        bytes += next.value.length;
      }
      assert.equal(bytes, 4 * 51);
      assert.ok(chunks < 25, `${chunks} chunks`);
    } finally {
      stop();
    }
  });

  it("joins the TLS records that have arrived into one chunk", async () => {
    const [events, size] = [200, 4_000];
    const server = createTlsServer(
      { key: pem("server.key"), cert: pem("server.crt") },
      async (_, response) => {
        for (let i = 0; i < events; i++) {
          response.write("x".repeat(size));
          await new Promise<void>((resolve) => process.nextTick(resolve));
        }
        response.end();
      },
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const fetch = createTlsFetch({ ca: pem("ca.crt") });
      const reader = (await fetch(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)).body!
        .getReader();
      let chunks = 0;
      let bytes = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        chunks++;
        bytes += next.value.length;
      }
      assert.equal(bytes, events * size);
      // Node hands out a record at a time, of at most 16 KiB, and reads 64 KiB of the socket at a time.
      assert.ok(bytes / chunks > 24_000, `${chunks} chunks`);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});
