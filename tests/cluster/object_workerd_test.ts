import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { join } from "node:path";
import type { KubernetesObject } from "@listwatch/cache";
import { buildProgram } from "../../scripts/lib/bundle.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { installTools } from "../../scripts/lib/tools.ts";
import { WorkerdHost } from "../workers/hosted/workerd_host.ts";
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

    await using own = await start({ caData: server.caData, token: server.token, port: server.port });
    const names = async () => {
      const response = await fetch(`${own.url}/api/v1/namespaces/${namespace}/pods`);
      const list = await response.json();
      assert.equal(response.status, 200, JSON.stringify(list));
      return list.items.map(({ metadata }: KubernetesObject) => metadata?.name);
    };
    await eventually(async () => assert.deepEqual(await names(), ["web-1"]));
    await create("web-2");
    await eventually(async () => assert.deepEqual(await names(), ["web-1", "web-2"]));

    await using another = await start({
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

async function start(
  { caData, token, port }: { readonly caData: string; readonly token: string; readonly port: number },
): Promise<WorkerdHost> {
  const program = await buildProgram(await installTools(), "tests/cluster/hosts/object_worker.ts", {
    name: "workerd_object",
    platform: "workerd",
  });
  return await WorkerdHost.start({
    configuration: await Deno.readTextFile(join(ROOT, "tests/cluster/hosts/object.capnp")),
    files: { "worker.mjs": await Deno.readTextFile(program), "ca.crt": caData, token },
    args: [`--external-addr=kubernetes=127.0.0.1:${port}`],
  });
}
