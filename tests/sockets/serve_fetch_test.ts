import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import {
  checkServerTls,
  createTlsFetch,
  followServerTls,
  readServerTls,
  serveFetch,
  TlsError,
} from "@listwatch/cache/node";
import { FakeClock } from "@listwatch/cache/testing";
import { pem } from "./certificates.ts";

const tls = { cert: pem("server.crt"), key: pem("server.key") };
const other = { cert: pem("client.crt"), key: pem("client.key") };
const folder = mkdtempSync(join(tmpdir(), "listwatch-tls-"));
after(() => rmSync(folder, { recursive: true }));

/** Sends some bytes and nothing more; resolves with what came back once the server closes the connection. */
function half(port: number, text: string, isSecure = false): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const at = { host: "127.0.0.1", port };
    const send = () => socket.write(text);
    const socket = isSecure ? connectTls({ ...at, rejectUnauthorized: false }, send) : connect(at, send);
    socket.on("data", (chunk) => (answer += String(chunk)));
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
  });
}

function commonName(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

describe("serveFetch with a path that a Request shows in another form", () => {
  const paths = [
    "/a/../b",
    "/a/%2e%2E/b",
    "/a/.",
    "/a/..?x",
    "/.",
    "/a#b",
    "/a?b=c#d",
    "/a\\..\\b",
    "http://a/b/../c",
  ];
  const plain = ["/a..b/.c/...", "/a?b=/../c", "/a%2f..", "http://a/b"];
  for (const path of [...paths, ...plain]) {
    it(`${plain.includes(path) ? "takes" : "refuses"} ${path}`, async () => {
      const stop = new AbortController();
      const server = await serveFetch(({ url }) => new Response(url), { signal: stop.signal });
      const answer = await half(server.port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.match(answer, plain.includes(path) ? /^HTTP\/1.1 200 / : /^HTTP\/1.1 400 [^]*Bad request: ./);
      stop.abort();
      await server.finished;
    });
  }
});

describe("serveFetch with a client that names no host", () => {
  it("answers, as the health checks of load balancers need it: HTTP/1.0 demands none", async () => {
    const stop = new AbortController();
    const server = await serveFetch(({ url }) => new Response(url), { signal: stop.signal });
    for (const head of ["GET /healthz HTTP/1.0", "OPTIONS /healthz HTTP/1.1\r\nConnection: close\r\nHost:"]) {
      const answer = await half(server.port, `${head}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1.1 200 [^]*http:\/\/127\.0\.0\.1\/healthz$/);
    }
    stop.abort();
    await server.finished;
  });
});

describe("serveFetch with a client that does not finish its request", () => {
  const requests = {
    "sends nothing": "",
    "sends half a head": "GET / HTTP/1.1\r\nHost: a",
    "sends half a body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
  };
  for (const isSecure of [false, true]) {
    for (const [what, text] of Object.entries(requests)) {
      it(`and ${what}${isSecure ? " over TLS" : ""} disconnects it`, async () => {
        const stop = new AbortController();
        const server = await serveFetch(async (request) => new Response(await request.text()), {
          signal: stop.signal,
          headersTimeoutMs: 100,
          requestTimeoutMs: 200,
          ...(isSecure && { tls }),
        });
        assert.match(await half(server.port, text, isSecure), /^(HTTP\/1.1 408 |$)/);
        stop.abort();
        await server.finished;
      });
    }
  }

  it("and sends no TLS to a server with TLS disconnects it", async () => {
    const stop = new AbortController();
    const server = await serveFetch(() => new Response(), {
      signal: stop.signal,
      headersTimeoutMs: 100,
      tls,
    });
    await half(server.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await half(server.port, "");
    stop.abort();
    await server.finished;
  });

  it("does not end other responses: a quiet stream outlives every timeout", async () => {
    const stop = new AbortController();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const server = await serveFetch(
      () => new Response(new ReadableStream({ start: (given) => void (controller = given) })),
      { signal: stop.signal, headersTimeoutMs: 50, requestTimeoutMs: 50, writeTimeoutMs: 50 },
    );
    const response = await fetch(server.url);
    await half(server.port, "GET"); // ends with the timeout
    await half(server.port, "GET");
    controller.enqueue(new TextEncoder().encode("still here"));
    controller.close();
    assert.equal(await response.text(), "still here");
    stop.abort();
    await server.finished;
  });
});

describe("serveFetch over TLS", () => {
  it("answers clients that trust the authority", async () => {
    const stop = new AbortController();
    const server = await serveFetch(({ url }) => new Response(url), { signal: stop.signal, tls });
    assert.equal(server.url, `https://127.0.0.1:${server.port}`);
    const trusting = createTlsFetch({ ca: pem("ca.crt") });
    assert.equal(await (await trusting(`${server.url}/a`)).text(), `${server.url}/a`);
    await assert.rejects(async () => await createTlsFetch({ ca: pem("other_ca.crt") })(server.url));
    stop.abort();
    await server.finished;
  });

  it("changes its certificate between two connections, and ends no response", async () => {
    const stop = new AbortController();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const server = await serveFetch(
      () => new Response(new ReadableStream({ start: (given) => void (controller = given) })),
      { signal: stop.signal, tls },
    );
    const response = await createTlsFetch({ ca: pem("ca.crt") })(server.url);
    assert.equal(await commonName(server.port), "kubernetes");
    await server.setTls(other);
    assert.equal(await commonName(server.port), "admin");
    await server.setTls(tls);
    assert.equal(await commonName(server.port), "kubernetes");
    controller.enqueue(new TextEncoder().encode("still here"));
    controller.close();
    assert.equal(await response.text(), "still here");
    await assert.rejects(server.setTls({ cert: tls.cert, key: other.key }), TlsError);
    assert.equal(await commonName(server.port), "kubernetes");
    stop.abort();
    await server.finished;
  });

  it("rejects a certificate and a key that are not PEM or do not match, and quotes neither", async () => {
    const canary = "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n";
    for (
      const [bad, text] of [
        [{ cert: "CANARY", key: tls.key }, /it is not a PEM certificate/],
        [{ cert: tls.cert, key: canary }, /it is not a PEM private key/],
        [{ cert: tls.cert, key: "CANARY" }, /it is not a PEM private key/],
        [{ cert: tls.cert, key: other.key }, /the key does not match it/],
      ] as const
    ) {
      await assert.rejects(serveFetch(() => new Response(), { tls: bad }), (error) => {
        assert.ok(error instanceof TlsError);
        assert.match(error.message, text);
        assert.ok(!error.message.includes("CANARY"));
        assert.equal(error.cause, undefined);
        return true;
      });
    }
    checkServerTls(tls);
  });

  it("refuses a certificate for a server with plain HTTP", async () => {
    const stop = new AbortController();
    const server = await serveFetch(() => new Response(), { signal: stop.signal });
    await assert.rejects(server.setTls(tls), TypeError);
    stop.abort();
    await server.finished;
  });
});

describe("readServerTls and followServerTls", () => {
  const files = { certFile: join(folder, "tls.crt"), keyFile: join(folder, "tls.key") };
  const write = (cert: string, key: string) => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  const silent = { debug() {}, info() {}, error() {} };

  it("name a file that cannot be read", async () => {
    await assert.rejects(readServerTls(files), (error) => {
      assert.ok(error instanceof TlsError);
      assert.ok(error.message.startsWith(`Cannot read the certificate ${files.certFile}: `), error.message);
      return true;
    });
  });

  it("read files again when they change, and wait for the second of a pair, with one warning", async () => {
    write(tls.cert, tls.key);
    const clock = new FakeClock();
    const stop = new AbortController();
    const seen: string[] = [];
    const warnings: string[] = [];
    const logger = { ...silent, warn: (line: string) => void warnings.push(line) };
    const current = await readServerTls(files);
    followServerTls(files, {
      current,
      clock,
      logger,
      signal: stop.signal,
      onChange: ({ cert }) => void seen.push(cert),
    });
    // Reading a file takes real time: look again until it was read.
    const look = async (isDone: () => boolean) => {
      for (let i = 0; i < 1000 && !isDone(); i++) await clock.advance(10_000);
      assert.ok(isDone());
    };
    writeFileSync(files.certFile, other.cert);
    await look(() => warnings.length > 0);
    assert.match(warnings[0], /the key does not match it.*tls.crt.*; the last certificate stays in use/);
    assert.deepEqual(seen, []);
    writeFileSync(files.keyFile, other.key);
    await look(() => seen.length > 0);
    assert.deepEqual(seen, [other.cert]);
    assert.equal(warnings.length, 1);
    write(tls.cert, tls.key);
    await look(() => seen.length > 1);
    assert.equal(seen.at(-1), tls.cert, "the one before is back");
    stop.abort();
    assert.equal(clock.pendingTimers, 0);
  });

  it("offer a certificate again that could not be taken, and look at nothing for a signal that is aborted", async () => {
    write(tls.cert, tls.key);
    const clock = new FakeClock();
    const stop = new AbortController();
    const warnings: string[] = [];
    const logger = { ...silent, warn: (line: string) => void warnings.push(line) };
    const current = await readServerTls(files);
    let offers = 0;
    const onChange = () => {
      if (++offers < 3) throw new Error("not now");
    };
    followServerTls(files, { current, clock, logger, signal: stop.signal, onChange });
    write(other.cert, other.key);
    for (let i = 0; i < 1000 && offers < 3; i++) await clock.advance(10_000);
    assert.equal(offers, 3);
    assert.deepEqual(warnings, ["not now; the last certificate stays in use"]);
    stop.abort();
    followServerTls(files, { current, clock, logger, signal: stop.signal, onChange });
    assert.equal(clock.pendingTimers, 0);
  });

  it("take nothing and look no more once their signal is aborted, also in the middle of a look", async () => {
    write(tls.cert, tls.key);
    const stop = new AbortController();
    const looks: (() => void)[] = [];
    const clock = Object.assign(new FakeClock(), { setTimeout: (look: () => void) => looks.push(look) });
    let taken = 0;
    const logger = { ...silent, warn() {} };
    const current = await readServerTls(files);
    followServerTls(files, { current, clock, logger, signal: stop.signal, onChange: () => void taken++ });
    write(other.cert, other.key);
    looks.shift()!();
    stop.abort();
    // The files are read at the same time.
    for (let i = 0; i < 5; i++) await readServerTls(files);
    assert.deepEqual([taken, looks.length], [0, 0]);
  });
});
