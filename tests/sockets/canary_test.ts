/**
 * Marked credentials go through every way in which something can fail; nothing that is recorded may hold the
 * mark: errors with all that led to them, logs, `status()`, the page, and whatever is printed.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { inspect } from "node:util";
import { type Logger, newCluster, type RestConfig, SharedIndexInformer } from "@listwatch/cache";
import { serve } from "@listwatch/cache/cli";
import {
  loadKubeconfig,
  restConfigFromKubeconfig,
  type ServedFetch,
  serveFetch,
} from "@listwatch/cache/node";
import type { LogFields } from "@listwatch/cache/reflector";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { fixture, pem } from "./certificates.ts";

const MARK = "CANARY";
const TOKEN = "CANARY-token-0123456789";
const BASIC = btoa("jane:CANARY-password");
const folder = mkdtempSync(join(tmpdir(), "listwatch-canary-"));
const stop = new AbortController();

/** Records values in every form in which a program could print them. */
class Recorded implements Logger {
  readonly texts: string[] = [];
  debug(message: string, fields?: LogFields): void {
    this.#line(message, fields);
  }
  info(message: string, fields?: LogFields): void {
    this.#line(message, fields);
  }
  warn(message: string, fields?: LogFields): void {
    this.#line(message, fields);
  }
  error(message: string, fields?: LogFields): void {
    this.#line(message, fields);
  }

  #line(message: string, fields: LogFields | undefined): void {
    this.texts.push(message);
    this.add(fields);
  }

  add(value: unknown): void {
    const options = { depth: 20, showHidden: true, maxStringLength: Infinity };
    this.texts.push(String(value), inspect(value), inspect(value, options), json(value));
    const { Deno: deno, Bun: bun } = globalThis as unknown as Record<
      string,
      { inspect(value: unknown): string } | undefined
    >;
    for (const runtime of [deno, bun]) if (runtime !== undefined) this.texts.push(runtime.inspect(value));
    for (let error = value; error instanceof Error; error = error.cause) {
      this.texts.push(error.message, String(error.stack), json({ ...error }));
    }
  }

  check(): void {
    assert.ok(this.texts.length > 0, "nothing was recorded at all");
    for (const text of this.texts) {
      assert.ok(!text.includes(MARK) && !text.includes(BASIC), `a credential was recorded: ${text}`);
    }
  }
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

let files = 0;

function file(text: string): string {
  const path = join(folder, `file-${++files}`);
  writeFileSync(path, text, { mode: 0o700 });
  return path;
}

/** A program that gives credentials, or does something else. */
function plugin(script: string): string {
  const command = file(`#!/bin/sh\necho CANARY-stderr >&2\n${script}\n`);
  return `exec: {apiVersion: client.authentication.k8s.io/v1, command: "${command}", args: [CANARY-arg], ` +
    "env: [{name: X, value: CANARY-env}], interactiveMode: Never}";
}

function answering(status: string): string {
  return plugin(
    `cat <<'END'\n{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}\nEND`,
  );
}

// Says back what it was sent, in the ways in which servers and proxies do.
function echo(request: Request): Response {
  const sent = request.headers.get("Authorization") ?? "";
  const credential = sent.split(" ")[1] ?? "";
  const said = `you sent ${sent}, which is ${credential.startsWith("C") ? credential : atob(credential)}`;
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    message: said,
    reason: "Forbidden",
    code: 403,
  };
  switch (new URL(request.url).pathname.split("/")[1]) {
    case "text":
      return new Response(said, { status: 500, headers: { "Content-Type": "text/plain" } });
    case "status":
      return Response.json(status, { status: 403 });
    case "unauthorized":
      return Response.json({ ...status, reason: "Unauthorized", code: 401 }, { status: 401 });
    case "odd":
      return new Response(`${credential} {`, { headers: { "Content-Type": "application/json" } });
    case "nolist":
      return Response.json([credential]);
    case "warning":
      return Response.json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [] }, {
        headers: { Warning: `299 - "${credential}"` },
      });
    case "redirect":
      return new Response(null, {
        status: 302,
        headers: { Location: `https://jane:${MARK}@elsewhere.example/login?token=${MARK}#${MARK}` },
      });
    default:
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(
              new TextEncoder().encode(`{"kind":"${credential}","items":[{"a":"${credential}`),
            );
            controller.close();
          },
        }),
      );
  }
}

let server: ServedFetch;

function kubeconfigText(user: string, url = server.url): string {
  return `current-context: dev
contexts: [{name: dev, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "${url}", certificate-authority: "${fixture("ca.crt")}"}}]
users: [{name: u, user: {${user}}}]
`;
}

/** Loads, prints and uses a config; collects all that is recorded on the way. */
async function use(recorded: Recorded, text: string): Promise<void> {
  try {
    const kubeconfig = await loadKubeconfig({ path: file(text) });
    recorded.add(kubeconfig);
    for (const user of kubeconfig.users.values()) recorded.add(user);
    const config = await restConfigFromKubeconfig(kubeconfig, { logger: recorded, execTimeoutMs: 500 });
    recorded.add(config);
    recorded.add({ ...config, userAgent: "mine" });
    recorded.add(config.headers);
    await ask(recorded, config);
  } catch (error) {
    recorded.add(error);
  }
}

async function ask(recorded: Recorded, given: RestConfig): Promise<void> {
  const config = { ...given, logger: recorded };
  let cluster;
  try {
    cluster = newCluster(config);
  } catch (error) {
    return recorded.add(error);
  }
  const pods = cluster.resource("v1/pods");
  const informer = new SharedIndexInformer(pods, { logger: recorded, clock: new FakeClock() });
  recorded.add(cluster);
  recorded.add(pods);
  recorded.add(informer);
  const caught = (error: unknown) => recorded.add(error);
  await cluster.request("/api").then(() => {}, caught);
  await pods.list().then(() => {}, caught);
  await (async () => {
    for await (const batch of await pods.watch({ resourceVersion: "1" })) recorded.add(batch);
  })().catch(caught);
  const failed = new Promise<void>((resolve) => {
    informer.onStatus((status) => {
      recorded.add(status);
      if (status.lastError !== undefined) resolve();
    });
    setTimeout(resolve, 300);
  });
  const running = informer.start();
  await failed;
  recorded.add(informer.status());
  await running.stop();
}

describe("newCluster, restConfigFromKubeconfig and serve show no credential", () => {
  before(async () => {
    const tls = { cert: pem("server.crt"), key: pem("server.key") };
    server = await serveFetch(echo, { signal: stop.signal, tls, logger: new Recorded() });
  });

  after(async () => {
    stop.abort();
    await server.finished;
    rmSync(folder, { recursive: true });
  });

  const users: Record<string, () => string> = {
    "a token": () => `token: ${TOKEN}`,
    "a token of two lines": () => `token: "${TOKEN}\\nCANARY"`,
    "a token that is a number": () => `token: [${TOKEN}]`,
    "a token file": () => `tokenFile: "${file(`${TOKEN}\n`)}"`,
    "a token file of two lines": () => `tokenFile: "${file(`${TOKEN}\nCANARY-second\n`)}"`,
    "a password": () => "username: jane, password: CANARY-password",
    "a key that is no base64": () =>
      `client-certificate-data: ${btoa(pem("client.crt"))}, client-key-data: "%CANARY%"`,
    "a key that is no key": () =>
      `client-certificate-data: ${btoa(pem("client.crt"))}, client-key-data: ${
        btoa("-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n")
      }`,
    "a key of another certificate": () =>
      `client-certificate-data: ${btoa(pem("client.crt"))}, client-key-data: ${btoa(pem("server.key"))}`,
    "an auth-provider": () =>
      "auth-provider: {name: oidc, config: {id-token: CANARY, client-secret: CANARY}}",
    "a plugin": () => answering(`{"token":"${TOKEN}"}`),
    "a plugin with a token of two lines": () => answering(`{"token":"${TOKEN}\\nCANARY"}`),
    "a plugin with a token that is no text": () => answering(`{"token":["${TOKEN}"]}`),
    "a plugin with a key that is no key": () =>
      answering('{"clientCertificateData":"CANARY","clientKeyData":"CANARY"}'),
    "a plugin that fails": () => plugin("exit 1"),
    "a plugin that says something else": () => plugin("echo '{\"token\": CANARY'"),
    "a plugin of another version": () => plugin('echo \'{"apiVersion":"CANARY"}\''),
    "a plugin without credentials": () => answering('{"CANARY":"CANARY"}'),
    "a plugin that never ends": () => plugin("sleep 60"),
    "a plugin that says too much": () => plugin("yes CANARY"),
    "a plugin that is not there": () =>
      plugin("").replace(/command: "[^"]*"/, "command: listwatch-no-such-plugin"),
  };
  const places: Record<string, (url: string) => string> = {
    "to a server that quotes it in a text": (url) => `${url}/text`,
    "to a server that quotes it in a Status": (url) => `${url}/status`,
    "to a server that refuses and quotes it": (url) => `${url}/unauthorized`,
    "to a server that answers with it": (url) => `${url}/odd`,
    "to a server whose answer holds it": (url) => `${url}/nolist`,
    "to a server that warns with it": (url) => `${url}/warning`,
    "to a server that redirects": (url) => `${url}/redirect`,
    "to a server that breaks off": (url) => `${url}/broken`,
    "to a server that does not listen": () => "https://127.0.0.1:1",
  };
  for (const [what, user] of Object.entries(users)) {
    it(`of ${what}`, async () => {
      for (const place of what === "a plugin that never ends" ? ["", "/text"] : Object.values(places)) {
        const recorded = new Recorded();
        const url = typeof place === "string" ? server.url + place : place(server.url);
        await use(recorded, kubeconfigText(user(), url));
        recorded.check();
      }
    });
  }

  it("of a server's URL with a user and a password", async () => {
    for (
      const url of [
        "https://jane:CANARY@x.example",
        "https://jane:CANARY@x.example:port",
        "https://CANARY@[",
        "CANARY@x",
      ]
    ) {
      const recorded = new Recorded();
      await use(recorded, kubeconfigText("token: t", url));
      await ask(recorded, { server: url });
      recorded.check();
    }
  });

  it("of a kubeconfig that is no YAML", async () => {
    for (
      const text of [
        `users: [{name: u, user: {token: ${TOKEN}`,
        `token: *${TOKEN}`,
        `a: "${TOKEN}`,
        `- ${TOKEN}: x: y`,
      ]
    ) {
      const recorded = new Recorded();
      await use(recorded, text);
      recorded.check();
    }
  });

  it("of a program's own config", async () => {
    const recorded = new Recorded();
    const url = `${server.url}/text`;
    const configs: RestConfig[] = [
      { server: url, token: `${TOKEN}\nCANARY` },
      { server: url, token: () => `${TOKEN}\nCANARY` },
      { server: url, token: () => [TOKEN] as unknown as string },
      { server: url, headers: { Authorization: `Bearer ${TOKEN}\nCANARY` } },
      { server: url, headers: { "X-Api-Key": `${TOKEN}\u0000` } },
    ];
    for (const config of configs) await ask(recorded, config);
    const cluster = newCluster({ server: url, logger: recorded });
    await cluster.request("/", { headers: { Authorization: `Bearer ${TOKEN}\n` } }).catch((error) =>
      recorded.add(error)
    );
    recorded.check();
  });

  it("by `serve`, whose page and health show a code where credentials fail", async () => {
    const api = new InMemoryApiServer();
    api.create("v1/pods", pod("web-1", { namespace: "shop" }));
    let isRefusing = false;
    const tls = { cert: pem("server.crt"), key: pem("server.key") };
    const behind = await serveFetch(
      (request) =>
        isRefusing
          ? new Response(`not ${request.headers.get("Authorization")}`, { status: 401 })
          : api.fetch(request),
      { signal: stop.signal, tls },
    );
    const answer = `{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"${TOKEN}"}}`;
    const mode = file(answer);
    const recorded = new Recorded();
    const clock = new FakeClock(Date.now());
    const steps: string[] = [];
    const config = kubeconfigText(
      plugin(`if grep -q BROKEN ${mode}; then exit 3; fi; cat ${mode}`),
      behind.url,
    );
    await using served = await serve({
      source: { kind: "kubeconfig", path: file(config) },
      resources: ["pods"],
      port: 0,
      clock,
      logger: recorded,
      onStep: (step) => {
        recorded.add(step);
        steps.push(step.type);
      },
    });
    await served.synced();
    const page = async () => {
      const response = await fetch(`${served.url}/`, { headers: { Accept: "text/html" } });
      const text = await response.text();
      recorded.texts.push(text);
      return text;
    };
    const until = async (isDone: (text: string) => boolean): Promise<void> => {
      for (let i = 0; i < 400; i++) {
        if (isDone(await page())) return;
        await clock.advance(250);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      assert.fail(`the page never showed it: ${recorded.texts.at(-1)}`);
    };
    const texts: readonly [string, RegExp][] = [
      [`BROKEN ${MARK}`, /credentials[^"]*\(Kubeconfig\)/],
      [answer, /credentials[^"]*\(Unauthorized\)/],
      [answer.replace(TOKEN, `${TOKEN}\\n${MARK}`), /credentials[^"]*\(Kubeconfig\)/],
    ];
    isRefusing = true;
    api.closeWatches();
    for (const [content, pattern] of texts) {
      writeFileSync(mode, content);
      await until((text) => pattern.test(text));
      const paths = ["/readyz?verbose", "/healthz?verbose", "/metrics", "/version", "/api/v1/pods"];
      for (const path of [...paths, "/dashboard/state"]) {
        recorded.texts.push(await (await fetch(served.url + path)).text());
      }
    }
    assert.ok(steps.includes("trouble"), steps.join());
    recorded.check();
    await served.stop();
    api.close();
  });
});
