import { silentLogger } from "@listwatch/cache";
import { type ReadApi, readApi } from "@listwatch/cache/hono";
import { serveFetch, upgradeServed } from "@listwatch/cache/node";
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { FakeInformer, object } from "../hono/fake_informer.ts";
import { until } from "../until.ts";
import { pem } from "./certificates.ts";

const WATCH = "/api/v1/pods?watch=true";

/** A client that sees each byte. */
class RawClient {
  readonly socket: Socket;
  #text = "";
  readonly ended: Promise<void>;

  constructor(url: string, headers: readonly string[] = [], version = "13") {
    const { protocol, hostname, port, host } = new URL(url);
    const address = { host: hostname, port: Number(port) };
    this.socket = protocol === "https:" ? connectTls({ ...address, ca: pem("ca.crt") }) : connect(address);
    this.socket.on("data", (chunk: Uint8Array) => {
      for (const byte of chunk) this.#text += String.fromCharCode(byte);
    });
    this.ended = new Promise((resolve) => this.socket.once("end", () => resolve()));
    this.socket.on("error", () => {});
    const lines = [
      `GET ${WATCH} HTTP/1.1`,
      `Host: ${host}`,
      "Upgrade: websocket",
      "Connection: Upgrade",
      `Sec-WebSocket-Version: ${version}`,
      ...headers,
    ];
    this.socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  }

  /** Waits until the text that was received has this; the test's time limit ends it. */
  async until(part: string | RegExp): Promise<string> {
    while (typeof part === "string" ? !this.#text.includes(part) : !part.test(this.#text)) {
      await new Promise((resolve) => this.socket.once("data", resolve));
    }
    return this.#text;
  }

  /** Sends a frame, masked as a client's must be. */
  send(opcode: number, payload: string, { mask = true } = {}): void {
    const key = [1, 2, 3, 4];
    const bytes = Array.from(payload, (character, i) => character.charCodeAt(0) ^ (mask ? key[i % 4] : 0));
    this.socket.write(
      Uint8Array.from([0x80 | opcode, (mask ? 0x80 : 0) | bytes.length, ...(mask ? key : []), ...bytes]),
    );
  }
}

// The example of RFC 6455.
const KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

describe("upgradeServed", { timeout: 60_000 }, () => {
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  const stopping = new AbortController();
  let api: ReadApi;
  let url: string;
  let finished: Promise<unknown>;

  before(async () => {
    api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      logger: silentLogger,
      upgradeWebSocket: upgradeServed,
      writeTimeoutMs: 300,
      watchBufferBytes: 64 * 1024,
      maxWatchesPerClient: 5,
    });
    const served = await serveFetch(api.fetch, {
      signal: stopping.signal,
      webSockets: true,
      logger: silentLogger,
    });
    ({ url, finished } = served);
  });
  after(async () => {
    stopping.abort();
    await finished;
  });

  const closed = async () => {
    while (api.openWatches()[0] > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  it("serves a watch to the runtime's own WebSocket", async () => {
    const socket = new WebSocket(url.replace("http", "ws") + WATCH, ["watch"]);
    const first = await new Promise<MessageEvent>((resolve) => (socket.onmessage = resolve));
    assert.equal(socket.protocol, "watch");
    assert.match(first.data, /^{"type":"ADDED",.*"web-1".*}\n$/);
    const next = new Promise<MessageEvent>((resolve) => (socket.onmessage = resolve));
    informer.put(object("shop/web-2", 11, { note: "ü".repeat(40_000) }));
    assert.equal(JSON.parse((await next).data).object.note.length, 40_000);
    informer.remove("shop/web-2", 12);
    const code = new Promise<CloseEvent>((resolve) => (socket.onclose = resolve));
    api.endWatches();
    assert.equal((await code).code, 1000);
    await closed();
  });

  it("counts each as a watch of its client until its connection is closed", async () => {
    for (let i = 0; i < 10; i++) {
      const socket = new WebSocket(url.replace("http", "ws") + WATCH, ["watch"]);
      const isClosed = new Promise((resolve) => (socket.onclose = resolve));
      await new Promise((resolve) => (socket.onmessage = resolve));
      socket.close();
      await isClosed;
      await closed();
    }
    for (let status = 0; status !== 200;) {
      const response = await fetch(url + WATCH);
      ({ status } = response);
      await response.body?.cancel();
    }
    await closed();
  });

  it("shakes hands as RFC 6455 says, answers pings, and closes when the client does", async () => {
    const client = new RawClient(url, [KEY]);
    await client.until("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
    await client.until('"web-1"');
    client.send(1, "ignored");
    client.send(9, "hello");
    await client.until("\x8a\x05hello");
    client.send(8, "\x03\xe8");
    await client.until("\x88\x02\x03\xe8");
    await client.ended;
    client.socket.destroy();
    await closed();
  });

  it("serves a watch over TLS", async () => {
    const stop = new AbortController();
    const tls = { cert: pem("server.crt"), key: pem("server.key") };
    const served = await serveFetch(api.fetch, { signal: stop.signal, webSockets: true, tls });
    const client = new RawClient(served.url, [KEY]);
    await client.until('"web-1"');
    client.send(8, "\x03\xe8");
    await client.until("\x88\x02\x03\xe8");
    await client.ended;
    client.socket.destroy();
    await closed();
    stop.abort();
    await served.finished;
  });

  it("ends the watch of a client that breaks off, or sends unmasked frames", async () => {
    const leaving = new RawClient(url, [KEY]);
    await leaving.until('"web-1"');
    leaving.socket.destroy();
    await closed();
    const wrong = new RawClient(url, [KEY]);
    await wrong.until('"web-1"');
    wrong.send(1, "plain", { mask: false });
    await wrong.ended;
    wrong.socket.destroy();
    await closed();
  });

  // Each of them costs the server as much as a message. Bun reads the parts
  // of messages itself, and says nothing of them.
  const FLOODS: readonly (readonly [what: string, opcode: number, payload: string])[] = [
    ["messages", 0x81, "x".repeat(100)],
    ["empty messages", 0x81, ""],
    ["pings", 0x89, "ping"],
    ["empty pings", 0x89, ""],
    ["pongs", 0x8a, ""],
    ...("Bun" in globalThis ? [] : [["parts of a message that never ends", 0x00, ""] as const]),
  ];
  for (const [what, first, payload] of FLOODS) {
    it(`disconnects a client that sends nothing but ${what}`, async () => {
      const client = new RawClient(url, [KEY]);
      await client.until('"web-1"');
      const frame = [first, 0x80 | payload.length, 0, 0, 0, 0, ...new TextEncoder().encode(payload)];
      const begin = first === 0x00 ? [0x01, 0x80, 0, 0, 0, 0] : [];
      client.socket.write(Uint8Array.from(begin));
      const frames = Uint8Array.from(Array.from({ length: 1_000 }, () => frame).flat());
      let sent = 0;
      while (api.openWatches()[0] > 0) {
        client.socket.write(frames);
        sent += frames.length;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      assert.ok(sent < 1_000_000, `${sent} bytes`);
      client.socket.destroy();
    });
  }

  it("disconnects a client at the head of a message that is too large", async () => {
    const client = new RawClient(url, [KEY]);
    await client.until('"web-1"');
    client.socket.write(Uint8Array.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]));
    const limit = Promise.withResolvers<never>();
    const timer = setTimeout(() => limit.reject(new Error("the server waits for the rest")), 10_000);
    await Promise.race([client.ended, limit.promise]).finally(() => {
      clearTimeout(timer);
      client.socket.destroy();
    });
    await closed();
  });

  it("answers 400 to a request without a proper key or version", async () => {
    for (const [header, version] of [["Sec-WebSocket-Key: short", "13"], [KEY, "8"]]) {
      const client = new RawClient(url, [header], version);
      assert.match(await client.until(/missing or bad WebSocket (Key|Version)/), /^HTTP\/1\.1 400 /);
      client.socket.destroy();
    }
    await closed();
  });

  // Bun takes it for a plain request, which waits.
  it("serves others when a connection wants a WebSocket while an earlier request is answered", async () => {
    const { hostname, port, host } = new URL(url);
    const socket = connect(Number(port), hostname);
    const seen = new Promise<void>((resolve) => {
      for (const event of ["data", "close"]) socket.on(event, () => resolve());
    });
    socket.on("error", () => {});
    const handshake = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", KEY];
    socket.write(`GET ${WATCH} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    socket.write(`GET ${WATCH} HTTP/1.1\r\nHost: ${host}\r\n${handshake.join("\r\n")}\r\n\r\n`);
    await seen;
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    socket.destroy();
    // Bun pauses the socket, and does not see that the client has left.
    api.endWatches();
    await closed();
  });

  it("disconnects a client that reads nothing, and holds a bounded number of bytes for it", async () => {
    const client = new RawClient(url, [KEY]);
    await client.until('"web-1"');
    client.socket.pause();
    for (let i = 0; api.openWatches()[0] > 0; i++) {
      informer.put(object(`shop/large-${i % 20}`, 100 + i, { note: "x".repeat(100_000) }));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    client.socket.destroy();
  });
});

describe("serveFetch({ webSockets })", { timeout: 60_000 }, () => {
  it("lets the fetch function accept none of another version, or without a key", async () => {
    const stop = new AbortController();
    const { url, finished } = await serveFetch(
      (_, env) => new Response(`${"acceptWebSocket" in env ? "may" : "may not"} accept`),
      { webSockets: true, signal: stop.signal, logger: silentLogger },
    );
    for (const [headers, version] of [[[KEY], "8"], [["Sec-WebSocket-Key: short"], "13"]] as const) {
      const client = new RawClient(url, headers, version);
      assert.match(await client.until(" accept"), /may not accept$/);
      client.socket.destroy();
    }
    stop.abort();
    await finished;
  });
});

describe("serveFetch, once a WebSocket is accepted", { timeout: 60_000 }, () => {
  /** Accepts the WebSocket of one client, and answers. */
  async function accepted(
    answer: () => Response,
    look: (client: RawClient, stop: AbortController) => Promise<unknown>,
  ) {
    const stop = new AbortController();
    const { url, finished } = await serveFetch((request, env) => {
      assert.ok(upgradeServed(request, { protocol: undefined, env }));
      return answer();
    }, { webSockets: true, signal: stop.signal, logger: silentLogger });
    const client = new RawClient(url, [KEY]);
    try {
      await look(client, stop);
    } finally {
      client.socket.destroy();
      stop.abort();
      await finished;
    }
  }

  const closed = ({ socket }: RawClient) => until(() => socket.resume().closed);

  it("closes its connection where the fetch function fails then", async () => {
    const fail = () => {
      throw new Error("no luck");
    };
    await accepted(fail, closed);
  });

  it("closes its connection when the server stops", async () => {
    await accepted(() => new Response(null), async (client, stop) => {
      await client.until("101 Switching Protocols");
      stop.abort();
      await closed(client);
    });
  });

  it("gives up what it was to send beside it", async () => {
    let isGivenUp = false;
    const body = new ReadableStream({ cancel: () => void (isGivenUp = true) });
    await accepted(() => new Response(body), () => until(() => isGivenUp));
  });
});

describe("serveFetch, an answer to a request for a WebSocket", { timeout: 60_000 }, () => {
  /** Serves one client, until its answer is sent or it has left. */
  async function served(answer: () => Response | Promise<Response>, read: (client: RawClient) => unknown) {
    let hasBegun = () => {};
    const started = new Promise<void>((resolve) => hasBegun = resolve);
    let hasClosed = () => {};
    const closed = new Promise<void>((resolve) => hasClosed = resolve);
    const stop = new AbortController();
    const { url, finished } = await serveFetch(async (_, { outgoing }) => {
      outgoing.once("close", hasClosed);
      hasBegun();
      return await answer();
    }, { webSockets: true, signal: stop.signal, logger: silentLogger });
    const client = new RawClient(url, [KEY]);
    await started;
    await read(client);
    await closed;
    client.socket.destroy();
    stop.abort();
    await finished;
  }

  it("is sent whole, also where it waits for its client", async () => {
    const body = `${"x".repeat(600_000)}end`;
    await served(() => new Response(body), (client) => client.until("end"));
  });

  it("ends when its client leaves", async () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });
    await served(() => new Response(body), async (client) => {
      await client.until("200 OK");
      client.socket.end();
    });
  });

  it("ends where its client has left before it begins", async () => {
    let left = () => {};
    const hasLeft = new Promise<void>((resolve) => left = resolve);
    await served(
      () => hasLeft.then(() => new Response(new ReadableStream())),
      async ({ socket }) => {
        socket.destroy();
        await new Promise((resolve) => setTimeout(resolve, 20));
        left();
      },
    );
  });
});
