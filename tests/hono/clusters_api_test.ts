import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import {
  bearerTokens,
  type ClustersApi,
  clustersApi,
  type ClustersApiOptions,
  readApi,
} from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeMergedVersion, encodeMergedVersion } from "../../src/meta/merged_version.ts";
import { FakeInformer, object } from "./fake_informer.ts";
import { get, names, WatchReader } from "./reading.ts";

const PODS = "/api/v1/pods";
const JANE = { Authorization: "Bearer jane-has-a-long-token" };

function clusters(): {
  informers: FakeInformer[];
  sources: ClustersApiOptions["clusters"];
  requests: string[];
} {
  const requests: string[] = [];
  const informers = [
    FakeInformer.with([object("shop/web", 3)], 10),
    FakeInformer.with([object("shop/web", 900), object("bar/db", 800)], 1_000),
  ];
  const sources = informers.map((informer, i) => {
    const cache = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    return {
      name: ["eu-1", "us-1"][i],
      fetch: (request: Request) => {
        requests.push(`${i} ${new URL(request.url).pathname} ${request.headers.get("Authorization")}`);
        return cache.fetch(request);
      },
    };
  });
  return { informers, sources, requests };
}

function api(options: Partial<ClustersApiOptions> = {}): ClustersApi {
  return clustersApi({
    clusters: clusters().sources,
    resources: ["v1/pods"],
    ...(options.authorize === undefined && { allowAnonymous: true }),
    logger: silentLogger,
    ...options,
  });
}

describe("clustersApi", () => {
  it("serves each cluster at its path, as it is, and all of them merged", async () => {
    const app = api();
    assert.deepEqual(names(await get(app, `/clusters/us-1${PODS}`)), ["bar/db", "shop/web"]);
    assert.equal(
      (await get(app, "/clusters/eu-1/api/v1/namespaces/shop/pods/web")).metadata.resourceVersion,
      "3",
    );
    assert.deepEqual(names(await get(app, PODS)), ["bar/us-1.db", "shop/eu-1.web", "shop/us-1.web"]);
    for (const mount of ["", "/clusters/eu-1"]) {
      const { resources } = await get(app, `${mount}/api/v1`);
      assert.equal(resources[0].name, "pods");
    }
    assert.equal((await app.request(`/clusters/ap-1${PODS}`)).status, 404);
  });

  it("lets the hooks decide on every cluster and on the merged view, and sends no credentials on", async () => {
    const { sources, requests } = clusters();
    const app = api({
      clusters: sources,
      authenticate: bearerTokens([{ token: "jane-has-a-long-token", user: { name: "jane" } }]),
      authorize: (_, c) => c.req.path.startsWith("/clusters/eu-1/"),
    });
    const status = async (path: string, headers = {}) => (await app.request(path, { headers })).status;
    assert.equal(await status(`/clusters/eu-1${PODS}`), 401);
    assert.equal(await status(`/clusters/eu-1${PODS}`, JANE), 200);
    assert.equal(await status(`/clusters/us-1${PODS}`, JANE), 403);
    assert.equal(await status(PODS, JANE), 403);
    assert.deepEqual(requests, [`0 ${PODS} null`]);
  });

  it("ends watches of all of them", async () => {
    const app = api();
    const watches = [
      await WatchReader.open(app, `${PODS}?watch=true`),
      await WatchReader.open(app, `/clusters/eu-1${PODS}?watch=true`),
    ];
    await watches[0].events(3);
    assert.equal(app.endWatches(() => false), 0);
    assert.equal(app.endWatches(), 2);
    for (const watch of watches) await watch.toEnd();
  });

  it("refuses names with dots, and is not open by default", () => {
    const [{ fetch }] = clusters().sources;
    assert.throws(() => api({ clusters: [{ name: "eu.1", fetch }] }), /"eu\.1"/);
    assert.throws(
      () => clustersApi({ clusters: [{ name: "eu-1", fetch }], resources: ["v1/pods"] }),
      /authorize/,
    );
    assert.throws(
      () => api({ clusters: [{ name: "eu-1", fetch }], resources: ["v1/secrets"] }),
      /allowSecrets/,
    );
  });

  it("has one copy for many readers, where an informer follows it: a version of another copy is not taken for seen", async () => {
    const { informers, sources } = clusters();
    const origin = api({ clusters: sources });
    const fetch = (url: string | URL | Request, init?: RequestInit) =>
      Promise.resolve(origin.fetch(new Request(url, init)));
    const relays = [0, 1].map(() => {
      const pods = newCluster({ server: "http://origin", fetch, logger: silentLogger }).resource("v1/pods");
      const informer = new SharedIndexInformer(pods, { logger: silentLogger });
      const app = readApi({
        resources: [{ informer, resource: "v1/pods" }],
        allowAnonymous: true,
        freshness: "as-is",
        logger: silentLogger,
      });
      return { informer, app, running: informer.start() };
    });
    await Promise.all(relays.map(({ informer }) => informer.synced()));
    const [first, second] = relays;
    const begin = await get(first.app, PODS);
    assert.deepEqual(names(begin), ["bar/us-1.db", "shop/eu-1.web", "shop/us-1.web"]);
    const { resourceVersion } = begin.metadata;
    assert.deepEqual(decodeMergedVersion(resourceVersion)?.parts, ["10", "1000"]);
    const watch = await WatchReader.open(first.app, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    informers[0].put(object("shop/web", 11, { changed: true }));
    const [{ object: changed }] = await watch.events(1);
    assert.equal(changed.metadata.name, "eu-1.web");
    const version = changed.metadata.resourceVersion;
    // The other copy has it, too, so that a reader may change to it.
    const elsewhere = await get(
      second.app,
      `${PODS}?resourceVersion=${version}&resourceVersionMatch=NotOlderThan`,
    );
    assert.equal(elsewhere.items.length, 3);
    // A state that the copy never had: one cluster is further, the other one is not.
    const parts = decodeMergedVersion(version)!;
    const foreign = encodeMergedVersion({ ...parts, parts: ["8", "1003"] });
    const refused = await WatchReader.open(second.app, `${PODS}?watch=true&resourceVersion=${foreign}`);
    const isOpen = new Promise<string[]>((resolve) => setTimeout(() => resolve(["open"]), 0));
    assert.deepEqual(await Promise.race([refused.toEnd(), isOpen]), ["ERROR 410 Expired"]);
    const pages: string[] = [];
    let token = "";
    do {
      const page = await get(second.app, `${PODS}?limit=2&continue=${token}`);
      pages.push(...names(page));
      token = page.metadata.continue;
    } while (token);
    assert.equal(pages.length, 3);
    await watch.cancel();
    for (const { running } of relays) await running.stop();
  });
});
