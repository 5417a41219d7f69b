import assert from "node:assert/strict";
import { Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import process from "node:process";
import { connect as connectTls } from "node:tls";
import { silentLogger } from "@listwatch/cache";
import { serveFetch, type ServeFetchOptions } from "@listwatch/cache/node";
import { until } from "../until.ts";
import { pem } from "./certificates.ts";

const tls = { cert: pem("server.crt"), key: pem("server.key") };
const nextTurn = () => new Promise((resolve) => setTimeout(resolve, 0));

/** A server, and raw connections to it. */
async function served(
  answer: (request: Request) => Response | Promise<Response>,
  options: ServeFetchOptions = {},
) {
  const stop = new AbortController();
  const server = await serveFetch(answer, { signal: stop.signal, logger: silentLogger, ...options });
  const sockets: Socket[] = [];
  return {
    server,
    abort: () => stop.abort(),
    /** Sends bytes; collects what comes back. */
    send(text: string) {
      const at = { host: "127.0.0.1", port: server.port };
      const client = { answer: "", isClosed: false, socket: undefined as unknown as Socket };
      const onConnect = () => client.socket.write(text);
      client.socket = options.tls === undefined
        ? connect(at, onConnect)
        : connectTls({ ...at, rejectUnauthorized: false }, onConnect);
      client.socket.on("data", (chunk) => (client.answer += String(chunk)));
      client.socket.on("error", () => {});
      client.socket.on("close", () => (client.isClosed = true));
      sockets.push(client.socket);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      stop.abort();
      await server.finished;
    },
  };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

describe("serveFetch with a request to CONNECT", () => {
  const request = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";

  for (const [kind, options] of [["http", {}], ["https", { tls }]] as const) {
    it(`answers 405 and closes the connection, over ${kind}`, async () => {
      await using app = await served(() => new Response("ok"), options);
      for (const text of [request, `${request}more that is for the other host`]) {
        const client = app.send(text);
        await until(() => client.isClosed);
        assert.match(client.answer, /^HTTP\/1.1 405 Method Not Allowed\r\nConnection: close\r\n/);
        assert.ok(
          client.answer.endsWith("\r\n\r\nCannot connect to another host: this server is no proxy\n"),
        );
      }
    });
  }

  it("gives no answer behind a request that is still being answered, as it would be taken for that", async () => {
    let isAsked = false;
    await using app = await served(() => {
      isAsked = true;
      return new Promise<Response>(() => {});
    });
    const client = app.send(get("/slow"));
    await until(() => isAsked);
    client.socket.write(request);
    await until(() => client.isClosed);
    assert.equal(client.answer, "");
  });
});

describe("serveFetch with a body in chunks", () => {
  const post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

  it("reads it, and closes the connection of one with thousands of tiny ones, read or not", async () => {
    await using app = await served(async (request) =>
      new URL(request.url).pathname === "/unread"
        ? await new Promise<Response>(() => {})
        : new Response(String((await request.arrayBuffer()).byteLength))
    );
    for (const [size, count, length] of [[1, 500, 500], [100, 5_000, 500_000], [10_000, 40, 400_000]]) {
      const chunk = `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
      const client = app.send(`${post}${chunk.repeat(count)}0\r\n\r\n`);
      await until(() => client.answer.endsWith(`\r\n\r\n${length}`));
    }
    for (const path of ["/", "/unread"]) {
      const client = app.send(post.replace("/", path) + "1\r\nx\r\n".repeat(50_000));
      await until(() => client.isClosed);
      assert.equal(client.answer, "");
    }
  });

  it("parses only the first thousands of tiny ones that arrive together, and all of the next body", async (t) => {
    // Bun's parser calls no function of ours.
    if ("Bun" in globalThis) return t.skip("its parser has no functions that could be counted");
    const [major, minor] = process.versions.node.split(".").map(Number);
    // Node's parser ends no read of 64 KiB before its end since 26.12; nothing is taken of the rest.
    const most = major > 26 || (major === 26 && minor > 10) ? 11_000 : 2_500;
    let chunks = 0;
    const { emit } = Server.prototype;
    Server.prototype.emit = function (event: string, ...args: unknown[]) {
      const isHandled = Reflect.apply(emit, this, [event, ...args]);
      if (event === "connection") {
        const { parser } = args[0] as { parser: Record<string, unknown> };
        const [name, onBody] = Object.entries(parser).find(([, value]) =>
          typeof value === "function" && value.name === "parserOnBody"
        ) as [string, (chunk: Uint8Array) => unknown];
        // The server knows it by its name.
        const { parserOnBody } = {
          parserOnBody(this: unknown, chunk: Uint8Array) {
            chunks++;
            return onBody.call(this, chunk);
          },
        };
        parser[name] = parserOnBody;
        (args[0] as Socket).once("close", () => parser[name] = onBody);
      }
      return isHandled;
    };
    try {
      await using app = await served(async (request) => new Response(await request.text()));
      const flood = "1\r\nx\r\n".repeat(10_000);
      for (let connection = 1; connection <= 3; connection++) {
        const client = app.send(post + flood);
        await until(() => client.isClosed);
        assert.ok(chunks >= connection * 1_000 && chunks <= connection * most, String(chunks));
        // The connection's parser may be that of the one before.
        const next = app.send(`${post}5\r\nwhole\r\n0\r\n\r\n`);
        await until(() => next.answer.endsWith("whole"));
      }
    } finally {
      Server.prototype.emit = emit;
    }
  });

  it("reads hundreds of tiny ones that arrive together as a few pieces", async () => {
    await using app = await served(async (request) => {
      let [pieces, bytes] = [0, 0];
      for await (const piece of request.body!) {
        pieces++;
        bytes += piece.byteLength;
      }
      return new Response(`${bytes} bytes, ${pieces <= 10 ? "a few" : pieces} pieces`);
    });
    const client = app.send(`${post}${"1\r\nx\r\n".repeat(900)}0\r\n\r\n`);
    await until(() => client.answer.endsWith("pieces"));
    assert.match(client.answer, /900 bytes, a few pieces/);
  });

  it("reads tiny and large ones in their order, whenever they come", async () => {
    const parts = Array.from({ length: 200 }, (_, i) => String(i).repeat(i % 3 === 0 ? 1 : 50)).concat("!");
    await using app = await served(async (request) =>
      new Response(await request.text() === parts.join("") ? "equal" : "different")
    );
    const client = app.send(post);
    await until(() => client.socket.bytesWritten > 0);
    for (const [i, part] of parts.entries()) {
      client.socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
      if (i % 20 === 0) await nextTurn();
    }
    client.socket.write("0\r\n\r\n");
    await until(() => /equal|different/.test(client.answer));
    assert.match(client.answer, /equal/);
  });

  it("reads one that comes after the answer, and the next request", async () => {
    await using app = await served(() => new Response("no", { status: 401 }));
    const client = app.send(post);
    await until(() => client.answer.endsWith("no"));
    client.socket.write(`64\r\n${"x".repeat(100)}\r\n`.repeat(2_000) + "0\r\n\r\n" + get("/next"));
    await until(() => client.answer.split("HTTP/1.1 401").length === 3);
  });
});

describe("serveFetch with a body of a known length", { timeout: 60_000 }, () => {
  for (const method of ["GET", "HEAD", "POST"]) {
    it(`reads a long one of a ${method} that is not looked at, and the next request`, async () => {
      await using app = await served(() => new Response("yes"));
      const head = `${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n`;
      const client = app.send(`${head}${"x".repeat(3_000_000)}${get("/next")}`);
      await until(() => client.answer.split("HTTP/1.1 200").length === 3);
    });

    it(`closes the connection of a ${method} whose body does not end after the answer`, async () => {
      const options = { requestTimeoutMs: 100, keepAliveTimeoutMs: 1e9 };
      await using app = await served(() => new Response("yes"), options);
      const client = app.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n`);
      await until(() => client.answer.includes("HTTP/1.1 200"));
      for (let turn = 0; turn < 10_000 && !client.isClosed; turn++) {
        client.socket.write("x");
        await nextTurn();
      }
      assert.ok(client.isClosed);
    });
  }
});

/** An answer that waits until it is released. */
function held() {
  const waiting: (() => void)[] = [];
  const seen: string[] = [];
  return {
    seen,
    release: () => waiting.shift()?.(),
    answer: async (request: Request) => {
      seen.push(new URL(request.url).pathname);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return new Response(new URL(request.url).pathname);
    },
  };
}

for (const options of [{}, { tls }]) {
  const kind = "tls" in options ? "over TLS" : "over HTTP";
  describe(`serveFetch with requests that come before the answer to the one before, ${kind},`, () => {
    it("answers them one after the other, in their order", async () => {
      const { seen, release, answer } = held();
      await using app = await served(answer, options);
      const client = app.send(get("/1") + get("/2") + get("/3"));
      for (let number = 1; number <= 3; number++) {
        await until(() => seen.length >= number);
        for (let turn = 0; turn < 20; turn++) await nextTurn();
        assert.equal(seen.length, number);
        release();
        await until(() => client.answer.includes(`\r\n\r\n/${number}`));
      }
      client.socket.write(get("/4"));
      await until(() => seen.length === 4);
      release();
      await until(() => client.answer.includes("\r\n\r\n/4"));
      assert.deepEqual(seen, ["/1", "/2", "/3", "/4"]);
    });

    it("answers eight that wait, too", async () => {
      const { seen, release, answer } = held();
      await using app = await served(answer, options);
      const paths = Array.from({ length: 9 }, (_, i) => `/${i}`);
      const client = app.send(paths.map(get).join(""));
      for (const path of paths) {
        await until(() => seen.includes(path));
        release();
      }
      await until(() => client.answer.includes("\r\n\r\n/8"));
      assert.deepEqual(seen, paths);
    });

    it("closes a connection with thousands, of which it starts one", async () => {
      const { seen, answer } = held();
      await using app = await served(answer, options);
      const clients = Array.from({ length: 3 }, () => app.send(get("/flood").repeat(3_000)));
      await until(() => clients.every(({ isClosed }) => isClosed));
      assert.equal(seen.length, 3);
      assert.deepEqual(clients.map((client) => client.answer), ["", "", ""]);
    });

    it("closes each response with its connection, also behind one that the server gives by itself", async () => {
      let open = 0;
      let started = 0;
      await using app = await served(
        ((_: Request, { outgoing }: { readonly outgoing: ServerResponse }) => {
          open++;
          started++;
          outgoing.once("close", () => open--);
          return new Response("here");
        }) as (request: Request) => Response,
        options,
      );
      const refused = [get("/").replace("Host: a", "Expect: nothing"), get("/").replace("Host: a\r\n", "")];
      for (const first of [...refused, get("/"), ""]) {
        for (const last of ["no request\r\n\r\n", ""]) {
          const clients = Array.from({ length: 10 }, () => app.send(first + get("/") + last));
          for (let turn = 0; turn < 20; turn++) await nextTurn();
          for (const { socket } of clients) socket.destroy();
          await until(() => clients.every(({ isClosed }) => isClosed));
        }
      }
      assert.ok(started > 10);
      for (let turn = 0; turn < 200 && open > 0; turn++) await nextTurn();
      assert.equal(open, 0);
    });

    it("reads no more while some wait, and the others then", async () => {
      if ("Deno" in globalThis && options.tls !== undefined) return; // cannot pause
      if ("Bun" in globalThis) return; // pauses late: it closes the connection of some ten requests
      const { seen, release, answer } = held();
      let serverEnd: Socket | null = null;
      await using app = await served(
        ((request: Request, { outgoing }: { readonly outgoing: ServerResponse }) => {
          serverEnd = outgoing.socket;
          return answer(request);
        }) as (request: Request) => Promise<Response>,
        options,
      );
      const client = app.send("");
      for (const round of ["a", "b"]) {
        const paths = Array.from({ length: 12 }, (_, i) => `/${round}/${i}`);
        const together = [paths.slice(0, 1), paths.slice(1, 4), ...paths.slice(4).map((path) => [path])];
        for (const some of together) {
          client.socket.write(some.map(get).join(""));
          await until(() => seen.length === 1 || client.isClosed);
          // What follows is not read with those before.
          if (some.length > 1) await until(() => serverEnd!.isPaused() || client.isClosed);
          for (let turn = 0; turn < 20; turn++) await nextTurn();
        }
        for (const path of paths) {
          await until(() => seen.includes(path) || client.isClosed);
          release();
        }
        await until(() => client.answer.includes(`\r\n\r\n${paths.at(-1)}`) || client.isClosed);
        assert.deepEqual(seen.splice(0), paths);
      }
    });

    it("reads nothing more while some wait", async () => {
      const { seen, release, answer } = held();
      await using app = await served(answer, options);
      const client = app.send(get("/1"));
      await until(() => seen.length === 1);
      client.socket.write(get("/2"));
      for (let turn = 0; turn < 50; turn++) await nextTurn();
      // More than any socket of this machine takes while its other end is not read.
      const flood = get("/more").repeat(400_000);
      client.socket.write(flood);
      await until(() => client.isClosed || client.socket.bytesWritten > 0);
      for (let turn = 0; turn < 50; turn++) await nextTurn();
      if (!client.isClosed) assert.ok(client.socket.writableLength > 0, "the server reads on");
      assert.equal(seen.length, 1);
      release();
      await until(() => client.answer.includes("/1") || client.isClosed);
    });
  });
}

describe("serveFetch with many headers", () => {
  const headers = (count: number) => Array.from({ length: count }, (_, i) => `a${i % 9}: \r\n`).join("");
  const answer = ({ headers }: Request) => new Response(headers.get("Impersonate-User") ?? "none");

  it("drops none, and answers 431 where there are too many", async () => {
    await using app = await served(answer);
    for (const count of [0, 90, 900, 990, 1_010, 1_100, 1_500, 2_500]) {
      const head = `GET / HTTP/1.1\r\nHost: a\r\n${headers(count)}Impersonate-User: jane\r\n\r\n`;
      const client = app.send(head);
      await until(() => client.answer.includes("\r\n\r\n"));
      if (count > 1_000) assert.match(client.answer, /^HTTP\/1.1 431 /);
      else if (!client.answer.startsWith("HTTP/1.1 431 ")) {
        await until(() => client.answer.endsWith("jane"));
      }
      // Bun has a limit of its own.
      if (count <= ("Bun" in globalThis ? 90 : 990)) assert.match(client.answer, /^HTTP\/1.1 200 /);
      else if (count > 1_000) assert.match(client.answer, /\r\nconnection: close\r\n/i);
      client.socket.destroy();
    }
  });

  it("answers 431 where too many have names of their own, which Deno takes long to go through", async () => {
    let answered = 0;
    await using app = await served(() => new Response(String(++answered)));
    for (const [count, status] of [[90, 200], [101, 431], [990, 431]]) {
      const names = Array.from({ length: count }, (_, i) => `a${i}: \r\n`).join("");
      const client = app.send(`GET / HTTP/1.1\r\nHost: a\r\n${names}\r\n`);
      await until(() => client.answer.includes("\r\n\r\n"));
      assert.equal(client.answer.slice(9, 12), String(status), `${count} names`);
      client.socket.destroy();
    }
    assert.equal(answered, 1);
  });
});

describe("serveFetch with several Host headers", () => {
  it("answers 400, as Go's server does", async () => {
    await using app = await served(({ headers }) => new Response(headers.get("Host")));
    const answerTo = async (hosts: readonly string[]) => {
      const client = app.send(`GET / HTTP/1.1\r\n${hosts.map((host) => `${host}\r\n`).join("")}\r\n`);
      await until(() => client.answer.includes("\r\n\r\n"));
      client.socket.destroy();
      return client.answer;
    };
    assert.match(await answerTo(["Host: a"]), /^HTTP\/1.1 200 /);
    assert.match(await answerTo(["Host: a", "host: a"]), /^HTTP\/1.1 400 /);
    assert.match(await answerTo(["Host: a", "Accept: b", "HOST: b"]), /^HTTP\/1.1 400 /);
  });
});

describe("serveFetch with a long head", () => {
  it("takes a token of the longest kind and a selector of a thousand values, and answers 431 to 80 KiB", async () => {
    await using app = await served(({ url, headers }) =>
      new Response(`${url.length} ${headers.get("Authorization")?.length}`)
    );
    const selector = Array.from(
      { length: 1_000 },
      (_, i) => `node-${String(i).padStart(4, "0")}-of-the-eu-pool`,
    );
    const path = `/api/v1/pods?fieldSelector=${selector.join()}`;
    const head = (token: string) =>
      `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const client = app.send(head("t".repeat(16_384)));
    await until(() => client.answer.includes("\r\n\r\n"));
    assert.match(client.answer, /^HTTP\/1.1 200 /);
    await until(() =>
      client.answer.endsWith(`${"http://a".length + path.length} ${"Bearer ".length + 16_384}`)
    );
    const hostile = app.send(head("t".repeat(80 * 1024)));
    await until(() => hostile.answer.includes("\r\n\r\n") || hostile.isClosed);
    assert.match(hostile.answer, /^HTTP\/1.1 431 /);
  });
});

describe("serveFetch with a client that reads nothing", () => {
  const text = "x".repeat(20_000_000);
  const kinds: Record<string, () => BodyInit> = {
    "a text": () => text,
    "bytes": () => new TextEncoder().encode(text),
    "a stream": () => new Blob([text]).stream(),
    "a stream without an end": () => {
      const piece = new Uint8Array(100_000);
      return new ReadableStream({ pull: (controller) => controller.enqueue(piece) }, { highWaterMark: 0 });
    },
  };
  for (const [kind, body] of Object.entries(kinds)) {
    it(`of ${kind} ends the response after writeTimeoutMs, and another one's in use is not`, async () => {
      const warnings: string[] = [];
      const logger = { ...silentLogger, warn: (line: string) => void warnings.push(line) };
      await using app = await served(() => new Response(body()), { writeTimeoutMs: 400, logger });
      const other = app.send(get("/slow"));
      other.socket.pause();
      const client = app.send(get("/unread"));
      client.socket.pause();
      // A paused socket does not say that it was closed: the server has said so.
      for (let turn = 0; turn < 10_000 && warnings.length === 0; turn++) {
        other.socket.read(3_000);
        other.socket.resume();
        await nextTurn();
        other.socket.pause();
      }
      assert.equal(warnings.length, 1);
      assert.match(warnings[0], /^GET \/unread broke off: the client has read nothing for 400 ms$/);
      client.socket.resume();
      await until(() => client.isClosed);
      assert.ok(client.answer.length < text.length);
    });
  }
});

describe("serveFetch with a client that wants a WebSocket and reads nothing of what it gets instead", () => {
  const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

  for (const [kind, tlsOptions] of [["http", {}], ["https", { tls }]] as const) {
    it(`ends the response after writeTimeoutMs, over ${kind}`, async () => {
      const warnings: string[] = [];
      const logger = { ...silentLogger, warn: (line: string) => void warnings.push(line) };
      const piece = new Uint8Array(100_000);
      const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(piece) });
      const options = { ...tlsOptions, webSockets: true, writeTimeoutMs: 400, logger };
      await using app = await served(() => new Response(endless()), options);
      const client = app.send(get("/unread").replace("\r\n\r\n", `\r\n${upgrade}\r\n`));
      client.socket.pause();
      // Deno's sockets of TLS read on while they are paused.
      if (!("Deno" in globalThis && kind === "https")) await until(() => warnings.length > 0);
    });
  }
});

describe("serveFetch between two requests of a connection", () => {
  it("keeps it open for 75 s, and closes it after keepAliveTimeoutMs", async () => {
    await using app = await served(() => new Response("here"));
    const client = app.send(get("/"));
    await until(() => client.answer.endsWith("here"));
    // Bun does not say it.
    if (!("Bun" in globalThis)) assert.match(client.answer, /\r\nKeep-Alive: timeout=75\r\n/i);
    await using short = await served(() => new Response("here"), { keepAliveTimeoutMs: 200 });
    const left = short.send(get("/"));
    await until(() => left.isClosed);
    assert.match(left.answer, /here$/);
  });
});

describe("ServedFetch.stop", () => {
  it("accepts nothing more, and ends after the answers that are under way", async () => {
    const { seen, release, answer } = held();
    const { server, send } = await served(answer);
    const idle = send("");
    const client = send(get("/1"));
    await until(() => seen.length === 1);
    let isStopped = false;
    const stopped = server.stop(60_000).then(() => (isStopped = true));
    await assert.rejects(fetch(server.url));
    assert.equal(isStopped, false);
    release();
    await stopped;
    await server.finished;
    // Bun's server knows no connection before its first request; it ends with the process.
    await until(() => client.isClosed && (idle.isClosed || "Bun" in globalThis));
    assert.match(client.answer, /^HTTP\/1.1 200 OK\r\n(.+\r\n)*connection: close\r\n(.+\r\n)*\r\n\/1$/i);
  });

  it("closes a connection behind the last of its answers, while others are under way", async () => {
    const streams = new Map<string, ReadableStreamDefaultController<Uint8Array>>();
    const end = (path: string) => streams.get(path)!.close();
    await using app = await served(({ url }) => {
      const start = (own: ReadableStreamDefaultController<Uint8Array>) =>
        void streams.set(new URL(url).pathname, own);
      return new Response(new ReadableStream({ start }));
    });
    const [one, two, lasting] = [get("/1"), get("/2") + get("/3"), get("/lasting")].map(app.send);
    await until(() => [one, two, lasting].every(({ answer }) => answer.includes("\r\n\r\n")));
    const stopped = app.server.stop(60_000);
    end("/1");
    end("/2");
    await until(() => one.isClosed && streams.has("/3"));
    end("/3");
    await until(() => two.isClosed);
    assert.doesNotMatch(one.answer, /^connection: close\r$/im);
    assert.equal(two.answer.match(/^connection: close\r$/gim)?.length, 1);
    assert.equal(lasting.isClosed, false);
    end("/lasting");
    await stopped;
  });

  it("cuts off what takes longer than graceMs", async () => {
    const { seen, answer } = held();
    const first = await served(answer);
    const client = first.send(get("/1"));
    await until(() => seen.length === 1);
    await first.server.stop(50);
    await until(() => client.isClosed);
    assert.equal(client.answer, "");
  });

  for (const how of ["without graceMs", "by the signal", "by the signal after a stop with graceMs"]) {
    it(`cuts off at once what is answered ${how}`, async () => {
      const { seen, answer } = held();
      await using app = await served(answer);
      const client = app.send(get("/1"));
      await until(() => seen.length === 1);
      if (how === "without graceMs") void app.server.stop();
      else {
        if (how.includes("after")) void app.server.stop(60_000);
        app.abort();
      }
      const late = Promise.withResolvers<string>();
      const timer = setTimeout(() => late.resolve("late"), 5_000);
      assert.equal(await Promise.race([app.server.finished, late.promise]), undefined);
      clearTimeout(timer);
      await until(() => client.isClosed);
    });
  }
});

describe("serveFetch with requests of hundreds of connections", () => {
  /** Starts a server, and lets each of many connections send a request at once. */
  async function crowd(onStart: (path: string) => void) {
    const app = await served((request) => {
      onStart(new URL(request.url).pathname);
      return new Response("here");
    });
    const clients = Array.from({ length: 300 }, () => app.send(get("/warm")));
    await until(() => clients.every(({ answer }) => answer.includes("here")));
    return { app, clients };
  }

  it("starts a few of them in a turn of the event loop", async () => {
    let turn = 0;
    let isOver = false;
    const started = new Map<number, number>();
    const { app, clients } = await crowd(() => started.set(turn, (started.get(turn) ?? 0) + 1));
    await using _ = app;
    started.clear();
    const counting = (async () => {
      for (; !isOver; turn++) await new Promise((resolve) => setImmediate(resolve));
    })();
    for (const { socket } of clients) socket.write(get("/crowd"));
    await until(() => clients.every(({ answer }) => answer.split("here").length === 3));
    isOver = true;
    await counting;
    const most = Math.max(...started.values());
    assert.equal(Array.from(started.values()).reduce((sum, count) => sum + count, 0), 300);
    assert.ok(most <= 40, `${most} in one turn`);
  });

  it("starts those for its health before others that came before them", async () => {
    const started: string[] = [];
    const { app, clients } = await crowd((path) => started.push(path));
    await using _ = app;
    started.length = 0;
    for (const [i, { socket }] of clients.entries()) socket.write(get(i === 299 ? "/healthz?a" : "/crowd"));
    await until(() => started.length === 300);
    const at = started.indexOf("/healthz");
    assert.ok(at >= 0 && at < 150, `${at} others were first`);
  });
});
