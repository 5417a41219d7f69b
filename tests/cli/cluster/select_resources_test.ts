import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, type ObjectMeta } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import { answerStatus, InMemoryApiServer } from "@listwatch/cache/testing";
import type { Connection } from "../../../src/cli/cluster/connect.ts";
import {
  clientOptions,
  type Selection,
  selectResources,
  servedResource,
} from "../../../src/cli/cluster/select_resources.ts";
import { CommandError } from "../../../src/cli/errors.ts";
import type { ServeSettings } from "../../../src/cli/serve/serve_options.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";

const SAVED: Selection = {
  resources: [],
  discoveryOrder: ["v1/pods"],
  version: undefined,
  clusterUid: "u-1",
};

class Cluster {
  readonly clock = new FakeClock();
  readonly server = new InMemoryApiServer({ clock: this.clock });
  readonly steps: unknown[] = [];
  readonly stop = new AbortController();
  fetch: FetchFunction = this.server.fetch;

  /** Refuses what a path names, with a status. */
  refuse(path: RegExp, code: number): void {
    this.server.intercept(answerStatus(code), { match: ({ path: asked }) => path.test(asked) });
  }

  select(
    settings: Partial<ServeSettings> = {},
    { saved, ...connection }: Partial<Connection> & { readonly saved?: Selection } = {},
  ) {
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: (input, init) => this.fetch(input, init),
    });
    const connected = { cluster, name: "a", server: "http://in-memory", context: "a", ...connection };
    const { clock, stop: { signal } } = this;
    const given = { clock, signal, onStep: (step: unknown) => this.steps.push(step), ...settings };
    return selectResources(connected, given as unknown as ServeSettings, saved);
  }
}

const namesOf = ({ resources }: Selection) => resources.map(({ resource }) => resource);

describe("selectResources", () => {
  it("takes the default ones that may be listed, and says which are skipped", async () => {
    const cluster = new Cluster();
    cluster.refuse(/\/nodes$/, 403);
    const selection = await cluster.select();
    assert.ok(!namesOf(selection).includes("nodes"));
    assert.deepEqual(namesOf(selection).slice(0, 3), ["namespaces", "pods", "deployments"]);
    assert.deepEqual(cluster.steps, [{ type: "skipped", resources: ["nodes"] }]);
    assert.equal(selection.clusterUid, "");
    assert.equal(selection.version?.gitVersion.startsWith("v1."), true);
    assert.deepEqual([...selection.discoveryOrder].sort(), selection.resources.map(pathOf).sort());
    assert.ok(
      selection.discoveryOrder.indexOf("v1/pods") < selection.discoveryOrder.indexOf("apps/v1/deployments"),
    );
  });

  it("takes the names of the connection, or those that are named", async () => {
    const cluster = new Cluster();
    assert.deepEqual(namesOf(await cluster.select({}, { defaultNames: ["pods"] })), ["pods"]);
    const options = { defaultNames: ["pods"] };
    assert.deepEqual(namesOf(await cluster.select({ resources: ["deploy", "svc"] }, options)), [
      "deployments",
      "services",
    ]);
    assert.deepEqual(cluster.steps, []);
  });

  it("fails where one that is named must not be listed, or none may, or one is broken", async () => {
    const cluster = new Cluster();
    cluster.refuse(/\/nodes$/, 403);
    await assert.rejects(cluster.select({ resources: ["pods", "nodes"] }), {
      name: "CommandError",
      message: /nodes/,
    });
    await assert.rejects(cluster.select({}, { defaultNames: ["nodes"] }), { name: "CommandError" });
    assert.deepEqual(cluster.steps, []);
    cluster.refuse(/\/pods$/, 500);
    await assert.rejects(cluster.select(), { name: "CommandError", message: /pods/ });
  });

  it("lists nothing of the embedded cluster, which refuses nothing", async () => {
    const cluster = new Cluster();
    cluster.refuse(/\/nodes$/, 403);
    const { resources } = await cluster.select({}, { context: undefined });
    assert.ok(resources.some(({ resource }) => resource === "nodes"));
    assert.equal(cluster.server.requests.some(({ path }) => path.endsWith("/pods")), false);
  });

  it("may read one of several namespaces only", async () => {
    const cluster = new Cluster();
    cluster.refuse(/\/namespaces\/shop\/pods$/, 403);
    const selection = await cluster.select({ resources: ["pods"], namespace: ["shop", "other"] });
    assert.deepEqual(namesOf(selection), ["pods"]);
    cluster.refuse(/\/namespaces\/other\/pods$/, 403);
    await assert.rejects(cluster.select({ resources: ["pods"], namespace: ["shop", "other"] }), {
      name: "CommandError",
    });
  });

  it("asks which cluster it is for snapshots only", async () => {
    const cluster = new Cluster();
    const metadata: ObjectMeta = cluster.server.create("v1/namespaces", { metadata: { name: "kube-system" } })
      .metadata;
    assert.equal((await cluster.select({ snapshot: "folder" })).clusterUid, metadata.uid);
    assert.equal((await cluster.select()).clusterUid, "");
  });

  it("needs no version, and takes no half of one", async () => {
    const cluster = new Cluster();
    const answers: unknown[] = [
      { major: "1", minor: "36", gitVersion: "v1.36.3", platform: "linux/amd64", odd: 5 },
      { major: "1", gitVersion: "v1.36.3" },
      { minor: "36", gitVersion: "v1.36.3" },
      { major: "1", minor: "36" },
      { major: 1, minor: "36", gitVersion: "v1.36.3" },
      null,
    ];
    const versions: unknown[] = [];
    for (const answer of answers) {
      cluster.fetch = async (input, init) =>
        String(input).endsWith("/version") ? Response.json(answer) : await cluster.server.fetch(input, init);
      // deno-lint-ignore no-await-in-loop -- one after the other
      versions.push((await cluster.select({ resources: ["pods"] })).version);
    }
    const [{ odd: _, ...whole }] = answers as [Record<string, unknown>];
    assert.deepEqual(versions, [whole, undefined, undefined, undefined, undefined, undefined]);
    cluster.refuse(/^\/version$/, 500);
    cluster.fetch = cluster.server.fetch;
    assert.equal((await cluster.select({ resources: ["pods"] })).version, undefined);
  });

  it("is the saved one where the server is away, and says why; not where it has refused", async () => {
    for (
      const [code, isAway] of [[429, true], [500, true], [503, true], [401, false], [403, false], [
        404,
        false,
      ]] as const
    ) {
      const cluster = new Cluster();
      cluster.refuse(/^\/api/, code);
      const selected = cluster.select({ resources: ["pods"] }, { saved: SAVED });
      if (isAway) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const { away, ...rest } = await selected;
        assert.deepEqual(rest, SAVED, String(code));
        assert.ok(away instanceof CommandError);
      } else {
        // deno-lint-ignore no-await-in-loop
        await assert.rejects(selected, { name: "CommandError" }, String(code));
      }
      // deno-lint-ignore no-await-in-loop
      await assert.rejects(cluster.select({ resources: ["pods"] }), { name: "CommandError" }, String(code));
    }
    const cluster = new Cluster();
    cluster.fetch = () => Promise.reject(new TypeError("fetch failed"));
    assert.ok((await cluster.select({}, { saved: SAVED })).away);
    await assert.rejects(cluster.select(), { name: "CommandError" });
  });

  it("waits 15 s for the first answers, and 3 s where there is a saved one", async () => {
    const cluster = new Cluster();
    cluster.fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal!.reason)));
    const saved = cluster.select({}, { saved: SAVED });
    await cluster.clock.advance(2_999);
    await cluster.clock.advance(1);
    assert.match((await saved).away!.message, /: no response within 3 s$/);
    let isDone = false;
    const selected = cluster.select();
    selected.catch(() => {}).finally(() => isDone = true);
    await cluster.clock.advance(14_999);
    assert.equal(isDone, false);
    await cluster.clock.advance(1);
    await assert.rejects(selected, /no response within 15 s$/);
  });

  it("ends with the signal's reason, whatever is saved", async () => {
    const cluster = new Cluster();
    cluster.fetch = (_, init) =>
      new Promise((_, reject) =>
        init?.signal?.addEventListener("abort", () => reject(new TypeError("closed")))
      );
    const selected = cluster.select({}, { saved: SAVED });
    await cluster.clock.advance(0);
    const reason = new Error("stopped");
    cluster.stop.abort(reason);
    await assert.rejects(selected, reason);
  });
});

const pathOf = ({ group, version, resource }: ApiResource) =>
  [group, version, resource].filter((part) => part !== "").join("/");

describe("clientOptions", () => {
  const pods = { namespaced: true } as ApiResource;

  it("has namespaces for what is in some, and keeps all fields but those that are dropped", () => {
    assert.deepEqual(clientOptions(pods, {}), { keep: "everything", drop: [] });
    assert.deepEqual(clientOptions(pods, { namespace: "shop", drop: ["status"] }), {
      keep: "everything",
      drop: ["status"],
      namespace: "shop",
    });
    assert.deepEqual(clientOptions(pods, { namespace: ["a", "b"], drop: ["status"] }).namespaces?.names, [
      "a",
      "b",
    ]);
    assert.deepEqual(clientOptions({ namespaced: false } as ApiResource, { namespace: "shop" }), {
      keep: "everything",
      drop: [],
    });
  });
});

describe("servedResource", () => {
  it("is read only, and has what is built in of its kind", () => {
    const of = (group: string, resource: string) =>
      servedResource(
        { group, version: "v1", resource, verbs: ["create"] } as unknown as Parameters<
          typeof servedResource
        >[0],
      );
    const pods = of("", "pods");
    assert.deepEqual(pods.verbs, ["get", "list", "watch"]);
    assert.ok(pods.fieldSelectors?.includes("spec.nodeName"));
    assert.equal("deprecationWarning" in pods, false);
    const custom = of("example.com", "widgets");
    assert.deepEqual(["fieldSelectors" in custom, "deprecationWarning" in custom], [false, false]);
  });
});
