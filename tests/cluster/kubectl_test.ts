import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { eachLine } from "../../scripts/lib/go_command.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually, pause } from "./eventually.ts";
import { adminToken, everyResource, type Host, RUNTIMES, startHost, startServe } from "./hosts/host.ts";
import { REFUSED, SAME, WATCHES } from "./kubectl_commands.ts";
import { populate } from "./population.ts";

describe(
  "kubectl on readApi, served by Deno, Node, Bun, workerd and serve",
  { skip: skipWithoutOwnServer },
  () => {
    let connection: OwnConnection;
    let kubectl: string;
    let home: string;
    const hosts: Host[] = [];
    /**
     * The hosts, and `serve` with readers that present tokens of the
     * cluster: by name, with the arguments of kubectl.
     */
    const caches: { readonly name: string; readonly args: readonly string[] }[] = [];
    let served: AsyncDisposable | undefined;

    before(async () => {
      kubectl = await ensureGoProgram("kubectl");
      home = await Deno.makeTempDir({ prefix: "listwatch-kubectl-" });
      const manifest = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "settings", namespace: "shop" },
        data: { mode: "slow" },
      };
      await Deno.writeTextFile(join(home, "MANIFEST"), JSON.stringify(manifest));
      connection = await startOwn();
      const { cluster, server } = connection;
      await populate(cluster);
      const token = await adminToken(connection);
      const source = { upstream: server, ...await everyResource(cluster) };
      const serving = startServe("deno", { connection, token, resources: source.resources });
      hosts.push(...await Promise.all(RUNTIMES.map((runtime) => startHost(runtime, source))));
      const { kubeconfigPath } = served = await serving;
      caches.push(
        ...hosts.map((host) => ({ name: host.runtime, args: onHost(host) })),
        { name: "serve --cluster-rbac --pass-through", args: ["--kubeconfig", kubeconfigPath] },
      );
    });
    after(async () => {
      await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()));
      await served?.[Symbol.asyncDispose]();
      await connection?.[Symbol.asyncDispose]();
      if (home !== undefined) await Deno.remove(home, { recursive: true });
    });

    for (const command of SAME) {
      it(`prints the same as on the API server: ${command}`, { timeout: 60_000 }, async () => {
        const ask = () =>
          Promise.all([run(command, onServer()), ...caches.map(({ args }) => run(command, args))]);
        let [expected, ...actual] = await ask();
        // A write of the server's own may come in between: a list shows its version.
        for (let tries = 2; tries > 0 && actual.some((one) => !isDeepStrictEqual(one, expected)); tries--) {
          [expected, ...actual] = await ask();
        }
        caches.forEach(({ name }, i) =>
          assert.deepEqual(actual[i], expected, `kubectl ${command} on ${name}`)
        );
      });
    }

    it("prints the same changes as on the API server: get --watch", { timeout: 120_000 }, async () => {
      const configMaps = connection.cluster.resource<KubernetesObject>("v1/configmaps", {
        namespace: "shop",
      });
      const create = (name: string) => configMaps.create({ metadata: { name, labels: { app: "late" } } });
      const watchings = WATCHES.map((command) => ({
        command,
        expected: new Watching(start(command, onServer())),
        actual: caches.map(({ args }) => new Watching(start(command, args))),
      }));
      const all = watchings.flatMap(({ expected, actual }) => [expected, ...actual]);
      try {
        // One that prints no list has opened its watch when it prints a first change.
        for (let i = 0; all.some(({ lines }) => lines.length === 0); i++) {
          assert.ok(i < 50, "some command prints nothing");
          await create(`begin-${i}`);
          await pause(200);
        }
        await create("late");
        await configMaps.patch("settings", { data: { more: "x" } });
        await configMaps.patch("late", { data: { more: "x" } });
        await configMaps.delete("late");
        const keys = ["more", "a", "b", "c", "d", "e", "f"];
        await configMaps.patch("settings", { data: Object.fromEntries(keys.map((key) => [key, "x"])) });
        await create("end");
        for (const { command, expected, actual } of watchings) {
          const wanted = await eventually(() => {
            const changes = expected.changes();
            // A watch of one object sees no other.
            const last = command.includes("settings") ? /^settings 9 / : /end/;
            assert.match(changes.at(-1) ?? "", last, `kubectl ${command}: ${changes.join("\n")}`);
            return changes;
          });
          for (const [i, { name }] of caches.entries()) {
            await eventually(() =>
              assert.deepEqual(actual[i].changes(), wanted, `kubectl ${command} on ${name}`)
            );
          }
        }
      } finally {
        await Promise.all(all.map((one) => one.stop()));
      }
    });

    for (const [command, answer] of REFUSED) {
      it(`fails with the reason: ${command}`, async () => {
        const answers = await Promise.all(hosts.map((host) => run(command, onHost(host))));
        hosts.forEach(({ runtime }, i) => {
          assert.notEqual(answers[i].code, 0, `kubectl ${command} on ${runtime}`);
          assert.match(answers[i].errors, answer, `kubectl ${command} on ${runtime}: ${answers[i].errors}`);
        });
      });
    }

    function onServer(): string[] {
      return ["--kubeconfig", connection.server.kubeconfigPath];
    }

    function onHost({ url }: Host): string[] {
      return ["--kubeconfig", "/dev/null", "--server", url];
    }

    function start(command: string, connectionArgs: readonly string[]): Deno.ChildProcess {
      // `%` is a space within an argument.
      const [verb, ...args] = command.split(" ").map((word) => word.replaceAll("%", " "));
      return new Deno.Command(kubectl, {
        args: [verb, ...connectionArgs, ...args],
        cwd: home,
        clearEnv: true,
        env: { HOME: home },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
    }

    async function run(command: string, connectionArgs: readonly string[]): Promise<Printed> {
      const { code, stdout, stderr } = await start(command, connectionArgs).output();
      const text = (bytes: Uint8Array) => withoutAges(new TextDecoder().decode(bytes));
      return { code, output: text(stdout), errors: text(stderr) };
    }
  },
);

interface Printed {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** A command that runs until it is stopped. */
class Watching {
  readonly lines: string[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(child: Deno.ChildProcess) {
    this.#child = child;
    const add = (line: string) => void this.lines.push(withoutAges(line));
    this.#ended = Promise.all([child.status, eachLine(child.stdout, add), eachLine(child.stderr, add)]);
  }

  /** The printed lines, without repetitions and without objects that only show the start of the watch. */
  changes(): string[] {
    return this.lines.filter((line, i) => !line.includes("begin-") && line !== this.lines[i - 1]);
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}

/** Ages differ by the time between two commands, and columns are as wide as their ages. */
function withoutAges(text: string): string {
  return text.replace(/\b(?:\d+[ydhms])+\b/g, "<age>").replace(/ +/g, " ");
}
