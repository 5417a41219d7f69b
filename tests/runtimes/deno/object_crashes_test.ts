import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { InMemoryApiServer, seededRandom } from "@listwatch/cache/testing";
import { CountedUpstream } from "../../workers/hosted/counted_upstream.ts";
import { crashRun } from "../../workers/hosted/crash_run.ts";
import { ObjectHost, startInWorkerd } from "../../workers/hosted/object_host.ts";

/** More kills, without miniflare, which takes a second to start. */
const IS_LONG = Deno.env.get("LISTWATCH_TEST_ALL") !== undefined;
const KILLS = IS_LONG ? 100 : 5;

describe("ReflectorObject in workerd", () => {
  it(
    "loses, invents and takes back nothing when workerd is killed at random moments",
    { timeout: 1_800_000 },
    async () => {
      const seed = Number(Deno.env.get("LISTWATCH_PROPERTY_SEED") ?? Math.floor(Math.random() * 1e9));
      console.log(`seed ${seed}`);
      const random = seededRandom(seed);
      const server = new InMemoryApiServer({ bookmarkIntervalMs: 500 });
      const present = new Set<string>();
      const write = (): Promise<KubernetesObject | undefined> => {
        const name = `web-${Math.floor(random() * 50)}`;
        const object = {
          metadata: { namespace: "shop", name },
          data: { text: "x".repeat(random() * 4_000) },
        };
        const key = metaNamespaceKey(object);
        if (!present.has(key)) {
          present.add(key);
          return Promise.resolve(server.create("v1/configmaps", object));
        }
        if (random() < 0.7) return Promise.resolve(server.update("v1/configmaps", object));
        present.delete(key);
        server.delete("v1/configmaps", key);
        return Promise.resolve(undefined);
      };
      await using upstream = new CountedUpstream((request) => server.fetch(request));
      const options = { server: upstream.url, resource: "v1/configmaps" } as const;
      await using host = IS_LONG ? await startInWorkerd(options) : await ObjectHost.start({ options });
      await crashRun({
        host,
        upstream,
        path: "/api/v1/configmaps",
        write,
        list: () => Promise.resolve(server.list<KubernetesObject>("v1/configmaps").items),
        kills: KILLS,
        random,
      });
    },
  );
});
