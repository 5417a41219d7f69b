import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { type LineProcess, startLineProcess } from "../../scripts/lib/line_process.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { adminToken, type ServedHost, startServe } from "./hosts/host.ts";
import { populate } from "./population.ts";

/** Commands that the API server answers. Each prints the same as on the API server. */
const PASSED: readonly string[] = [
  "logs web-1 -n shop",
  "auth can-i create pods/exec -n shop",
  "auth whoami",
];

/** Commands that tunnel. */
const REFUSED: readonly string[] = [
  "exec web-1 -n shop -- ls",
  "attach -i web-1 -n shop -q",
  "port-forward pod/web-1 -n shop :80",
  "cp shop/web-1:file file",
];

describe("kubectl on serve --pass-through-writes", { skip: skipWithoutOwnServer }, () => {
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
    kubelet = await startLineProcess(await ensureGoProgram("kubelet"), { args: [] });
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

  for (const command of PASSED) {
    it(`prints the same as on the API server: ${command}`, { timeout: 60_000 }, async () => {
      const [expected, ...actual] = await Promise.all(
        [onServer(), ...hosts.map(onHost)].map((args) => printed(command, { args })),
      );
      assert.equal(expected.code, 0, expected.errors);
      hosts.forEach(({ runtime }, i) =>
        assert.deepEqual(actual[i], expected, `kubectl ${command} on ${runtime}`)
      );
    });
  }

  // SPDY, as older clients: KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false.
  for (const webSockets of [true, false]) {
    for (const command of REFUSED) {
      it(`says where to go: ${command}${webSockets ? "" : " over SPDY"}`, { timeout: 60_000 }, async () => {
        for (const host of hosts) {
          const { runtime } = host;
          const { code, errors } = await printed(command, { args: onHost(host), webSockets });
          assert.equal(code, 1, runtime);
          assert.match(
            errors,
            /needs a tunnel, which a cache does not open; send it to the API server itself/,
            runtime,
          );
        }
      });
    }
  }

  function onHost({ kubeconfigPath }: ServedHost): string[] {
    return ["--kubeconfig", kubeconfigPath];
  }

  function onServer(): string[] {
    const { server } = connection.server;
    const ca = join(connection.server.dataDir, "ca.crt");
    return ["--kubeconfig", "/dev/null", "--server", server, "--token", token, "--certificate-authority", ca];
  }

  async function printed(
    command: string,
    { args, webSockets = true }: { readonly args: readonly string[]; readonly webSockets?: boolean },
  ): Promise<{ readonly code: number; readonly output: string; readonly errors: string }> {
    const [verb, ...rest] = command.split(" ");
    const flag = String(webSockets);
    const { code, stdout, stderr } = await new Deno.Command(kubectl, {
      args: [verb, ...args, ...rest],
      cwd: folder,
      clearEnv: true,
      env: {
        HOME: folder,
        PATH: Deno.env.get("PATH") ?? "",
        KUBECTL_REMOTE_COMMAND_WEBSOCKETS: flag,
        KUBECTL_PORT_FORWARD_WEBSOCKETS: flag,
      },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, output: text(stdout), errors: text(stderr) };
  }
});
