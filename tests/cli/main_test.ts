import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { main } from "@listwatch/cache/cli";
import { answerStatus, hang, pod } from "@listwatch/cache/testing";
import { VERSION } from "../../src/cli/command.ts";
import { fixture } from "../sockets/certificates.ts";
import { RealCluster } from "./real_cluster.ts";

class Stream {
  text = "";
  #onText: (() => void) | undefined;
  #isEnded = false;

  write(text: string): void {
    this.text += text;
    this.#onText?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#onText?.();
  }

  /** Resolves when the text matches; rejects when it ends without a match. */
  async shows(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.text);
      if (found) return found;
      if (this.#isEnded) throw new Error(`${pattern} never came: ${this.text}`);
      await new Promise<void>((resolve) => (this.#onText = resolve));
    }
  }
}

function start(args: string[], env: Record<string, string> = {}) {
  const stdout = new Stream();
  const stderr = new Stream();
  const stop = new AbortController();
  const exitCode = main(args, { stdout, stderr, env, signal: stop.signal });
  return { stdout, stderr, stop, exitCode };
}

/** Runs the program to its end; the error must be the only line on stderr. */
async function fails(args: string[], exitCode: number, message: RegExp): Promise<void> {
  const run = start(args);
  assert.equal(await run.exitCode, exitCode, run.stderr.text);
  assert.match(run.stderr.text, message);
  assert.match(run.stderr.text, /^listwatch: [^\n]+\n$/);
  assert.doesNotMatch(run.stderr.text, /\bat .*\.ts:\d/);
}

describe("main", () => {
  it("prints its version and its flags", async () => {
    const version = start(["--version"]);
    assert.equal(await version.exitCode, 0);
    assert.equal(version.stdout.text, `${VERSION}\n`);
    const config = JSON.parse(await readFile(new URL("../../deno.json", import.meta.url), "utf8"));
    assert.equal(VERSION, config.version);
    const help = start(["serve", "--help"]);
    assert.equal(await help.exitCode, 0);
    for (
      const flag of ["--kubeconfig", "--context", "--resource", "--namespace", "--port", "--host", "--token"]
    ) {
      assert.ok(help.stdout.text.includes(flag), `the help lacks ${flag}`);
    }
    assert.match(help.stdout.text, /--token TEXT [^-]*list of processes[^-]*--token-file or LISTWATCH_TOKEN/);
    for (const line of help.stdout.text.split("\n")) assert.ok(line.length <= 120, line);
    const whole = start(["--help"]);
    assert.equal(await whole.exitCode, 0);
    assert.match(whole.stdout.text, /listwatch help serve/);
    assert.doesNotMatch(whole.stdout.text, /--kubeconfig/);
  });

  it("prints what to try, with and without a token, over http and https", async () => {
    const tls = ["--tls-cert", fixture("server.crt"), "--tls-key", fixture("server.key")];
    const token = ["--token", "a-token-of-some-length"];
    const bearer = '-H "Authorization: Bearer $LISTWATCH_TOKEN"';
    const cases: readonly (readonly [args: readonly string[], lines: readonly string[]])[] = [
      [["--resource", "nodes,services"], [
        "  kubectl --server=URL get nodes -A",
        "  kubectl --server=URL get nodes -A --watch",
        '  curl "URL/readyz?verbose"',
      ]],
      [tls, [
        "  kubectl --server=URL --certificate-authority=CA.crt get pods -A",
        "  kubectl --server=URL --certificate-authority=CA.crt get pods -A --watch",
        '  curl --cacert CA.crt "URL/readyz?verbose"',
      ]],
      [[...tls, ...token], [
        '  kubectl --server=URL --certificate-authority=CA.crt --token="$LISTWATCH_TOKEN" get pods -A',
        `  curl --cacert CA.crt ${bearer} URL/api`,
      ]],
      [token, [
        `  curl ${bearer} URL/api`,
        "kubectl sends tokens over https only: use --tls-cert and --tls-key, or a TLS proxy.",
      ]],
    ];
    for (const [args, lines] of cases) {
      const run = start(["serve", "--port", "0", ...args]);
      await run.stdout.shows(/Press Ctrl-C to stop/);
      const [, url] = /Serving +(\S+)/.exec(run.stdout.text)!;
      const [, after] = run.stdout.text.split(`\n\nOpen ${url}/ in a browser, or try:\n`);
      assert.deepEqual(after.replaceAll(url, "URL").split("\n"), [...lines, "", "Press Ctrl-C to stop.", ""]);
      run.stop.abort();
      assert.equal(await run.exitCode, 0);
    }
  });

  it("prints what it skips, and that it serves snapshots while the cluster is away", async () => {
    await using cluster = await RealCluster.start();
    const folder = await mkdtemp(join(tmpdir(), "listwatch-main-"));
    const args = ["serve", "--port", "0", "--kubeconfig", cluster.kubeconfig, "--snapshot", folder];
    cluster.server.intercept(answerStatus(403), { match: ({ path }) => /nodes|configmaps/.test(path) });
    const first = start(args);
    await first.stdout.shows(/Press Ctrl-C to stop/);
    assert.match(
      first.stdout.text,
      new RegExp(`^Cluster {4}test \\(${cluster.url}\\)\nReflecting namespaces, pods, `),
    );
    assert.match(first.stderr.text, /^Skipped {4}nodes, configmaps: the server refuses to list them$/m);
    first.stop.abort();
    assert.equal(await first.exitCode, 0);
    await cluster.stopListening();
    const second = start(args);
    await second.stdout.shows(/Serving/);
    assert.match(second.stdout.text, new RegExp(`^Cluster {4}test \\(${cluster.url}\\)$`, "m"));
    assert.match(
      second.stderr.text,
      /^Away {7}Cannot reach .*: connection refused\..* Serving the snapshots until it is back\.$/m,
    );
    second.stop.abort();
    assert.equal(await second.exitCode, 0);
    await rm(folder, { recursive: true });
  });

  it("prints what it serves and what to try next, serves until it is stopped, and returns 0", async () => {
    const run = start(["serve", "--port", "0"]);
    const [, url] = await run.stdout.shows(/Serving +(http:\S+)/);
    await run.stdout.shows(/Press Ctrl-C to stop/);
    assert.match(run.stdout.text, /Synced +\d+ objects in/);
    assert.ok(run.stdout.text.includes(`kubectl --server=${url} get pods -A`));
    assert.ok(run.stdout.text.includes(`Open ${url}/`));
    assert.equal((await (await fetch(`${url}/api/v1/nodes`)).json()).items.length, 6);
    run.stop.abort();
    assert.equal(await run.exitCode, 0);
    assert.match(run.stdout.text, /Stopped\.\n$/);
  });

  it("does not suggest kubectl with a token over http, which kubectl does not send", async () => {
    const run = start(["serve", "--port", "0"], { LISTWATCH_TOKEN: "a-token-of-some-length" });
    await run.stdout.shows(/Press Ctrl-C to stop/);
    assert.doesNotMatch(run.stdout.text, /kubectl --server/);
    assert.match(run.stdout.text, /Bearer \$LISTWATCH_TOKEN/);
    assert.doesNotMatch(run.stdout.text, /a-token-of/);
    run.stop.abort();
    assert.equal(await run.exitCode, 0);
  });

  it("refuses a short token from any source, without showing it", async () => {
    await fails(
      ["serve", "--port", "0", "--token", "fifteen-letters"],
      2,
      /of --token is shorter than 16 characters/,
    );
    for (const host of ["0.0.0.0", "127.0.0.1"]) {
      const run = start(["serve", "--port", "0", "--host", host], { LISTWATCH_TOKEN: "s3cret" });
      assert.equal(await run.exitCode, 2);
      assert.match(run.stderr.text, /of LISTWATCH_TOKEN is shorter/);
      assert.doesNotMatch(run.stderr.text, /s3cret/);
    }
  });

  it("refuses wrong options of TLS, dropped fields and RBAC", async () => {
    await fails(
      ["serve", "--port", "0", "--tls-cert", "/c"],
      2,
      /needs its key, .*: --tls-cert FILE --tls-key FILE/,
    );
    await fails(["serve", "--port", "0", "--drop", "metadata.name"], 2, /Cannot drop "metadata.name"/);
    await fails(["serve", "--port", "0", "--cluster-rbac"], 2, /needs a real cluster/);
    await fails(
      ["serve", "--port", "0", "--tls-cert", "/no/c", "--tls-key", "/no/k"],
      1,
      /Cannot read the certificate/,
    );
  });

  it("prints each request when it has ended, as line or JSON, without credentials", async () => {
    for (const format of ["line", "json"]) {
      const run = start([
        "serve",
        "--port",
        "0",
        "--access-log",
        format,
        "--token",
        "a-token-of-some-length",
      ]);
      await run.stdout.shows(/Press Ctrl-C to stop/);
      const url = /Serving +(\S+)/.exec(run.stdout.text)![1];
      const headers = { Authorization: "Bearer a-token-of-some-length" };
      await (await fetch(`${url}/api/v1/nodes?limit=2`, { headers })).text();
      await (await fetch(`${url}/api/v1/pods`)).text();
      await run.stdout.shows(/401/);
      await (await fetch(`${url}/dashboard/style.css`, { headers })).text();
      await run.stdout.shows(/style\.css/);
      const leaving = new AbortController();
      await fetch(`${url}/api/v1/pods?watch=1`, { headers, signal: leaving.signal });
      leaving.abort();
      await run.stdout.shows(/watch=1/);
      const lines = run.stdout.text.trim().split("\n").slice(-4);
      assert.match(lines[2], /reader/);
      if (format === "line") {
        assert.match(
          lines[0],
          /^\d{4}-\d\d-\d\dT[\d:.]+Z 127\.0\.0\.1 reader GET \/api\/v1\/nodes\?limit=2 200 \d{3,} \d+ms$/,
        );
        assert.match(lines[1], / 127\.0\.0\.1 - GET \/api\/v1\/pods 401 /);
        assert.match(lines[3], / 127\.0\.0\.1 reader GET \/api\/v1\/pods\?watch=1 200 /);
      } else {
        const [first, second] = lines.map((line) => JSON.parse(line));
        assert.deepEqual([first.user, first.path, first.status], ["reader", "/api/v1/nodes?limit=2", 200]);
        assert.deepEqual([second.user, second.status, second.client], [undefined, 401, "127.0.0.1"]);
        assert.equal(JSON.parse(lines[3]).client, "127.0.0.1");
      }
      assert.ok(!run.stdout.text.includes("a-token-of"));
      run.stop.abort();
      assert.equal(await run.exitCode, 0);
    }
  });

  it("returns 2 and prints one line for a wrong command line", async () => {
    await fails(["serve", "--prot", "1"], 2, /Unknown flag --prot: did you mean --port\?/);
    await fails(
      ["serve", "--port", "0", "--resource", "pdos"],
      2,
      /Cannot reflect "pdos": the server has no such resource/,
    );
    await fails(
      ["serve", "--port", "0", "--host", "0.0.0.0"],
      2,
      /Cannot listen on 0\.0\.0\.0: every client/,
    );
    await fails([], 2, /Missing command/);
  });

  it("returns 1 and prints one line for a failure", async () => {
    await using cluster = await RealCluster.start();
    const serve = ["serve", "--port", "0", "--kubeconfig"];
    await fails([...serve, "/no/such/file"], 1, /\/no\/such\/file/);
    await fails([...serve, cluster.kubeconfig, "--context", "prod"], 1, /prod/);
    await fails(["serve", "--port", new URL(cluster.url).port], 1, /is in use/);
    const restore = cluster.server.intercept(answerStatus(401));
    await fails([...serve, cluster.kubeconfig], 1, /401 Unauthorized/);
    restore();
    await cluster.stopListening();
    await fails([...serve, cluster.kubeconfig], 1, /Cannot reach .*connection refused/);
  });

  it("prints warnings, of an outage one line for all resources", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.create("v1/pods", pod("web-1"));
    let isAway = false;
    cluster.server.intercept(async (request, next) => {
      if (isAway) return new Response("away", { status: 503 });
      const response = await next(request);
      response.headers.set("Warning", '299 - "this version is deprecated"');
      return response;
    });
    const run = start([
      "serve",
      "--port",
      "0",
      "--resource",
      "pods,nodes",
      "--kubeconfig",
      cluster.kubeconfig,
    ]);
    await run.stderr.shows(/^Warning +the API server warns: this version is deprecated$/m);
    await run.stdout.shows(/Press Ctrl-C to stop/);
    isAway = true;
    cluster.server.closeWatches();
    await run.stderr.shows(/^Trouble +\w+ cannot be read/m);
    assert.doesNotMatch(run.stderr.text, /lost the server/);
    run.stop.abort();
    assert.equal(await run.exitCode, 0);
  });

  it("prints stacks and causes with --verbose", async () => {
    const run = start(["serve", "--verbose", "--port", "0", "--host", "256.0.0.1", "--allow-anonymous"]);
    assert.equal(await run.exitCode, 1);
    assert.match(run.stderr.text, /^listwatch: Cannot listen on 256\.0\.0\.1/);
    assert.match(run.stderr.text, /\bat .*\.(ts|js)/);
    assert.match(run.stderr.text, /^caused by: /m);
  });

  it("returns 0 when it is stopped before the first lists or the first response", async () => {
    await using cluster = await RealCluster.start();
    for (const match of [{ match: ({ isWatch }: { isWatch: boolean }) => isWatch }, {}]) {
      const restore = cluster.server.intercept(hang(), match);
      const before = cluster.server.requests.length;
      const run = start(["serve", "--port", "0", "--kubeconfig", cluster.kubeconfig]);
      if (match.match) await run.stdout.shows(/Serving/);
      else {while (cluster.server.requests.length === before) {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }}
      run.stop.abort();
      assert.equal(await run.exitCode, 0, run.stderr.text);
      assert.match(run.stdout.text, /Stopped\.\n$/);
      restore();
    }
  });
});

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const ENDS_BY_ITSELF = fileURLToPath(new URL("./serve_and_stop.ts", import.meta.url));

function runDeno(
  args: string[],
): { child: ChildProcess; stdout: Stream; ended: Promise<number | string | null> } {
  const child = spawn(process.execPath, [
    "run",
    "-A",
    "--no-check",

    ...args,
  ], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stdout = new Stream();
  child.stdout?.on("data", (data) => stdout.write(String(data)));
  const ended = new Promise<number | string | null>((resolve) =>
    child.on("close", (code, signal) => {
      stdout.end();
      resolve(code ?? signal);
    })
  );
  return { child, stdout, ended };
}

describe("main.ts", { skip: "deno" in process.versions ? false : "the test starts it with Deno" }, () => {
  it("exits with 0 on SIGINT and SIGTERM, with open watches and windows", async () => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const { child, stdout, ended } = runDeno([MAIN, "serve", "--port", "0"]);
      const [, url] = await stdout.shows(/Serving +(http:\S+)/);
      await stdout.shows(/Press Ctrl-C to stop/);
      const open: Promise<string>[] = [];
      for (
        const path of [
          "/api/v1/pods?watch=1",
          "/api/v1/events?watch=1",
          "/api/v1/pods?watch=1&sortBy=metadata.name&limit=50",
          "/api/v1/pods?watch=1&groupBy=status.phase",
        ]
      ) {
        open.push((await fetch(url + path)).text().catch(() => "cut off"));
      }
      // Not child.kill(): Deno then reports this signal, however the process ended.
      process.kill(child.pid as number, signal);
      // `deno task` and `npx` forward it a second time.
      process.kill(child.pid as number, signal);
      assert.equal(await ended, 0, signal);
      await Promise.all(open);
      assert.match(stdout.text, /Stopped\.\n$/);
    }
  });

  it("lets an answer end that is under way at SIGTERM, ends watches at once and accepts nothing more", async () => {
    const { child, stdout, ended } = runDeno([MAIN, "serve", "--port", "0", "--shutdown-grace", "60s"]);
    const [, url] = await stdout.shows(/Serving +(http:\S+)/);
    await stdout.shows(/Press Ctrl-C to stop/);
    const reader = connect({ host: "127.0.0.1", port: Number(new URL(url).port) });
    let text = "";
    reader.on("data", (chunk) => (text += String(chunk)));
    const closed = once(reader, "close");
    // Under way until its body is there, for which the server asks once it has read the head.
    const expects = "Content-Length: 2\r\nExpect: 100-continue";
    reader.write(`POST /api/v1/pods HTTP/1.1\r\nHost: 127.0.0.1\r\n${expects}\r\n\r\n{`);
    await once(reader, "data");
    const watch = await fetch(`${url}/api/v1/pods?watch=1`);
    process.kill(child.pid as number, "SIGTERM");
    await watch.text();
    await assert.rejects(fetch(url));
    reader.write("}");
    await closed;
    assert.match(text, /^HTTP\/1.1 100 .+\r\n\r\nHTTP\/1.1 405 .+\r\n(.+\r\n)*connection: close\r\n/i);
    assert.equal(await ended, 0);
    assert.match(stdout.text, /Stopped\.\n$/);
  });

  it("leaves nothing open after stop() that would keep the process running", async () => {
    const { stdout, ended } = runDeno([ENDS_BY_ITSELF]);
    assert.equal(await ended, 0);
    assert.equal(stdout.text, "stopped\n");
  });
});
