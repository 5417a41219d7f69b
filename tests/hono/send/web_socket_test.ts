import { silentLogger } from "@listwatch/cache";
import { bearerTokens, type ReadApiOptions, type ServerWebSocket } from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SocketWatch, Unread } from "../../../src/hono/send/socket_watch.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";

const WATCH = "/api/v1/pods?watch=true&resourceVersion=10";
// The example of RFC 6455.
const HANDSHAKE = {
  Connection: "keep-alive, Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};
const TOKEN = "jane-has-a-long-token/=?";
const AS_PROTOCOL = `base64url.bearer.authorization.k8s.io.${
  btoa(TOKEN).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
}`;

class FakeSocket extends EventTarget implements ServerWebSocket {
  readyState = 1;
  bufferedAmount: number | undefined = 0;
  isReading = true;
  readonly messages: string[] = [];
  closedWith: number | undefined;

  send(text: string): void {
    if (this.readyState !== 1) throw new Error("not open");
    this.messages.push(text);
    if (!this.isReading && this.bufferedAmount !== undefined) this.bufferedAmount += text.length;
  }

  close(code?: number): void {
    this.closedWith = code;
    this.readyState = 3;
  }

  /** The client closes it. */
  leave(): void {
    this.readyState = 3;
    this.dispatchEvent(new Event("close"));
  }
}

class Served {
  readonly clock = new FakeClock();
  readonly informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  readonly sockets: FakeSocket[] = [];
  protocol: string | undefined;
  readonly api;

  constructor(options: Partial<ReadApiOptions> = {}, socketOf = () => new FakeSocket()) {
    this.api = readApi({
      resources: [{ informer: this.informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock: this.clock,
      logger: silentLogger,
      upgradeWebSocket: (_, { protocol }) => {
        const socket = socketOf();
        this.sockets.push(socket);
        this.protocol = protocol;
        // A response of 101 is made by runtimes only.
        const response = Object.defineProperty(new Response(), "status", { value: 101 });
        return { response, socket };
      },
      ...options,
    });
  }

  async open(headers: Record<string, string> = {}, path = WATCH): Promise<number> {
    const { status } = await this.api.request(`http://cache.example${path}`, {
      headers: { ...HANDSHAKE, ...headers },
    });
    return status;
  }
}

describe("readApi with upgradeWebSocket", () => {
  it("sends each event of a watch as a message with a line end, and closes with 1000", async () => {
    const served = new Served();
    assert.equal(await served.open({}, `${WATCH}&timeoutSeconds=60`), 101);
    const [socket] = served.sockets;
    served.informer.put(object("shop/web-2", 11));
    served.informer.remove("shop/web-1", 12);
    await served.clock.advance(0);
    const events = socket.messages.map((message) => JSON.parse(message));
    assert.deepEqual(events.map(({ type }) => type), ["ADDED", "DELETED"]);
    assert.ok(socket.messages.every((message) => /^{.*}\n$/.test(message)));
    await served.clock.advance(60_000);
    assert.equal(socket.closedWith, 1000);
    assert.deepEqual(served.api.openWatches(), [0]);
    assert.equal(served.clock.pendingTimers, 0);
  });

  it("is 400 for a handshake without a proper version or key, as of kube-apiserver", async () => {
    const served = new Served();
    for (const name of ["Sec-WebSocket-Version", "Sec-WebSocket-Key"]) {
      for (const value of ["8", "12", "013", "13, 8", "", undefined]) {
        const headers = new Headers({ ...HANDSHAKE, ...(value !== undefined && { [name]: value }) });
        if (value === undefined) headers.delete(name);
        const response = await served.api.request(`http://cache.example${WATCH}`, { headers });
        assert.deepEqual([response.status, response.headers.get("Sec-WebSocket-Version")], [400, "13"]);
        assert.match(await response.text(), /^missing or bad WebSocket (Version|Key)\n$/);
      }
    }
    assert.deepEqual(served.sockets, []);
    assert.deepEqual(served.api.openWatches(), [0]);
    // Lists know no handshakes.
    assert.equal(await served.open({ "Sec-WebSocket-Version": "8" }, "/api/v1/pods"), 200);
  });

  it("needs no more than the Upgrade header where a Worker asks another one", async () => {
    const served = new Served();
    const headers = { Upgrade: "websocket" };
    assert.equal((await served.api.request(`http://cache.example${WATCH}`, { headers })).status, 101);
    served.api.endWatches();
  });

  it("sends a line that comes in pieces as one message", async () => {
    const socket = new FakeSocket();
    const pieces = ['{"a"', ':"ü', '"}\n{"b":1}\n{"c"', ":2}\n"].map((text) =>
      new TextEncoder().encode(text)
    );
    pieces.splice(1, 1, pieces[1].subarray(0, -1), pieces[1].subarray(-1)); // within a character
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => pieces.length > 0 ? controller.enqueue(pieces.shift()!) : controller.close(),
    });
    const reader = { take: () => true, give: () => {} };
    const options = { clock: new FakeClock(), bufferBytes: 1_000, writeTimeoutMs: 1_000, reader };
    await new SocketWatch(socket, body, options).run();
    assert.deepEqual(socket.messages, ['{"a":"ü"}\n', '{"b":1}\n', '{"c":2}\n']);
    assert.equal(socket.closedWith, 1000);
  });

  it("counts what waits for a slow client, and no longer when that has read it", async () => {
    const socket = new FakeSocket();
    socket.isReading = false;
    const clock = new FakeClock();
    let held = 0;
    const reader = { take: (bytes: number) => (held += bytes, true), give: (bytes: number) => held -= bytes };
    const body = new Response("a long line\n").body!;
    const running = new SocketWatch(socket, body, { clock, bufferBytes: 5, writeTimeoutMs: 1_000, reader })
      .run();
    await clock.until(() => held > 0);
    socket.bufferedAmount = 0;
    await clock.advance(100);
    await running;
    assert.deepEqual([held, socket.closedWith], [0, 1000]);
  });

  it("waits for a client that reads slowly, as long as it reads", async () => {
    const socket = new FakeSocket();
    socket.isReading = false;
    const clock = new FakeClock();
    const options = {
      clock,
      bufferBytes: 5,
      writeTimeoutMs: 1_000,
      reader: { take: () => true, give: () => {} },
    };
    const running = new SocketWatch(socket, new Response("a line of some length\n").body!, options).run();
    await clock.until(() => socket.bufferedAmount! > 0);
    for (let i = 0; i < 5; i++) {
      await clock.advance(600);
      socket.bufferedAmount! -= 3;
    }
    assert.equal(socket.closedWith, undefined);
    socket.bufferedAmount = 0;
    await clock.advance(100);
    await running;
    assert.equal(socket.closedWith, 1000);
  });

  it("leaves no watch open where the upgrade fails", async () => {
    const served = new Served({}, () => {
      throw new Error("no sockets");
    });
    assert.equal(await served.open(), 500);
    assert.deepEqual(served.api.openWatches(), [0]);
  });

  it("waits where as much as may is in the socket, or unread by a client that says what it has read", () => {
    const socket = new FakeSocket();
    const unread = new Unread(socket, 5);
    for (const [amount, isFull] of [[4, false], [5, true]] as const) {
      socket.bufferedAmount = amount;
      assert.equal(unread.isFull, isFull);
    }
    const silent = Object.assign(new FakeSocket(), { bufferedAmount: undefined });
    const large = new Unread(silent, 2 * 1024 * 1024);
    large.add("x");
    large.onMessage("1");
    large.add("x".repeat(1.5 * 1024 * 1024));
    assert.equal(large.isFull, false);
    large.add("x".repeat(1024 * 1024));
    assert.equal(large.isFull, true);
  });

  it("has said what it has read by the number of messages only, and by no other text", () => {
    const unread = new Unread(Object.assign(new FakeSocket(), { bufferedAmount: undefined }), 5);
    for (let i = 0; i < 3; i++) unread.add("message");
    for (const other of ["", "0", "-1", "4", "1e0", "x", " 1", 1, new Uint8Array([49])]) {
      unread.onMessage(other);
      assert.deepEqual([unread.canDrain, unread.amount], [false, 21], String(other));
    }
    for (const [count, amount] of [["1", 14], ["1", 14], ["3", 0], ["2", 0], ["4", 0]] as const) {
      unread.onMessage(count);
      assert.deepEqual([unread.canDrain, unread.amount], [true, amount], count);
    }
  });

  it("sends 410 as an ERROR event, and refusals as plain answers", async () => {
    const served = new Served();
    assert.equal(await served.open({}, "/api/v1/pods?watch=true&resourceVersion=1"), 101);
    await served.clock.advance(0);
    assert.equal(JSON.parse(served.sockets[0].messages[0]).object.code, 410);
    assert.equal(served.sockets[0].closedWith, 1000);
    assert.equal(await served.open({}, "/api/v1/pods?watch=true&resourceVersion=x"), 500);
    assert.equal(await served.open({}, "/api/v1/pods"), 200);
    assert.equal(await served.open({ Accept: "text/event-stream" }), 200);
    assert.equal(served.sockets.length, 1);
  });

  it("ends the watch when the client leaves, and the socket when the watch is ended", async () => {
    const served = new Served();
    await served.open();
    await served.clock.advance(0);
    served.sockets[0].leave();
    await served.clock.advance(0);
    assert.deepEqual(served.api.openWatches(), [0]);
    await served.open();
    assert.equal(served.api.endWatches(), 1);
    await served.clock.advance(0);
    assert.equal(served.sockets[1].closedWith, 1000);
  });

  it("waits for a slow client with a bounded buffer, and closes with 1013 one that reads nothing", async () => {
    const served = new Served({ watchBufferBytes: 1_000 });
    await served.open();
    const [socket] = served.sockets;
    socket.isReading = false;
    for (let i = 0; i < 100; i++) served.informer.put(object(`shop/p-${i}`, 11 + i));
    await served.clock.advance(29_000);
    assert.ok(socket.bufferedAmount! < 1_500, String(socket.bufferedAmount));
    socket.bufferedAmount = 0;
    await served.clock.advance(29_000);
    assert.equal(socket.closedWith, undefined);
    await served.clock.advance(2_000);
    assert.equal(socket.closedWith, 1013);
    assert.deepEqual(served.api.openWatches(), [0]);
    assert.equal(served.clock.pendingTimers, 0);
  });

  it("waits no longer for a slow client that leaves, nor for one that leaves before its socket is open", async () => {
    const served = new Served({ watchBufferBytes: 1_000 });
    await served.open();
    const [slow] = served.sockets;
    slow.isReading = false;
    for (let i = 0; i < 100; i++) served.informer.put(object(`shop/p-${i}`, 11 + i));
    await served.clock.advance(1_000);
    slow.leave();
    await served.clock.advance(1_000);
    assert.equal(served.clock.pendingTimers, 0);
    for (const event of ["close", "error"]) {
      const connecting = new Served({}, () => Object.assign(new FakeSocket(), { readyState: 0 }));
      await connecting.open();
      connecting.sockets[0].dispatchEvent(new Event(event));
      await connecting.clock.advance(0);
      assert.deepEqual(connecting.api.openWatches(), [0]);
      assert.equal(connecting.clock.pendingTimers, 0);
    }
  });

  it("bounds what is unread where the runtime does not say it, by what the client says or by 16 MiB", async () => {
    const served = new Served(
      { eventWindow: 10_000 },
      () => Object.assign(new FakeSocket(), { bufferedAmount: undefined }),
    );
    const confirm = (socket: FakeSocket, data: unknown) =>
      socket.dispatchEvent(new MessageEvent("message", { data }));
    await served.open();
    await served.open();
    const [silent, speaking] = served.sockets;
    const note = "x".repeat(100_000);
    const put = async (from: number, count: number) => {
      for (let i = from; i < from + count; i++) {
        served.informer.put(object(`shop/p-${i}`, 11 + i, { note }));
        await served.clock.advance(0);
      }
    };
    await put(0, 5);
    for (const wrong of ["", "0", "-1", "6", "1e3", "x", 5, null]) confirm(speaking, wrong);
    confirm(speaking, "5");
    await put(5, 200);
    const sentTo = (socket: FakeSocket) => socket.messages.join("").length;
    assert.ok(sentTo(silent) < 17 * 1024 * 1024, String(sentTo(silent)));
    assert.equal(silent.closedWith, 1013);
    assert.ok(sentTo(speaking) < 2 * 1024 * 1024, String(sentTo(speaking)));
    assert.equal(speaking.closedWith, undefined);
    confirm(speaking, String(speaking.messages.length));
    await served.clock.advance(100);
    assert.ok(sentTo(speaking) > 2_000_000);
    await served.clock.advance(31_000);
    assert.equal(speaking.closedWith, 1013);
    assert.equal(served.clock.pendingTimers, 0);
  });

  it("closes with 1008 a client that says more than what it has read", async () => {
    const served = new Served();
    const said = (socket: FakeSocket, data: unknown) =>
      socket.dispatchEvent(new MessageEvent("message", { data }));
    for (let i = 0; i < 5; i++) await served.open();
    const [many, long, binary, polite, bytes] = served.sockets;
    for (let i = 0; i <= 100; i++) said(many, "");
    said(long, "x".repeat(1_025));
    said(polite, "x".repeat(1_024));
    said(binary, new Blob(["x".repeat(1_025)]));
    said(bytes, new Uint8Array(1_025).buffer);
    for (let i = 0; i < 1_000; i++) {
      served.informer.put(object("shop/web-2", 11 + i));
      await served.clock.advance(0);
      said(polite, String(i + 1));
    }
    assert.deepEqual([many, long, binary, bytes, polite].map(({ closedWith }) => closedWith), [
      1008,
      1008,
      1008,
      1008,
      undefined,
    ]);
    assert.deepEqual(served.api.openWatches(), [1]);
  });

  it("begins when the socket is open, and gives up one that does not open", async () => {
    const served = new Served({}, () => Object.assign(new FakeSocket(), { readyState: 0 }));
    await served.open();
    await served.open();
    const [first, second] = served.sockets;
    served.informer.put(object("shop/web-2", 11));
    await served.clock.advance(0);
    assert.deepEqual(first.messages, []);
    first.readyState = 1;
    const { pendingTimers } = served.clock;
    first.dispatchEvent(new Event("open"));
    assert.equal(served.clock.pendingTimers, pendingTimers - 1);
    await served.clock.advance(30_000);
    assert.equal(first.messages.length, 1);
    assert.equal(second.closedWith, 1013);
    assert.deepEqual(served.api.openWatches(), [1]);
  });

  it("knows the token of a page by its subprotocol, and answers with another one", async () => {
    const authenticate = bearerTokens([{ token: TOKEN, user: { name: "jane" } }]);
    const served = new Served({ authenticate });
    assert.equal(await served.open(), 401);
    assert.equal(await served.open({ "Sec-WebSocket-Protocol": AS_PROTOCOL }), 401);
    assert.equal(await served.open({ "Sec-WebSocket-Protocol": `${AS_PROTOCOL}, ${AS_PROTOCOL}, x` }), 401);
    assert.equal(await served.open({ "Sec-WebSocket-Protocol": `${AS_PROTOCOL}, watch` }), 101);
    assert.equal(served.protocol, "watch");
    const plain = await served.api.request("/api/v1/pods", {
      headers: { "Sec-WebSocket-Protocol": `${AS_PROTOCOL}, watch` },
    });
    assert.equal(plain.status, 401);
  });

  it("refuses pages of other origins, unless cors allows them", async () => {
    const own = { Origin: "https://cache.example" };
    const other = { Origin: "https://evil.example" };
    const friend = { Origin: "https://dashboard.example" };
    const cookie = { Cookie: "session=1" };
    const closed = new Served();
    assert.equal(await closed.open(own), 101);
    assert.equal(await closed.open({ ...own, ...cookie }), 101);
    const others = ["https://evil.example", "null", "file://", "https://cache.example.evil.example"];
    others.push("https://evil-cache.example", "https://x.cache.example", "https://cache.example:8443");
    for (const origin of others) assert.equal(await closed.open({ Origin: origin }), 403, origin);
    assert.deepEqual(closed.api.openWatches(), [2]);
    const named = new Served({ cors: { origins: ["https://dashboard.example"] } });
    assert.equal(await named.open(friend), 101);
    assert.equal(await named.open({ ...friend, ...cookie }), 403);
    assert.equal(await named.open({ ...friend, Authorization: "Basic eDp5" }), 403);
    assert.equal(await named.open(other), 403);
    const trusted = new Served({ cors: { origins: ["https://dashboard.example"], credentials: true } });
    assert.equal(await trusted.open({ ...friend, ...cookie }), 101);
    const any = new Served({ cors: { origins: "*" } });
    assert.equal(await any.open(other), 101);
    assert.equal(await any.open({ ...other, ...cookie }), 403);
  });

  it("has watches that the API server answers, as Java clients open each of their watches so", async () => {
    const lines = ["a", "b"].map((name) => JSON.stringify({ type: "ADDED", object: { metadata: { name } } }));
    const sent: { readonly url: string; readonly headers: Headers }[] = [];
    let answer = () =>
      new Response(`${lines.join("\n")}\n`, { headers: { "Content-Type": "application/json" } });
    const fetch = (url: string, { headers }: RequestInit) => {
      sent.push({ url, headers: new Headers(headers) });
      return answer();
    };
    const passThrough = { server: "https://api.example", fetch };
    const served = new Served({ passThrough });
    const reader = { Authorization: `Bearer ${TOKEN}` };
    const paths = ["/api/v1/secrets?watch=true&resourceVersion=5", "/api/v1/watch/namespaces/shop/secrets/a"];
    for (const [i, path] of paths.entries()) {
      assert.equal(await served.open(reader, path), 101, path);
      await served.clock.advance(0);
      assert.deepEqual(served.sockets[i].messages, lines.map((line) => `${line}\n`));
      assert.equal(served.sockets[i].closedWith, 1000);
      assert.equal(sent[i].url, `https://api.example${path}`);
      assert.deepEqual([sent[i].headers.get("Upgrade"), sent[i].headers.get("Authorization")], [
        null,
        reader.Authorization,
      ]);
    }
    assert.equal(await served.open({ ...reader, Origin: "https://evil.example" }, paths[0]), 403);
    assert.equal(sent.length, 2);
    answer = () => Response.json({ kind: "Status", code: 403 }, { status: 403 });
    assert.equal(await served.open(reader, paths[0]), 403);
    assert.equal(served.sockets.length, 2);
    const plain = new Served({ passThrough, upgradeWebSocket: undefined });
    answer = () => new Response(`${lines[0]}\n`);
    assert.equal(await plain.open(reader, paths[0]), 200);
  });

  it("answers a plain watch where there is no upgradeWebSocket", async () => {
    const api = readApi({
      resources: [{ informer: FakeInformer.with([], 10), resource: "v1/pods" }],
      allowAnonymous: true,
    });
    const response = await api.request(WATCH, { headers: { Connection: "Upgrade", Upgrade: "websocket" } });
    assert.equal(response.status, 200);
    await response.body!.cancel();
  });

  it("refuses an option that is no function", () => {
    const options: Record<string, unknown> = { resources: [], allowAnonymous: true, upgradeWebSocket: true };
    assert.throws(() => readApi(options as unknown as ReadApiOptions), /`upgradeWebSocket`/);
  });
});
