import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isForbidden, isUnauthorized, type KubernetesObject, newCluster } from "@listwatch/cache";
import { connect, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { quickRetries, Reflected } from "./reflected.ts";
import { UnreliableNetwork } from "./unreliable_network.ts";

// The minimum duration of three failures in a row, with the default delays of 0.8 and 1.6 seconds.
const THREE_FAILURES_MS = 2_300;

describe("SharedIndexInformer without permission", () => {
  let connection: TestConnection;
  let namespace: string;
  before(async () => {
    connection = await connect();
    [namespace] = await connection.createNamespaces("guarded");
    const { cluster, labels } = connection;
    await cluster.resource("v1/configmaps").create({ metadata: { name: "one", namespace, labels } });
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it(
    "reports that its token is refused, paces its tries, and recovers with a valid one",
    { timeout: 60_000 },
    () =>
      bothWays(async (useWatchList, network) => {
        const account = await createAccount();
        await account.allow();
        let bearer = "unknown";
        const source = newCluster({ ...connection.anonymous, fetch: network.fetch, token: () => bearer })
          .resource("v1/configmaps", options());
        await using reflected = new Reflected(source, {
          name: "the refused informer",
          reflector: { useWatchList },
        });
        await failsPatiently(reflected, network);
        assert.ok(reflected.errors.every(isUnauthorized), reflected.errors[0].message);
        assert.match(
          reflected.errors[0].message,
          /^Cannot list "configmaps" in ".*": the server answered 401/,
        );
        assert.equal(reflected.informer.status().lastError?.code, "Unauthorized");

        bearer = account.token;
        await reflected.synced();
        await reflected.equalsServer(connection.cluster.resource("v1/configmaps", options()));
      }),
  );

  it(
    "reports that it is forbidden, paces its tries, and recovers when it is permitted",
    { timeout: 60_000 },
    () =>
      bothWays(async (useWatchList, network) => {
        const account = await createAccount();
        const source = newCluster({ ...connection.anonymous, fetch: network.fetch, token: account.token })
          .resource("v1/configmaps", options());
        await using reflected = new Reflected(source, {
          name: "the forbidden informer",
          reflector: { useWatchList },
        });
        await failsPatiently(reflected, network);
        assert.ok(reflected.errors.every(isForbidden), reflected.errors[0].message);
        assert.ok(reflected.errors[0].message.includes(account.user), "the message says who");
        assert.equal(reflected.informer.status().lastError?.code, "Forbidden");

        await account.allow();
        await reflected.synced();
        await reflected.equalsServer(connection.cluster.resource("v1/configmaps", options()));
      }),
  );

  it("keeps its store when its permission is revoked, and continues when it is granted again", {
    timeout: 90_000,
  }, async () => {
    const client = connection.cluster.resource("v1/configmaps", options());
    const account = await createAccount();
    await account.allow();
    const network = new UnreliableNetwork(connection.anonymous.fetch!);
    const source = newCluster({ ...connection.anonymous, fetch: network.fetch, token: account.token })
      .resource("v1/configmaps", options());
    // The authorizer receives the binding a little later.
    await eventually(() => source.list());
    await using reflected = new Reflected(source, {
      name: "the tolerated informer",
      reflector: quickRetries(),
    });
    await reflected.synced();
    await reflected.equalsServer(client);

    await account.forbid();
    await eventually(() => assert.rejects(source.list(), isForbidden));
    network.goDown();
    network.comeBack();
    await eventually(() => assert.ok(reflected.errors.some(isForbidden)));
    assert.equal(reflected.informer.indexer.list().length, 1);
    assert.equal(reflected.history.count("tombstone"), 0);
    await client.patch("one", { metadata: { annotations: { changed: "yes" } } });

    await account.allow();
    await reflected.equalsServer(client);
    assert.equal(reflected.history.count("add"), 1);
  });

  async function bothWays(
    test: (useWatchList: boolean, network: UnreliableNetwork) => Promise<void>,
  ): Promise<void> {
    const ways = [true, false].map((way) => test(way, new UnreliableNetwork(connection.anonymous.fetch!)));
    // Nothing of the one continues when the other has failed.
    await Promise.allSettled(ways);
    await Promise.all(ways);
  }

  async function failsPatiently(
    reflected: Reflected<KubernetesObject>,
    network: UnreliableNetwork,
  ): Promise<void> {
    await eventually(() => assert.ok(reflected.errors.length >= 3));
    const { informer } = reflected;
    const lastingMs = network.requests.at(-1)!.timeMs - network.requests[0].timeMs;
    assert.ok(
      lastingMs >= THREE_FAILURES_MS,
      `it made ${network.requests.length} requests in ${lastingMs} ms`,
    );
    // One for the stream and one for the list.
    assert.ok(network.requests.length <= 6, `it made ${network.requests.length} requests`);
    assert.ok(informer.status().attempt >= 2);
    assert.ok(!informer.hasSynced());
    assert.deepEqual([reflected.history.events, informer.indexer.list()], [[], []]);
  }

  function options(): { namespace: string; labelSelector: string } {
    return { namespace, labelSelector: connection.labelSelector };
  }

  /** A service account that may do nothing, until it is allowed to read ConfigMaps. */
  async function createAccount(): Promise<
    { token: string; user: string; allow(): Promise<void>; forbid(): Promise<void> }
  > {
    const { cluster } = connection;
    const name = connection.uniqueName("reader");
    const metadata = { name, namespace };
    await cluster.resource("v1/serviceaccounts").create({ metadata });
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const answer = await cluster.request(path, { method: "POST", body }) as { status: { token: string } };
    const roles = cluster.resource<KubernetesObject & { rules: unknown }>(
      "rbac.authorization.k8s.io/v1/roles",
    );
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }];
    await roles.create({ metadata, rules });
    const bindings = cluster.resource<KubernetesObject & { roleRef: unknown; subjects: unknown }>(
      "rbac.authorization.k8s.io/v1/rolebindings",
    );
    return {
      token: answer.status.token,
      user: `system:serviceaccount:${namespace}:${name}`,
      async allow() {
        const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
        await bindings.create({ metadata, roleRef, subjects: [{ kind: "ServiceAccount", name, namespace }] });
      },
      forbid: () => bindings.delete(name, { namespace }),
    };
  }
});
