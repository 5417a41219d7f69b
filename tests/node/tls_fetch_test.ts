import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { NetworkError, newCluster, silentLogger } from "@listwatch/cache";
import { createTlsFetch } from "@listwatch/cache/node";
import { FakeClock } from "@listwatch/cache/testing";
import { newNodeFetch } from "../../src/node/fetch/node_fetch.ts";
import { createFileCertificateFetch } from "../../src/node/fetch/tls_fetch.ts";

const pem = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");
const ca = pem("ca.crt");
const cert = pem("client.crt");
const key = pem("client.key");

const EVENTS = 200;
const EVENT_BYTES = 4_000;

/** Writes each event in a TLS record of its own, all of them within one turn. */
async function writeEvents(response: ServerResponse): Promise<void> {
  for (let i = 0; i < EVENTS; i++) {
    response.write("x".repeat(EVENT_BYTES));
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  response.end();
}

for (
  const [name, create] of [["createTlsFetch", createTlsFetch], [
    "newNodeFetch over https",
    newNodeFetch,
  ]] as const
) {
  describe(name, () => {
    let server: Server;
    let url: string;
    let closedStreams = 0;

    before(async () => {
      server = createServer({
        key: pem("server.key"),
        cert: pem("server.crt"),
        ca,
        requestCert: true,
        rejectUnauthorized: false,
        // With HTTP/2, all watches would share one connection: it would be chosen, and fail here.
        ALPNProtocols: ["h2", "http/1.1"],
      }, (request, response) => {
        if (request.url === "/watch") {
          response.writeHead(200, { "Content-Type": "application/json" });
          response.write('{"type":"BOOKMARK"');
          response.on("close", () => closedStreams++);
          return;
        }
        if (request.url === "/events") return void writeEvents(response);
        const peer = (request.socket as TLSSocket).getPeerCertificate();
        const chunks: Uint8Array[] = [];
        request.on("data", (chunk) => chunks.push(chunk));
        request.on("end", () => {
          const body = chunks.map((chunk) => new TextDecoder().decode(chunk)).join("");
          response.setHeader("Content-Type", "application/json");
          response.end(JSON.stringify({ user: peer?.subject?.CN ?? "", method: request.method, body }));
        });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });

    after(() => {
      server.close();
      server.closeAllConnections();
    });

    it("hands out each of many records", async () => {
      const reader = (await create({ ca })(`${url}/events`)).body!.getReader();
      let bytes = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
      assert.equal(bytes, EVENTS * EVENT_BYTES);
    });

    it("trusts the given certificate authority", async () => {
      const response = await create({ ca })(`${url}/`);
      assert.equal(response.status, 200);
      assert.deepEqual(await response.json(), { user: "", method: "GET", body: "" });
    });

    it("presents its client certificate", async () => {
      const response = await create({ ca, cert, key })(`${url}/`);
      assert.equal((await response.json()).user, "admin");
    });

    it("rejects a server whose certificate another authority signed", async () => {
      const cluster = newCluster({ server: url, fetch: create({ ca: pem("other_ca.crt") }) });
      await assert.rejects(
        cluster.request("/"),
        (error) =>
          error instanceof NetworkError && /give the authority \(CA\) that signed it$/.test(error.message),
      );
    });

    it("checks the server's certificate against serverName", async () => {
      const good = await create({ ca, serverName: "kubernetes.default.svc" })(`${url}/`);
      assert.equal(good.status, 200);
      await good.body?.cancel();
      await assert.rejects(async () => await create({ ca, serverName: "elsewhere.example" })(`${url}/`));
    });

    it("accepts any certificate only with insecureSkipVerify", async () => {
      const response = await create({ insecureSkipVerify: true })(`${url}/`);
      assert.equal(response.status, 200);
      await response.body?.cancel();
      await assert.rejects(async () => await create({})(`${url}/`));
    });

    it("sends a method and a body", async () => {
      const response = await create({ ca })(`${url}/`, { method: "PUT", body: '{"a":"é"}' });
      assert.deepEqual(await response.json(), { user: "", method: "PUT", body: '{"a":"é"}' });
    });

    it("passes a stream on without delay, and closes the connection when the signal is aborted", async () => {
      const abort = new AbortController();
      const response = await create({ ca })(`${url}/watch`, { signal: abort.signal });
      const reader = response.body!.getReader();
      const { value } = await reader.read();
      assert.equal(new TextDecoder().decode(value), '{"type":"BOOKMARK"');
      const before = closedStreams;
      const next = reader.read();
      abort.abort(new Error("enough"));
      await assert.rejects(next);
      await eventually(() => closedStreams === before + 1);
    });

    it("closes the connection when the stream is cancelled", async () => {
      const response = await create({ ca })(`${url}/watch`);
      const reader = response.body!.getReader();
      await reader.read();
      const before = closedStreams;
      await reader.cancel();
      await eventually(() => closedStreams === before + 1);
    });

    it("rejects with the reason of a signal that was already aborted", async () => {
      const reason = new Error("too late");
      await assert.rejects(
        async () => await create({ ca })(`${url}/`, { signal: AbortSignal.abort(reason) }),
        (error) => error === reason,
      );
    });
  });
}

describe("createFileCertificateFetch, after a 401 response", () => {
  it("sends a request once more if its files have another certificate, but none whose token was refused", async () => {
    const folder = mkdtempSync(join(tmpdir(), "listwatch-certificate-"));
    const files = { certFile: join(folder, "tls.crt"), keyFile: join(folder, "tls.key") };
    const write = (name: string) => {
      writeFileSync(files.certFile, pem(`${name}.crt`));
      writeFileSync(files.keyFile, pem(`${name}.key`));
    };
    const asked: string[] = [];
    let closed = 0;
    const server = createHttpServer((request, response) => {
      asked.push(request.headers.authorization ?? "no token");
      response.once("close", () => closed++);
      response.writeHead(401).write("no");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      write("client");
      const ask = createFileCertificateFetch(files, { cert, key }, new FakeClock(), silentLogger);
      write("server");
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const refused = await ask(url, { headers: { Authorization: "Bearer old" } });
      assert.equal(refused.status, 401);
      await refused.body?.cancel();
      assert.deepEqual(asked.splice(0), ["Bearer old"]);
      await (await ask(url)).body?.cancel();
      assert.deepEqual(asked, ["no token", "no token"]);
      // Nothing more of the answers without a reader is received.
      await eventually(() => closed === 3);
    } finally {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true });
    }
  });
});

it("createTlsFetch throws for a certificate without its key, and a key without its certificate", () => {
  assert.throws(() => createTlsFetch({ cert }), TypeError);
  assert.throws(() => createTlsFetch({ key }), /a key its certificate/);
});

it("createTlsFetch throws for settings that would disable verification by mistake", () => {
  assert.throws(
    () => createTlsFetch({ insecureSkipVerify: "no" as unknown as boolean }),
    /must be true or false/,
  );
  assert.throws(() => createTlsFetch({ ca, insecureSkipVerify: true }), /remove one of them/);
});

async function eventually(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.ok(condition());
}
