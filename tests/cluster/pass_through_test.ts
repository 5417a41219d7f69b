import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { type LineProcess, startLineProcess } from "../../scripts/lib/line_process.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { adminToken, type ServedHost, startServe } from "./hosts/host.ts";
import { populate } from "./population.ts";

/** Commands that need a kubelet, or write. Each prints the same as on the API server; `%` is a space within an argument. */
const COMMANDS: readonly (readonly [command: string, input?: string])[] = [
  ["exec web-1 -n shop -- echo hello"],
  ["exec web-1 -n shop -- sh -c echo%out;echo%err>&2;exit%3"],
  ["exec -i web-1 -n shop -- cat", "some input\nnaïve 🙂\n"],
  ["exec -i web-1 -n shop -- wc -c", "x".repeat(3_000_000)],
  ["exec web-1 -n shop -- head -c 5000000 /dev/zero"],
  ["exec absent -n shop -- ls"],
  ["attach -i web-1 -n shop -q", "typed\n"],
  ["logs web-1 -n shop"],
  ["auth can-i create pods/exec -n shop"],
  ["auth whoami"],
];

describe("kubectl on serve --pass-through-writes, before a kubelet", { skip: skipWithoutOwnServer }, () => {
  let connection: OwnConnection;
  let kubectl: string;
  let kubelet: LineProcess;
  let folder: string;
  let token: string;
  const hosts: ServedHost[] = [];

  before(async () => {
    kubectl = await ensureGoProgram("kubectl");
    folder = await Deno.makeTempDir({ prefix: "listwatch-kubelet-" });
    connection = await startOwn();
    const { cluster } = connection;
    await populate(cluster);
    kubelet = await startLineProcess(await ensureGoProgram("kubelet"), { args: [folder] });
    await cluster.request("/api/v1/nodes/node-1/status", {
      method: "PATCH",
      headers: { "Content-Type": "application/merge-patch+json" },
      body: {
        status: {
          addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
          daemonEndpoints: { kubeletEndpoint: { Port: Number(kubelet.firstLine) } },
        },
      },
    });
    token = await adminToken(connection);
    const resources = [{ resource: "pods", group: "" }];
    const start = (runtime: ServedHost["runtime"]) => startServe(runtime, { connection, token, resources });
    hosts.push(...await Promise.all([start("deno"), start("node"), start("bun")]));
  });
  after(async () => {
    await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()));
    await kubelet?.[Symbol.asyncDispose]();
    await connection?.[Symbol.asyncDispose]();
    if (folder !== undefined) await Deno.remove(folder, { recursive: true });
  });

  // SPDY, as older clients: KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false.
  for (const webSockets of [true, false]) {
    for (const [command, input = ""] of COMMANDS) {
      it(`prints the same as on the API server: ${command}${webSockets ? "" : " over SPDY"}`, {
        timeout: 60_000,
      }, async () => {
        const run = (args: readonly string[]) => printed(command, { args, input, webSockets });
        const [expected, ...actual] = await Promise.all(
          [onServer(), ...hosts.map((h) => h.kubectlArgs)].map(run),
        );
        assert.ok(!/unable to upgrade|error dialing/.test(expected.errors), expected.errors);
        hosts.forEach(({ runtime }, i) =>
          assert.deepEqual(actual[i], expected, `kubectl ${command} on ${runtime}`)
        );
      });
    }

    it(`forwards a port${webSockets ? "" : " over SPDY"}`, { timeout: 60_000 }, async () => {
      const body = "y".repeat(1_000_000);
      const stop = new AbortController();
      const target = Deno.serve(
        { hostname: "127.0.0.1", port: 0, signal: stop.signal, onListen: () => {} },
        async (request) => new Response(`${(await request.text()).length} ${body}`),
      );
      try {
        for (const { runtime, kubectlArgs } of hosts) {
          const child = start(`port-forward pod/web-1 -n shop :${target.addr.port}`, {
            args: kubectlArgs,
            webSockets,
          });
          const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
          const { value = "" } = await reader.read();
          const port = /127\.0\.0\.1:([0-9]+)/.exec(value)?.[1];
          assert.ok(port, `${runtime}: ${value}`);
          const answers = await Promise.all(Array.from({ length: 3 }, async () => {
            const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body });
            return await response.text();
          }));
          for (const answer of answers) assert.equal(answer, `${body.length} ${body}`, runtime);
          child.kill("SIGTERM");
          await child.status;
          await reader.cancel();
          await child.stderr.cancel();
        }
      } finally {
        stop.abort();
        await target.finished;
      }
    });
  }

  it("copies a file into a pod and back", { timeout: 60_000 }, async () => {
    const content = crypto.getRandomValues(new Uint8Array(60_000));
    for (const { runtime, kubectlArgs: args } of hosts) {
      const [from, to] = [join(folder, `from-${runtime}`), join(folder, `to-${runtime}`)];
      await Deno.writeFile(from, content);
      const remote = join(folder, `remote-${runtime}`);
      for (const command of [`cp ${from} shop/web-1:${remote}`, `cp shop/web-1:${remote} ${to}`]) {
        const { code, errors } = await printed(command, { args, input: "", webSockets: true });
        assert.equal(code, 0, `${runtime}: ${errors}`);
      }
      assert.deepEqual(await Deno.readFile(to), content);
    }
  });

  it("ends what runs when the server stops", { timeout: 60_000 }, async () => {
    for (const host of hosts.splice(0)) {
      const child = start("exec -i web-1 -n shop -- cat", { args: host.kubectlArgs, webSockets: true });
      const input = child.stdin.getWriter();
      await input.write(new TextEncoder().encode("x\n"));
      const reader = child.stdout.getReader();
      await eventually(async () => assert.ok((await reader.read()).value));
      await host[Symbol.asyncDispose]();
      assert.notEqual((await child.status).code, 0);
      await reader.cancel();
      await child.stderr.cancel();
      await input.close().catch(() => {});
    }
  });

  function onServer(): string[] {
    const { server } = connection.server;
    const ca = join(connection.server.dataDir, "ca.crt");
    return ["--kubeconfig", "/dev/null", "--server", server, "--token", token, "--certificate-authority", ca];
  }

  function start(
    command: string,
    { args, webSockets }: { readonly args: readonly string[]; readonly webSockets: boolean },
  ): Deno.ChildProcess {
    const [verb, ...rest] = command.split(" ").map((word) => word.replaceAll("%", " "));
    const flag = String(webSockets);
    return new Deno.Command(kubectl, {
      args: [verb, ...args, ...rest],
      cwd: folder,
      clearEnv: true,
      env: {
        HOME: folder,
        PATH: Deno.env.get("PATH") ?? "",
        KUBECTL_REMOTE_COMMAND_WEBSOCKETS: flag,
        KUBECTL_PORT_FORWARD_WEBSOCKETS: flag,
      },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  async function printed(
    command: string,
    { input, ...options }: {
      readonly args: readonly string[];
      readonly webSockets: boolean;
      readonly input: string;
    },
  ): Promise<{ readonly code: number; readonly output: string; readonly errors: string }> {
    const child = start(command, options);
    const writer = child.stdin.getWriter();
    writer.write(new TextEncoder().encode(input)).then(() => writer.close()).catch(() => {});
    const { code, stdout, stderr } = await child.output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, output: text(stdout), errors: text(stderr) };
  }
});
