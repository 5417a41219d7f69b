import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  isForbidden,
  isUnauthorized,
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
} from "@listwatch/cache";
import { readApi, subjectAccessReview, tokenReview } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import { connect, type TestConnection } from "./connection.ts";
import { eventually, pause } from "./eventually.ts";

const READ_VERBS = ["get", "list", "watch"];

describe("readApi with tokenReview and subjectAccessReview", () => {
  let connection: TestConnection;
  let [north, south] = ["", ""];
  let url = "";
  const stopping = new AbortController();
  let stopped: Promise<unknown>;

  before(async () => {
    connection = await connect();
    const { cluster, labels, labelSelector } = connection;
    [north, south] = await connection.createNamespaces("north", "south");
    const configMaps = cluster.resource<KubernetesObject>("v1/configmaps");
    for (const namespace of [north, south]) {
      for (const name of ["one", "two"]) await configMaps.create({ metadata: { name, namespace, labels } });
    }
    const informer = new SharedIndexInformer(cluster.resource("v1/configmaps", { labelSelector }));
    const { signal } = stopping;
    const reviews = { allowedTtlMs: 500, deniedTtlMs: 500 };
    const api = readApi({
      resources: [{ informer, resource: "v1/configmaps" }],
      authenticate: tokenReview(cluster, reviews),
      authorize: subjectAccessReview(cluster, reviews),
      watchRecheckMs: 1_000,
      signal,
    });
    const server = await serveFetch(api.fetch, { signal });
    url = server.url;
    stopped = Promise.all([server.finished, informer.run(signal)]);
    await informer.synced(AbortSignal.timeout(30_000));
  });
  after(async () => {
    stopping.abort();
    await stopped;
    await connection?.[Symbol.asyncDispose]();
  });

  it(
    "shows each reader what the cluster's RBAC permits, and unknown readers nothing",
    { timeout: 60_000 },
    async () => {
      const reader = await createReader();
      const list = (namespace = "") => reader.client(namespace).list();
      await assert.rejects(newCluster({ server: url }).resource("v1/configmaps").list(), isUnauthorized);
      const stranger = newCluster({ server: url, token: `${reader.token}x` }).resource("v1/configmaps");
      await assert.rejects(stranger.list(), isUnauthorized);
      await assert.rejects(list(north), isForbidden);

      await reader.allow(north);
      await eventually(async () => assert.deepEqual(namesOf(await list(north)), ["one", "two"]));
      for (const elsewhere of [south, "", "kube-system"]) {
        await assert.rejects(list(elsewhere), (error: Error) => {
          assert.ok(isForbidden(error), error.message);
          assert.ok(error.message.includes(`system:serviceaccount:${north}:${reader.name}`), error.message);
          return true;
        });
      }
      const page = await reader.client(north).list({ limit: 1 });
      await assert.rejects(reader.client(south).list({ continue: page.metadata.continue }), isForbidden);
      assert.equal((await reader.client(north).get("two")).metadata?.namespace, north);
      await assert.rejects(reader.client(south).get("two"), isForbidden);
    },
  );

  it("decides as the API server does, for the same reader", { timeout: 60_000 }, async () => {
    const reader = await createReader();
    await reader.allow(south);
    const direct = newCluster({ ...connection.anonymous, token: reader.token });
    const through = newCluster({ server: url, token: reader.token });
    await eventually(() => direct.request(`/api/v1/namespaces/${south}/configmaps`));
    await eventually(() => through.request(`/api/v1/namespaces/${south}/configmaps`));
    const paths = ["/api/v1/configmaps", `/api/v1/namespaces/${north}/configmaps`];
    paths.push(`/api/v1/namespaces/${south}/configmaps/one`, `/api/v1/namespaces/${north}/configmaps/one`);
    paths.push("/api", "/apis", "/api/v1", `/api/v1/namespaces/${north}`, `/api/v1/namespaces/${south}/pods`);
    for (const path of paths) {
      const isAllowed = (cluster: typeof direct) =>
        cluster.request(path).then(() => true, (error) => !isForbidden(error));
      assert.equal(await isAllowed(through), await isAllowed(direct), path);
    }
  });

  it("ends the watch of a reader whose permission is revoked", { timeout: 60_000 }, async () => {
    const reader = await createReader();
    const { forbid } = await reader.allow(north);
    await eventually(() => reader.client(north).list());
    const watch = await reader.client(north).watch({ allowWatchBookmarks: true });
    let hasEnded = false;
    const read = (async () => {
      for await (const _ of watch);
      hasEnded = true;
    })();
    await pause(2_500);
    assert.equal(hasEnded, false, "it stays open while it is permitted");
    await forbid();
    await read;
    await eventually(() => assert.rejects(reader.client(north).list(), isForbidden));
  });

  function namesOf({ items }: { readonly items: readonly KubernetesObject[] }): (string | undefined)[] {
    return items.map(({ metadata }) => metadata?.name);
  }

  /**
   * A service account of the first namespace, which may do nothing
   * until it is allowed to read ConfigMaps somewhere.
   */
  async function createReader() {
    const { cluster } = connection;
    const name = connection.uniqueName("reader");
    await cluster.resource("v1/serviceaccounts").create({ metadata: { name, namespace: north } });
    const path = `/api/v1/namespaces/${north}/serviceaccounts/${name}/token`;
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const { status: { token } } = await cluster.request(path, { method: "POST", body }) as {
      status: { token: string };
    };
    return {
      name,
      token,
      client: (namespace: string) =>
        newCluster({ server: url, token }).resource("v1/configmaps", { namespace }),
      async allow(namespace: string) {
        const metadata = { name, namespace };
        const roles = cluster.resource<KubernetesObject & { rules: unknown }>(
          "rbac.authorization.k8s.io/v1/roles",
        );
        await roles.create({
          metadata,
          rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: READ_VERBS }],
        });
        const bindings = cluster.resource<KubernetesObject & { roleRef: unknown; subjects: unknown }>(
          "rbac.authorization.k8s.io/v1/rolebindings",
        );
        const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
        const subjects = [{ kind: "ServiceAccount", name, namespace: north }];
        await bindings.create({ metadata, roleRef, subjects });
        return { forbid: () => bindings.delete(name, { namespace }) };
      },
    };
  }
});
