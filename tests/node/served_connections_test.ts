import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { nextTurn, realClock } from "../../src/util/clock.ts";
import { ServedConnections } from "../../src/node/serving/served_connections.ts";
import { until } from "../until.ts";
import { watchedTimers } from "../watched_timers.ts";

describe("ServedConnections", () => {
  it("parses only the first of thousands of requests that arrive together", async () => {
    const connections = new ServedConnections({
      handle() {},
      requestTimeoutMs: 60_000,
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
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

  for (const isAnswered of [false, true]) {
    const when = isAnswered ? "after the answer" : "before the answer";
    it(`parses only some of the ten thousand chunks of a body that arrive together, ${when}`, async () => {
      const connections = new ServedConnections({
        requestTimeoutMs: 60_000,
        handle: (incoming, outgoing) => {
          if (isAnswered) outgoing.end("no");
          else incoming.resume().once("end", () => outgoing.end("no"));
        },
        writeTimeoutMs: Infinity,
        onUnread() {},
      });
      const server = createServer();
      connections.serve(server);
      let chunks = 0;
      server.on("connection", (socket) => {
        const { parser } = socket as unknown as { parser: Record<string, unknown> };
        const [name, onBody] = Object.entries(parser).find(([, value]) =>
          typeof value === "function" && value.name === "parserOnBody"
        ) as [string, (chunk: Uint8Array) => unknown];
        parser[name] = function (chunk: Uint8Array) {
          chunks++;
          return onBody.call(this, chunk);
        };
        socket.once("close", () => (parser[name] = onBody));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const client = connect({ host: "127.0.0.1", port });
      client.on("error", () => {});
      const last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      const body = `${"1\r\nx\r\n".repeat(10_000)}0\r\n\r\n${last}`;
      client.write(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + (isAnswered ? "" : body),
      );
      client.once("data", () => client.write(body));
      await new Promise((resolve) => client.resume().once("close", resolve));
      assert.ok(chunks > 1_000 && chunks <= 2_500, String(chunks));
      await new Promise((resolve) => server.close(resolve));
    });
  }

  it("hands over a large body, and what follows an upgrade, whole", async () => {
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle: async (incoming, outgoing) => {
        let text = "";
        for await (const chunk of incoming) text += chunk;
        outgoing.end(text);
      },
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const server = createServer();
    connections.serve(server);
    const upgraded = new Promise<string>((resolve) =>
      server.on("upgrade", (_, socket, first) => {
        let text = String(first);
        socket.on("data", (chunk) => text += String(chunk));
        socket.on("end", () => {
          socket.end();
          resolve(text);
        });
      })
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const body = Array.from({ length: 30_000 }, (_, i) => i).join(" ");
    const at = `http://127.0.0.1:${port}/`;
    assert.equal(await (await fetch(at, { method: "POST", body })).text(), body);
    const client = connect({ host: "127.0.0.1", port });
    client.end(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n${body}`);
    client.resume();
    assert.equal(await upgraded, body);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("leaves neither a timer nor a listener behind a body that came after the answer to it", async () => {
    using timers = watchedTimers();
    const requestTimeoutMs = 59_999;
    const connections = new ServedConnections({
      requestTimeoutMs,
      handle: (_, outgoing) => void outgoing.end("yes"),
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const server = createServer();
    connections.serve(server);
    const served = new Promise<Socket>((resolve) => server.once("connection", resolve));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
    let answers = 0;
    client.on("data", (data) => answers += String(data).split("HTTP/1.1 200").length - 1);
    const listeners: number[] = [];
    for (let i = 1; i <= 3; i++) {
      client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
      await until(() => answers === i);
      assert.deepEqual([...timers.pending.values()], [requestTimeoutMs]);
      client.write("123456789");
      await until(() => timers.pending.size === 0);
      listeners.push((await served).listenerCount("close"));
    }
    assert.equal(listeners[2], listeners[0]);
    client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it("starts the request of an address after few of another one, which has sent hundreds before", async () => {
    const started: (string | undefined)[] = [];
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle: ({ socket }) => void started.push(socket.remoteAddress),
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const server = new EventEmitter();
    connections.serve(server as Server);
    const addresses = Array.from({ length: 301 }, (_, i) => i < 300 ? "192.0.2.1" : "192.0.2.2");
    const sockets = addresses.map((remoteAddress) => Object.assign(new EventEmitter(), { remoteAddress }));
    for (const socket of sockets) {
      const incoming: Partial<IncomingMessage> = {
        headers: {},
        rawHeaders: [],
        url: "/",
      };
      server.emit("request", Object.assign(incoming, { socket }), new EventEmitter());
    }
    while (!started.includes("192.0.2.2")) await nextTurn();
    assert.ok(started.length <= 20, `${started.length} were first`);
    for (const socket of sockets) socket.emit("close");
  });

  it("starts requests for the health of the server before others, and none that are named like them", async () => {
    const started: string[] = [];
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle: ({ url }) => void started.push(url!),
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const server = new EventEmitter();
    connections.serve(server as Server);
    const health = ["/healthz", "/livez?verbose", "/readyz/etcd"];
    const urls = [...Array.from({ length: 300 }, () => "/"), "/healthzs", ...health];
    const sockets = urls.map((url) => {
      const socket = Object.assign(new EventEmitter(), { remoteAddress: "192.0.2.1" });
      server.emit("request", { headers: {}, rawHeaders: [], url, socket }, new EventEmitter());
      return socket;
    });
    while (!health.every((url) => started.includes(url))) await nextTurn();
    assert.equal(started.includes("/healthzs"), false);
    for (const socket of sockets) socket.emit("close");
  });

  it("looks for clients that read nothing four times within their limit, every five seconds at least", () => {
    const { setTimeout: realTimeout } = realClock;
    for (const [writeTimeoutMs, lookMs] of [[2_000, 500], [30_000, 5_000]]) {
      const delaysMs: number[] = [];
      Object.assign(realClock, { setTimeout: (_: () => void, ms: number) => delaysMs.push(ms) });
      const connections = new ServedConnections({
        requestTimeoutMs: 60_000,
        handle() {},
        writeTimeoutMs,
        onUnread() {},
      });
      const [server, socket] = [new EventEmitter(), new EventEmitter()];
      connections.serve(server as Server);
      server.emit("request", { headers: {}, rawHeaders: [], url: "/", socket }, new EventEmitter());
      Object.assign(realClock, { setTimeout: realTimeout });
      assert.ok(delaysMs.includes(lookMs), String(delaysMs));
      socket.emit("close");
    }
  });

  it("ends the answer of a client that has read nothing for a time, though more and more is queued for it", () => {
    const { setTimeout: realTimeout, monotonicNow: realNow } = realClock;
    const looks: (() => void)[] = [];
    let nowMs = 0;
    let isDestroyed = false;
    Object.assign(realClock, {
      setTimeout: (look: () => void) => looks.push(look),
      monotonicNow: () => nowMs,
    });
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle() {},
      writeTimeoutMs: 30_000,
      onUnread() {},
    });
    const server = new EventEmitter();
    const socket = Object.assign(new EventEmitter(), { bytesWritten: 0, destroy: () => isDestroyed = true });
    const outgoing = Object.assign(new EventEmitter(), { writableLength: 0 });
    connections.serve(server as Server);
    server.emit("request", { headers: {}, rawHeaders: [], url: "/", socket }, outgoing);
    for (; nowMs < 120_000 && !isDestroyed; nowMs += 5_000) {
      outgoing.writableLength += 100;
      socket.bytesWritten += nowMs <= 60_000 ? 200 : 100; // those that are queued count
      for (const look of looks.splice(0)) look();
    }
    Object.assign(realClock, { setTimeout: realTimeout, monotonicNow: realNow });
    assert.deepEqual([isDestroyed, nowMs], [true, 95_000]);
    socket.emit("close");
  });

  it("counts no time in which the process was suspended as time in which a client has read nothing", () => {
    const { setTimeout: realTimeout, monotonicNow: realNow } = realClock;
    const looks: (() => void)[] = [];
    let nowMs = 0;
    let isDestroyed = false;
    Object.assign(realClock, {
      setTimeout: (look: () => void) => looks.push(look),
      monotonicNow: () => nowMs,
    });
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle() {},
      writeTimeoutMs: 30_000,
      onUnread() {},
    });
    const server = new EventEmitter();
    const socket = Object.assign(new EventEmitter(), { bytesWritten: 0, destroy: () => isDestroyed = true });
    const outgoing = Object.assign(new EventEmitter(), { writableLength: 100 });
    connections.serve(server as Server);
    server.emit("request", { headers: {}, rawHeaders: [], url: "/", socket }, outgoing);
    for (let i = 0; i < 20; i++) {
      // What was sent meanwhile is seen only once the event loop has turned.
      nowMs += i % 2 === 0 ? 3_600_000 : 5_000;
      if (i % 2 === 1) socket.bytesWritten += 100;
      for (const look of looks.splice(0)) look();
    }
    Object.assign(realClock, { setTimeout: realTimeout, monotonicNow: realNow });
    assert.equal(isDestroyed, false);
    socket.emit("close");
  });

  it("has nothing to wait for at its end where nothing is being answered", async () => {
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle() {},
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    let isOver = false;
    void connections.finish(3_600_000).then(() => isOver = true);
    await nextTurn();
    assert.equal(isOver, true);
  });

  it("leaves no timer of an end with more time behind when it is ended again, and all that is answered ends", async () => {
    using timers = watchedTimers();
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle() {},
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const [server, socket] = [new EventEmitter(), new EventEmitter()];
    connections.serve(server as Server);
    const outgoing = Object.assign(new EventEmitter(), { headersSent: true });
    server.emit("request", { headers: {}, rawHeaders: [], url: "/", socket }, outgoing);
    const finished = connections.finish(3_600_000);
    await connections.finish(0);
    assert.equal(timers.pending.size, 1);
    socket.emit("close");
    assert.equal(timers.pending.size, 0);
    await finished;
  });

  it("closes what it has, and knows nothing more of a connection that has closed", () => {
    const connections = new ServedConnections({
      requestTimeoutMs: 60_000,
      handle() {},
      writeTimeoutMs: Infinity,
      onUnread() {},
    });
    const server = new EventEmitter();
    connections.serve(server as Server);
    const closed: string[] = [];
    const [left] = ["left", "open"].map((name) => {
      const socket = Object.assign(new EventEmitter(), { destroy: () => void closed.push(name) });
      server.emit("connection", socket);
      return socket;
    });
    left.emit("close");
    connections.close();
    assert.deepEqual(closed, ["open"]);
  });
});
