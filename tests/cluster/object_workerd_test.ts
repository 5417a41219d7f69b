import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { join } from "node:path";
import type { KubernetesObject } from "@listwatch/cache";
import { buildProgram } from "../../scripts/lib/bundle.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { installTools } from "../../scripts/lib/tools.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";

describe("tests/cluster/hosts/object.capnp: a workerd of one's own", { skip: skipWithoutOwnServer }, () => {
  let connection: OwnConnection;
  before(async () => {
    connection = await startOwn();
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("reaches an API server whose authority is private, and refuses another authority", {
    timeout: 120_000,
  }, async () => {
    const { server, cluster } = connection;
    const [namespace] = await connection.createNamespaces("workerd");
    const pods = cluster.resource<KubernetesObject & { spec?: unknown }>("v1/pods", { namespace });
    const spec = { containers: [{ name: "web", image: "web" }], automountServiceAccountToken: false };
    const create = (name: string) => pods.create({ metadata: { name }, spec });
    await create("web-1");

    await using own = await Workerd.start({ caData: server.caData, token: server.token, port: server.port });
    const names = async () => {
      const response = await fetch(`${own.url}/api/v1/namespaces/${namespace}/pods`);
      const list = await response.json();
      assert.equal(response.status, 200, JSON.stringify(list));
      return list.items.map(({ metadata }: KubernetesObject) => metadata?.name);
    };
    await eventually(async () => assert.deepEqual(await names(), ["web-1"]));
    await create("web-2");
    await eventually(async () => assert.deepEqual(await names(), ["web-1", "web-2"]));

    await using another = await Workerd.start({
      ...server,
      caData: await Deno.readTextFile(join(ROOT, "tests/node/fixtures/other_ca.crt")),
    });
    const response = await fetch(`${another.url}/api/v1/namespaces/${namespace}/pods`);
    assert.equal(response.status, 503, await response.text());
    await eventually(() =>
      assert.match(another.errors, /UnknownIssuer|unable to get local issuer|CERTIFICATE/i)
    );
  });
});

class Workerd implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  readonly #child: Deno.ChildProcess;
  /** What it has printed to stderr. */
  errors = "";

  private constructor(url: string, folder: string, child: Deno.ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
    this.#read();
  }

  static async start(
    { caData, token, port }: { readonly caData: string; readonly token: string; readonly port: number },
  ): Promise<Workerd> {
    const tools = await installTools();
    const program = await buildProgram(tools, "tests/cluster/hosts/object_worker.ts", {
      name: "workerd_object",
      platform: "workerd",
    });
    const folder = await Deno.makeTempDir({ prefix: "listwatch-workerd-" });
    await Deno.copyFile(join(ROOT, "tests/cluster/hosts/object.capnp"), join(folder, "object.capnp"));
    await Deno.copyFile(program, join(folder, "worker.mjs"));
    await Deno.writeTextFile(join(folder, "ca.crt"), caData);
    await Deno.writeTextFile(join(folder, "token"), token);
    await Deno.mkdir(join(folder, "objects"));
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const address = `127.0.0.1:${listener.addr.port}`;
    listener.close();
    const child = new Deno.Command(tools.workerd, {
      args: [
        "serve",
        "object.capnp",
        "--experimental",
        `--socket-addr=http=${address}`,
        `--external-addr=kubernetes=127.0.0.1:${port}`,
      ],
      cwd: folder,
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const workerd = new Workerd(`http://${address}`, folder, child);
    await eventually(async () => void await (await fetch(`${workerd.url}/readyz`)).body?.cancel());
    return workerd;
  }

  async #read(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) this.errors += text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
    await Deno.remove(this.#folder, { recursive: true });
  }
}
