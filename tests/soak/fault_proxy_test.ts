import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import { FaultProxy, type ProxiedConnection } from "./fault_proxy.ts";

describe("FaultProxy", () => {
  let echo: Server;
  let proxy: FaultProxy;
  let clients: Client[];
  const served = new Set<Socket>();

  beforeEach(async () => {
    clients = [];
    echo = createServer((socket) => {
      served.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => served.delete(socket));
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    proxy = await FaultProxy.start({ port: (echo.address() as AddressInfo).port });
  });
  afterEach(async () => {
    for (const client of clients) client.socket.destroy();
    await proxy[Symbol.asyncDispose]();
    for (const socket of served) socket.destroy();
    await new Promise((resolve) => echo.close(resolve));
  });

  /** A client, and its connection in the proxy. */
  async function open(): Promise<[Client, ProxiedConnection]> {
    const client = new Client(proxy.port);
    clients.push(client);
    assert.equal(await client.echo("hello"), "hello");
    return [client, proxy.connections.at(-1)!];
  }

  it("carries bytes both ways, and the end", async () => {
    const [client, connection] = await open();
    const text = "x".repeat(3_000_000);
    assert.equal(await client.echo(text), text);
    assert.equal(connection.bytesToClient, text.length + 5);
    client.socket.end();
    assert.equal(await client.ended, "end");
    await connection.closed;
    assert.deepEqual(proxy.connections, []);
  });

  it("cuts a connection with a reset, and no other", async () => {
    const [one, connection] = await open();
    const [other] = await open();
    connection.cut();
    assert.equal(await one.ended, "ECONNRESET");
    await connection.closed;
    assert.equal(await other.echo("still here"), "still here");
  });

  it("resets new connections while it turns them away, counts them, and leaves the open ones", async () => {
    const [before] = await open();
    proxy.turnAway(true);
    const refused = new Client(proxy.port);
    clients.push(refused);
    assert.equal(await refused.ended, "ECONNRESET");
    assert.equal(proxy.turnedAway, 1);
    assert.equal(await before.echo("still here"), "still here");
    proxy.turnAway(false);
    await open();
    assert.equal(proxy.turnedAway, 1);
  });

  it("cuts after a number of bytes", async () => {
    const [client, connection] = await open();
    connection.cutAfter(10);
    client.send("0123456");
    await client.receives(7);
    client.send("789abc");
    assert.equal(await client.ended, "ECONNRESET");
    assert.equal(connection.bytesToClient, 5 + 10);
    assert.equal(client.received, "789");
  });

  it("truncates a chunk", async () => {
    const [client, connection] = await open();
    connection.truncate(4);
    client.send("0123456789");
    assert.equal(await client.ended, "ECONNRESET");
    assert.equal(client.received, "0123");
  });

  it("never sends the whole of a chunk that it truncates", async () => {
    const [client, connection] = await open();
    connection.truncate(100);
    client.send("0123");
    assert.equal(await client.ended, "ECONNRESET");
    assert.equal(client.received, "012");
  });

  it("closes one half", async () => {
    const [client, connection] = await open();
    connection.halfClose();
    assert.equal(await client.ended, "end");
    const sent = connection.bytesToServer;
    client.send("into the void");
    client.socket.end();
    await connection.closed;
    assert.equal(connection.bytesToServer, sent + 13);
    assert.equal(client.received, "");
  });

  it("delays, and keeps the order", async () => {
    const [client, connection] = await open();
    connection.delay(40);
    const startMs = performance.now();
    client.send("first ");
    client.send("second");
    assert.equal(await client.receives(12), "first second");
    // There and back; timers may be early by a millisecond.
    assert.ok(performance.now() - startMs >= 78);
  });

  it("holds everything in a black hole, and delivers it when that ends", async () => {
    const [client, connection] = await open();
    const [other] = await open();
    connection.blackHole();
    client.send("lost? ");
    client.send("no");
    assert.equal(await other.echo("meanwhile"), "meanwhile");
    assert.equal(client.received, "");
    assert.equal(connection.bytesToServer, 5);
    proxy.heal();
    assert.equal(await client.receives(8), "lost? no");
  });

  it("does not forward the server's end in a black hole", async () => {
    const [client, connection] = await open();
    const [other] = await open();
    connection.blackHole();
    for (const socket of served) socket.resetAndDestroy();
    assert.equal(await other.ended, "ECONNRESET");
    assert.equal(client.isEnded, false);
    connection.heal();
    assert.equal(await client.ended, "ECONNRESET");
  });

  it("refuses new connections, and takes them again on the same port", async () => {
    const [client] = await open();
    const { port } = proxy;
    proxy.refuse();
    const refused = new Client(port);
    clients.push(refused);
    assert.equal(await refused.ended, "ECONNREFUSED");
    assert.equal(await client.echo("still here"), "still here");
    await proxy.accept();
    assert.equal(proxy.port, port);
    await open();
  });

  it("cuts clients when the server cannot be reached", async () => {
    const [client] = await open();
    for (const socket of served) socket.destroy();
    await client.ended;
    await new Promise((resolve) => echo.close(resolve));
    const late = new Client(proxy.port);
    clients.push(late);
    assert.equal(await late.ended, "ECONNRESET");
  });
});

/** Collects what it receives. */
class Client {
  readonly socket: Socket;
  /** How it ended: `end`, or an error's code. */
  readonly ended: Promise<string>;
  received = "";
  isEnded = false;
  #onData = () => {};

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString();
      this.#onData();
    });
    this.ended = new Promise((resolve) => {
      const end = (how: string) => {
        this.isEnded = true;
        resolve(how);
      };
      this.socket.on("end", () => end("end"));
      this.socket.on("error", (error: Error & { code?: string }) => end(error.code ?? error.message));
    });
  }

  send(text: string): void {
    this.socket.write(text);
  }

  /** Waits for so many bytes, and takes them. */
  async receives(length: number): Promise<string> {
    while (this.received.length < length && !this.isEnded) {
      await Promise.race([new Promise<void>((resolve) => this.#onData = resolve), this.ended]);
    }
    const text = this.received.slice(0, length);
    this.received = this.received.slice(length);
    return text;
  }

  echo(text: string): Promise<string> {
    this.send(text);
    return this.receives(text.length);
  }
}
