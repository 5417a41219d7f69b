import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, silentLogger } from "@listwatch/cache";
import { allowNamespaces, bearerTokens } from "@listwatch/cache/hono";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";
import { type Instance, ObjectPlatform } from "./object_platform.ts";

const TOKEN = "a-token-of-this-test";

/** Reads an object of a resource, with options of the read API. */
async function opened(
  readApi: ReflectorSettings["readApi"],
  resource: "v1/pods" | "v1/secrets" = "v1/pods",
): Promise<Disposable & { status(path: string, token?: string): Promise<number> }> {
  class Cached extends ReflectorObject<Instance> {
    protected override settings({ fetch, clock }: Instance): ReflectorSettings {
      const cluster = newCluster({ server: "http://server", fetch, clock });
      return {
        source: cluster.resource<KubernetesObject>(resource),
        resource,
        informer: { clock, logger: silentLogger },
        ...(readApi && { readApi }),
      };
    }
  }
  const clock = new FakeClock(1_000_000);
  const server = new InMemoryApiServer({ clock });
  server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  const newObject = (instance: Instance) => new Cached(instance.ctx, instance);
  const platform = new ObjectPlatform(clock, { upstream: server.fetch, newObject });
  const access = {
    async status(path: string, token?: string): Promise<number> {
      const headers: HeadersInit = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      return (await platform.fetch(path, { headers })).status;
    },
    [Symbol.dispose]() {
      platform.close();
      server.close();
    },
  };
  try {
    await platform.fetch("/readyz");
  } catch (error) {
    access[Symbol.dispose]();
    throw error;
  }
  await clock.advance(1_000);
  return access;
}

describe("ReflectorObject, the access to it,", () => {
  it("is open to its Workers by default, which decide", async () => {
    using api = await opened({ freshness: "as-is" });
    assert.equal(await api.status("/api/v1/pods"), 200);
  });

  it("is decided by the hooks of its settings", async () => {
    const authenticate = bearerTokens([{ token: TOKEN, user: { name: "jane" } }]);
    const hooks = { freshness: "as-is", authenticate, authorize: allowNamespaces(["shop"]) } as const;
    using api = await opened(hooks);
    assert.equal(await api.status("/api/v1/namespaces/shop/pods"), 401);
    assert.equal(await api.status("/api/v1/namespaces/shop/pods", TOKEN), 200);
    assert.equal(await api.status("/api/v1/pods", TOKEN), 403);
    assert.equal(await api.status("/api/v1/namespaces/blog/pods?watch=1", TOKEN), 403);
  });

  it("is closed where its settings say that strangers are not allowed", async () => {
    await assert.rejects(
      opened({ freshness: "as-is", allowAnonymous: false }),
      /without an access decision/,
    );
  });

  it("needs an explicit yes for Secrets", async () => {
    await assert.rejects(opened({ freshness: "as-is" }, "v1/secrets"), /allowSecrets: true/);
    using api = await opened({ freshness: "as-is", allowSecrets: true }, "v1/secrets");
    assert.equal(await api.status("/api/v1/secrets"), 200);
  });
});
