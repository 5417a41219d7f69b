import { after, before, describe, it } from "node:test";
import process from "node:process";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { seededRandom } from "@listwatch/cache/testing";
import { CountedUpstream } from "../workers/hosted/counted_upstream.ts";
import { crashRun } from "../workers/hosted/crash_run.ts";
import { ObjectHost, startInWorkerd } from "../workers/hosted/object_host.ts";
import { connect, type TestConnection } from "./connection.ts";
import { newSeed } from "./writers.ts";

/** More kills, without miniflare, which takes a second to start. */
const IS_LONG = process.env.LISTWATCH_TEST_ALL !== undefined;
const KILLS = IS_LONG ? 100 : 5;

describe("ReflectorObject in workerd, in front of a real API server", () => {
  let connection: TestConnection;
  before(async () => {
    connection = await connect();
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("loses, invents and takes back nothing when workerd is killed at random moments", {
    timeout: 1_800_000,
  }, async () => {
    const { cluster } = connection;
    const random = seededRandom(newSeed());
    const [namespace] = await connection.createNamespaces("object");
    const client = cluster.resource<KubernetesObject & { data?: Record<string, string> }>("v1/configmaps", {
      namespace,
    });
    const present = new Set<string>();
    const write = async (): Promise<KubernetesObject | undefined> => {
      const name = `web-${Math.floor(random() * 50)}`;
      const object = { metadata: { namespace, name }, data: { text: "x".repeat(random() * 4_000) } };
      const key = metaNamespaceKey(object);
      if (!present.has(key)) {
        present.add(key);
        return await client.create(object);
      }
      if (random() < 0.7) return await client.replace(object);
      present.delete(key);
      await client.delete(name);
      return undefined;
    };
    await using upstream = new CountedUpstream(async ({ url, headers }) => {
      const { pathname, search } = new URL(url);
      const accept = headers.get("Accept");
      return await cluster.open(pathname + search, {
        headers: { "Accept-Encoding": "identity", ...(accept !== null && { Accept: accept }) },
      });
    });
    const options = { server: upstream.url, resource: "v1/configmaps", namespace } as const;
    await using host = IS_LONG ? await startInWorkerd(options) : await ObjectHost.start({ options });
    await crashRun({
      host,
      upstream,
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      write,
      list: async () => (await client.list()).items,
      kills: KILLS,
      random,
    });
  });
});
