import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, Socket } from "node:net";
import { after, describe, it } from "node:test";
import { newNodeFetch } from "../../src/node/fetch/node_fetch.ts";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

describe("newNodeFetch", () => {
  it("returns status, headers and body", async () => {
    const url = await serve((request, response) => {
      response.writeHead(201, "Made", { "Content-Type": "text/plain", "X-Two": ["a", "b"] });
      response.end(`${request.method} ${request.url}`);
    });
    const response = await newNodeFetch({})(`${url}/a?b=c`);
    assert.equal(response.status, 201);
    assert.equal(response.statusText, "Made");
    assert.equal(response.headers.get("X-Two"), "a, b");
    assert.equal(await response.text(), "GET /a?b=c");
  });

  it("sends a repeated header as two lines", async () => {
    const url = await serve((request, response) => response.end(JSON.stringify(request.rawHeaders)));
    const response = await newNodeFetch({})(url, {
      headers: [["Impersonate-Group", "a"], ["Impersonate-Group", "b"], ["X-One", "1"]],
    });
    const raw: string[] = await response.json();
    const groups = raw.filter((_, i) => raw[i - 1]?.toLowerCase() === "impersonate-group" && i % 2 === 1);
    assert.deepEqual(groups, ["a", "b"]);
  });

  it("accepts a response without a body", async () => {
    const url = await serve((request, response) => {
      response.statusCode = request.method === "HEAD" ? 200 : 204;
      response.end();
    });
    assert.equal((await newNodeFetch({})(url)).body, null);
    assert.equal((await newNodeFetch({})(url, { method: "HEAD" })).body, null);
    assert.equal(await (await newNodeFetch({})(url)).text(), "");
  });

  it("follows no redirect", async () => {
    const url = await serve((_, response) => response.writeHead(302, { Location: "/elsewhere" }).end());
    assert.equal((await newNodeFetch({})(url)).status, 302);
  });

  it("hands out each of many writes, and what comes later", async () => {
    const url = await serve(async (_, response) => {
      for (let i = 0; i < 50; i++) response.write(`line ${i}\n`);
      await turn();
      response.end("last\n");
    });
    const reader = (await newNodeFetch({})(url)).body!.getReader();
    await turn();
    let all = "";
    for (let next = await reader.read(); !next.done; next = await reader.read()) all += text(next.value);
    assert.equal(all, Array.from({ length: 50 }, (_, i) => `line ${i}\n`).join("") + "last\n");
  });

  it("loses nothing of a large body that is read slowly while the server closes the connection", async () => {
    const size = 2_000_000;
    const url = await serve((_, response) => {
      response.setHeader("Connection", "close");
      response.end("x".repeat(size));
    });
    const reader = (await newNodeFetch({})(url)).body!.getReader();
    let length = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      length += next.value.length;
      await turn();
    }
    assert.equal(length, size);
  });

  it("hands out bytes that are their reader's own, into its buffers too: freed, no others are lost", async () => {
    const parts = Array.from({ length: 400 }, (_, i) => `${i} ${"x".repeat((i * 997) % 3_000)}\n`);
    const url = await serve(async (_, response) => {
      for (const [i, part] of parts.entries()) {
        response.write(part);
        if (i % 50 === 0) await turn();
      }
      response.end();
    });
    const own = (await newNodeFetch({})(url)).body!.getReader();
    let all = "";
    for (let { done, value } = await own.read(); !done; { done, value } = await own.read()) {
      await turn(); // more has arrived, some of it in the same buffers
      all += text(value);
      structuredClone(value!.buffer, { transfer: [value!.buffer] });
    }
    assert.equal(all, parts.join(""));
    const into = (await newNodeFetch({})(url)).body!.getReader({ mode: "byob" });
    all = "";
    for (let buffer = new ArrayBuffer(700);;) {
      const { done, value } = await into.read(new Uint8Array(buffer));
      all += text(value);
      if (done) break;
      buffer = value.buffer;
    }
    assert.equal(all, parts.join(""));
  });

  it("reports no error when a body is cancelled, incomplete or complete", async () => {
    const url = await serve((request, response) => {
      response.write("x".repeat(100_000));
      if (request.url === "/whole") response.end();
    });
    for (const path of ["/", "/whole"]) {
      const response = await newNodeFetch({})(url + path);
      await turn();
      await response.body!.cancel();
      const read = (await newNodeFetch({})(url + path)).body!.getReader();
      await read.read();
      await read.cancel();
      await turn();
    }
  });

  it("gives up the connection with an answer that is none: of a status that there is not, and of 101", async () => {
    const sockets = new Set<Socket>();
    const server = createSocketServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
      socket.on("data", (data) => {
        const [head, body] = String(data).includes("/upgrade")
          ? ["101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade", ""]
          : ["999 Odd\r\nContent-Length: 2", "{}"];
        socket.write(`HTTP/1.1 ${head}\r\n\r\n${body}`);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fetch = newNodeFetch({});
    try {
      for (const path of ["/", "/upgrade"]) {
        const answered = Promise.resolve(fetch(url + path, { signal: AbortSignal.timeout(2_000) }));
        // deno-lint-ignore no-await-in-loop -- one after the other
        await assert.rejects(answered, (error: Error) => error.name !== "TimeoutError");
      }
      // deno-lint-ignore no-await-in-loop -- one after the other
      for (let i = 0; i < 100 && sockets.size > 0; i++) await turn();
      assert.equal(sockets.size, 0);
    } finally {
      server.close();
      for (const socket of sockets) socket.destroy();
    }
  });

  it("closes the connection to a proxy that has refused a tunnel and keeps it open", async () => {
    const open = new Set<Socket>();
    const proxy = createSocketServer((socket) => {
      open.add(socket);
      socket.once("data", () => socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
      socket.on("error", () => {});
      socket.on("close", () => open.delete(socket));
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const fetch = newNodeFetch({ proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    await assert.rejects(
      async () => await fetch("https://cluster.example/"),
      /refused to open a tunnel: 403 Forbidden/,
    );
    for (let turns = 0; open.size > 0 && turns < 400; turns++) await turn();
    const left = open.size;
    for (const socket of open) socket.destroy();
    proxy.close();
    assert.equal(left, 0);
  });

  it("lets a tunnel be silent for longer than the proxy may take to open it", async () => {
    // The limits of the client's sockets: the time after which a silent one is given up, 0 for never.
    const limits = new Map<Socket, number[]>();
    const { setTimeout: limit } = Socket.prototype;
    Socket.prototype.setTimeout = function (ms, callback) {
      limits.set(this, [...limits.get(this) ?? [], ms]);
      return limit.call(this, ms, callback);
    };
    const proxy = createSocketServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.once("data", () => socket.destroy()); // the tunnel is used
      });
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
      const fetch = newNodeFetch({ proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
      await assert.rejects(async () => await fetch("https://cluster.example/"));
      const [ofTunnel] = [...limits.values()].filter((each) => each.includes(60_000));
      assert.equal(ofTunnel?.at(-1), 0);
    } finally {
      Socket.prototype.setTimeout = limit;
      proxy.close();
    }
  });

  it("fails when the connection ends before the body does", async () => {
    const url = await serve((_, response) => {
      response.write("a", () => response.destroy());
    });
    const response = await newNodeFetch({})(url);
    await assert.rejects(response.text(), (error) => error instanceof Error);
  });

  it("rejects with the signal's reason, before and after the head of the response", async () => {
    const url = await serve((request, response) => {
      if (request.url === "/body") response.write("a");
    });
    const reason = new Error("enough");
    for (const path of ["/", "/body"]) {
      const controller = new AbortController();
      const answered = Promise.resolve(newNodeFetch({})(url + path, { signal: controller.signal }));
      const read = answered.then((response) => response.text());
      await turn();
      await turn();
      controller.abort(reason);
      await assert.rejects(read, reason);
    }
  });

  it("leaves no listener on the signal of a request that is over, however it ended", async () => {
    const url = await serve((request, response) => {
      if (request.url === "/reset") response.destroy();
      else response.end("ok");
    });
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener: add, removeEventListener: remove } = signal;
    signal.addEventListener = (...args: unknown[]) => {
      listeners++;
      Reflect.apply(add, signal, args);
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listeners--;
      Reflect.apply(remove, signal, args);
    };
    const fetch = newNodeFetch({});
    await (await fetch(url, { signal })).text();
    for (let turns = 0; listeners > 0 && turns < 400; turns++) await turn();
    assert.equal(listeners, 0);
    await assert.rejects(async () => await fetch(`${url}/reset`, { signal }));
    assert.ok(listeners <= 0);
  });

  it("probes its connections, as a server that disappears closes none", async () => {
    const { setKeepAlive } = Socket.prototype;
    const probes: unknown[][] = [];
    Socket.prototype.setKeepAlive = function (...args) {
      probes.push(args);
      return setKeepAlive.apply(this, args);
    };
    try {
      const url = await serve((_, response) => response.end("ok"));
      await (await newNodeFetch({})(url)).text();
      assert.ok(probes.some(([isOn, afterMs]) => isOn === true && afterMs === 30_000));
    } finally {
      Socket.prototype.setKeepAlive = setKeepAlive;
    }
  });
});
