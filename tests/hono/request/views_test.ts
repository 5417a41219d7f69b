import assert from "node:assert/strict";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";

const TABLE =
  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const NOW = Date.parse("2026-11-21T12:00:00Z");

function apiOf(resource: string, objects: readonly TestObject[]) {
  const informer = FakeInformer.with(objects, 10);
  const clock = new FakeClock(NOW);
  return {
    informer,
    clock,
    api: readApi({ resources: [{ informer, resource }], allowAnonymous: true, clock }),
  };
}

/** An object that was created so many seconds ago. */
function aged(name: string, seconds: number, fields: Record<string, unknown> = {}): TestObject {
  const { metadata, ...rest } = object(name, 5, fields);
  const creationTimestamp = new Date(NOW - seconds * 1000).toISOString();
  return { metadata: { ...metadata, creationTimestamp }, ...rest };
}

async function cells(resource: string, path: string, one: TestObject): Promise<unknown[]> {
  const table = await get(apiOf(resource, [one]).api, path, { accept: TABLE });
  assert.equal(table.columnDefinitions.length, table.rows[0].cells.length);
  return table.rows[0].cells;
}

describe("newTableView", () => {
  it("has the columns of its kind, and the metadata of each object", async () => {
    const { api } = apiOf("v1/namespaces", [aged("shop", 90, { status: { phase: "Active" } })]);
    const table = await get(api, "/api/v1/namespaces", { accept: TABLE });
    assert.deepEqual([table.kind, table.apiVersion], ["Table", "meta.k8s.io/v1"]);
    assert.deepEqual(table.metadata, { resourceVersion: "10" });
    assert.deepEqual(table.columnDefinitions.map(({ name }: Json) => name), ["Name", "Status", "Age"]);
    assert.equal(table.columnDefinitions[0].format, "name");
    assert.deepEqual(table.rows[0].cells, ["shop", "Active", "90s"]);
    assert.equal(table.rows[0].object.kind, "PartialObjectMetadata");
    assert.equal(table.rows[0].object.metadata.name, "shop");
  });

  it("of one object has that object's resourceVersion", async () => {
    const { api } = apiOf("v1/namespaces", [aged("shop", 1)]);
    const table = await get(api, "/api/v1/namespaces/shop", { accept: TABLE });
    assert.deepEqual(table.metadata, { resourceVersion: "5" });
    assert.equal(table.rows.length, 1);
  });

  it("of nothing still has columns", async () => {
    const table = await get(apiOf("v1/pods", []).api, "/api/v1/pods", { accept: TABLE });
    assert.equal(table.columnDefinitions.length, 9);
    assert.deepEqual(table.rows, []);
  });

  it("says of each object as much as includeObject asks for", async () => {
    const { api } = apiOf("v1/configmaps", [aged("shop/c", 1, { data: { a: "1" } })]);
    const rowOf = async (include: string) =>
      (await get(api, `/api/v1/configmaps?includeObject=${include}`, { accept: TABLE })).rows[0].object;
    assert.equal(await rowOf("None"), null);
    assert.deepEqual((await rowOf("Object")).data, { a: "1" });
    assert.equal((await rowOf("Object")).kind, "ConfigMap");
    assert.ok(!("data" in await rowOf("Metadata")));
    await get(api, "/api/v1/configmaps?includeObject=All", { accept: TABLE, status: 400 });
  });

  it("of custom resources has name and age", async () => {
    const informer = FakeInformer.with([aged("shop/w", 3_600 * 30)], 10);
    const resource = WIDGET_RESOURCE;
    const api = readApi({
      resources: [{ informer, resource }],
      allowAnonymous: true,
      clock: new FakeClock(NOW),
    });
    const table = await get(api, "/apis/example.com/v1/widgets", { accept: TABLE });
    assert.deepEqual(table.columnDefinitions.map(({ name }: Json) => name), ["Name", "Age"]);
    assert.deepEqual(table.rows[0].cells, ["w", "30h"]);
  });

  it("is shown for objects of an unexpected shape too", async () => {
    const odd = aged("shop/d", 5, { spec: { template: { spec: { containers: 7 } } } });
    assert.deepEqual((await cells("apps/v1/deployments", "/apis/apps/v1/deployments", odd)).slice(0, 1), [
      "d",
    ]);
  });

  it("in a watch has columns in the first event only", async () => {
    const { api, informer } = apiOf("v1/configmaps", [aged("shop/a", 5)]);
    const watch = await WatchReader.open(api, "/api/v1/configmaps?watch=1&resourceVersion=10", TABLE);
    informer.put(object("shop/b", 11, { data: { x: "1" } }));
    informer.put(object("shop/b", 12));
    const [first, second] = await watch.events(2);
    assert.deepEqual(first.object.columnDefinitions.map(({ name }: Json) => name), ["Name", "Data", "Age"]);
    assert.deepEqual(first.object.rows[0].cells, ["b", 1, "<unknown>"]);
    assert.equal(second.object.columnDefinitions, null);
    assert.equal(second.object.metadata.resourceVersion, "12");
  });

  it("ends initial events with a Table whose one row has the annotation", async () => {
    const { api } = apiOf("v1/configmaps", []);
    const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const watch = await WatchReader.open(api, `/api/v1/configmaps?${query}`, TABLE);
    const [bookmark] = await watch.events(1);
    assert.deepEqual(bookmark.object.rows[0].cells, ["", 0, "<unknown>"]);
    assert.equal(bookmark.object.rows[0].object.metadata.annotations["k8s.io/initial-events-end"], "true");
  });
});

describe("humanDuration", () => {
  it("has two or three figures", async () => {
    const minute = 60;
    const hour = 60 * minute;
    const day = 24 * hour;
    const expected: [number, string][] = [
      [-5, "<invalid>"],
      [-1, "0s"],
      [0, "0s"],
      [119, "119s"],
      [2 * minute, "2m"],
      [9 * minute + 59, "9m59s"],
      [10 * minute + 59, "10m"],
      [3 * hour, "3h"],
      [7 * hour + 5 * minute, "7h5m"],
      [8 * hour + 5 * minute, "8h"],
      [47 * hour, "47h"],
      [3 * day + hour, "3d1h"],
      [8 * day + hour, "8d"],
      [729 * day, "729d"],
      [730 * day, "2y"],
      [800 * day, "2y70d"],
      [3_000 * day, "8y"],
    ];
    const { api } = apiOf("v1/namespaces", expected.map(([seconds], i) => aged(`n${100 + i}`, seconds)));
    const table = await get(api, "/api/v1/namespaces", { accept: TABLE });
    assert.deepEqual(table.rows.map((row: Json) => row.cells[2]), expected.map(([, text]) => text));
  });
});

describe("newTableView of pods", () => {
  const shown = async (fields: Record<string, unknown>) =>
    (await cells("v1/pods", "/api/v1/pods", aged("shop/p", 60, fields))).slice(1, 4);
  const running = { ready: true, restartCount: 0, state: { running: {} } };
  const containers = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `c${i}` }));

  it("shows how many containers are ready, and the phase", async () => {
    assert.deepEqual(
      await shown({
        spec: { containers: containers(2) },
        status: {
          phase: "Running",
          containerStatuses: [{ ...running, name: "c0" }, { name: "c1", restartCount: 0 }],
        },
      }),
      ["1/2", "Running", "0"],
    );
    assert.deepEqual(await shown({ spec: { containers: containers(1) }, status: { phase: "Pending" } }), [
      "0/1",
      "Pending",
      "0",
    ]);
  });

  it("shows why a container waits, and when it was last restarted", async () => {
    const finishedAt = new Date(NOW - 180_000).toISOString();
    const status = {
      phase: "Running",
      containerStatuses: [{
        name: "c0",
        ready: false,
        restartCount: 4,
        state: { waiting: { reason: "CrashLoopBackOff" } },
        lastState: { terminated: { exitCode: 1, finishedAt } },
      }],
    };
    assert.deepEqual(await shown({ spec: { containers: containers(1) }, status }), [
      "0/1",
      "CrashLoopBackOff",
      "4 (3m ago)",
    ]);
  });

  it("shows how an ended container ended", async () => {
    const ended = (terminated: object) =>
      shown({
        spec: { containers: containers(1) },
        status: {
          phase: "Failed",
          containerStatuses: [{ name: "c0", restartCount: 0, state: { terminated } }],
        },
      });
    assert.equal((await ended({ exitCode: 0, reason: "Completed" }))[1], "Completed");
    assert.equal((await ended({ exitCode: 137, reason: "OOMKilled" }))[1], "OOMKilled");
    assert.equal((await ended({ exitCode: 3 }))[1], "ExitCode:3");
    assert.equal((await ended({ exitCode: 137, signal: 9 }))[1], "Signal:9");
  });

  it("counts the init containers that are done, and names one that fails", async () => {
    const init = (second: object) =>
      shown({
        spec: { containers: containers(1), initContainers: containers(2) },
        status: {
          phase: "Pending",
          initContainerStatuses: [
            { name: "c0", restartCount: 0, state: { terminated: { exitCode: 0 } } },
            { name: "c1", restartCount: 2, ...second },
          ],
        },
      });
    assert.deepEqual(await init({ state: { running: {} } }), ["0/1", "Init:1/2", "2"]);
    assert.equal((await init({ state: { waiting: { reason: "ErrImagePull" } } }))[1], "Init:ErrImagePull");
    assert.equal((await init({ state: { terminated: { exitCode: 1, reason: "Error" } } }))[1], "Init:Error");
  });

  it("counts sidecars among the containers", async () => {
    const sidecar = { name: "proxy", restartPolicy: "Always" };
    const status = {
      phase: "Running",
      initContainerStatuses: [{ ...running, name: "proxy", started: true, restartCount: 1 }],
      containerStatuses: [{ ...running, name: "c0" }],
    };
    assert.deepEqual(
      await shown({ spec: { containers: containers(1), initContainers: [sidecar] }, status }),
      [
        "2/2",
        "Running",
        "1",
      ],
    );
  });

  it("shows that a pod is being deleted, or may not be scheduled yet", async () => {
    const pod = aged("shop/p", 60, { spec: { containers: containers(1) }, status: { phase: "Running" } });
    const deleted = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-11-21T11:59:00Z" } };
    assert.equal((await cells("v1/pods", "/api/v1/pods", deleted))[2], "Terminating");
    const gated = {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }],
    };
    assert.equal((await shown({ status: gated }))[1], "SchedulingGated");
  });

  it("marks the rows of pods that have run to completion", async () => {
    const { api } = apiOf("v1/pods", [aged("shop/p", 1, { status: { phase: "Succeeded" } })]);
    const table = await get(api, "/api/v1/pods", { accept: TABLE });
    assert.equal(table.rows[0].conditions[0].type, "Completed");
  });
});

describe("newTableView of other kinds", () => {
  it("show nodes", async () => {
    const node = aged("n1", 60, {
      labels: { "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu" },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: "Ready", status: "Unknown" }],
        addresses: [{ type: "InternalIP", address: "192.0.2.1" }],
        nodeInfo: {
          kubeletVersion: "v1.36.3",
          osImage: "Linux",
          kernelVersion: "6.12",
          architecture: "arm64",
        },
      },
    });
    assert.deepEqual(await cells("v1/nodes", "/api/v1/nodes", node), [
      "n1",
      "NotReady,SchedulingDisabled",
      "gpu,worker",
      "60s",
      "v1.36.3",
      "192.0.2.1",
      "<none>",
      "Linux",
      "6.12 (arm64)",
      "<unknown>",
    ]);
  });

  it("show deployments", async () => {
    const deployment = aged("shop/web", 60, {
      spec: {
        replicas: 3,
        selector: {
          matchLabels: { app: "web" },
          matchExpressions: [{ key: "tier", operator: "In", values: ["b", "a"] }],
        },
        template: {
          spec: { containers: [{ name: "main", image: "web:1" }, { name: "side", image: "side:2" }] },
        },
      },
      status: { readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2 },
    });
    assert.deepEqual(await cells("apps/v1/deployments", "/apis/apps/v1/deployments", deployment), [
      "web",
      "2/3",
      3,
      2,
      "60s",
      "main,side",
      "web:1,side:2",
      "app=web,tier in (a,b)",
    ]);
  });

  it("show services of every type", async () => {
    const shown = async (spec: object, status: object = {}) =>
      (await cells("v1/services", "/api/v1/services", aged("shop/s", 60, { spec, status }))).slice(1, 5);
    const ports = [{ port: 80, protocol: "TCP", nodePort: 30080 }, { port: 53, protocol: "UDP" }];
    assert.deepEqual(await shown({ type: "NodePort", clusterIPs: ["10.0.0.1"], ports }), [
      "NodePort",
      "10.0.0.1",
      "<none>",
      "80:30080/TCP,53/UDP",
    ]);
    const balanced = { loadBalancer: { ingress: [{ hostname: "b.example" }, { ip: "192.0.2.9" }] } };
    assert.equal((await shown({ type: "LoadBalancer" }, balanced))[2], "192.0.2.9,b.example");
    assert.equal((await shown({ type: "LoadBalancer" }))[2], "<pending>");
    assert.deepEqual(await shown({ type: "ExternalName", externalName: "x.example" }), [
      "ExternalName",
      "<none>",
      "x.example",
      "<none>",
    ]);
  });
});

describe("newMetadataView", () => {
  const LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
  const ONE = "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata";

  // As an empty slice of Go is written.
  it("has null for items where there are none, as kube-apiserver", async () => {
    const metadata = { resourceVersion: "10" };
    const expected = {
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      items: null,
    };
    for (const objects of [[], [object("shop/a", 5)], [object("blog/a", 5)]]) {
      const { api } = apiOf("v1/configmaps", objects);
      const of = (query: string) => get(api, `/api/v1/namespaces/none/configmaps${query}`, { accept: LIST });
      assert.deepEqual(await of(""), expected);
      assert.deepEqual(await of("?limit=1&pretty=true"), expected);
      assert.deepEqual(await of("?labelSelector=a%3Db"), expected);
    }
    const { api } = apiOf("v1/configmaps", []);
    const whole = await get(api, "/api/v1/configmaps", { accept: "application/json" });
    assert.deepEqual(whole.items, []);
    const text = async (query: string) => {
      const response = await api.request(`/api/v1/configmaps${query}`, { headers: { accept: LIST } });
      return (await response.text()).trimEnd();
    };
    assert.match(await text(""), /,"items":null\}$/);
    assert.match(await text("?pretty=true"), /\n {2}"items": null\n\}$/);
  });

  it("is served of lists, of one object, and in watches, bookmarks too", async () => {
    const { api, informer } = apiOf("v1/configmaps", [object("shop/a", 5, { data: { a: "1" } })]);
    const list = await get(api, "/api/v1/configmaps", { accept: LIST });
    assert.deepEqual(list, {
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata: { resourceVersion: "10" },
      items: [{
        kind: "PartialObjectMetadata",
        apiVersion: "meta.k8s.io/v1",
        metadata: { name: "a", namespace: "shop", resourceVersion: "5" },
      }],
    });
    assert.deepEqual(await get(api, "/api/v1/namespaces/shop/configmaps/a", { accept: ONE }), list.items[0]);
    const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const watch = await WatchReader.open(api, `/api/v1/configmaps?${query}`, `${ONE},application/json`);
    informer.put(object("shop/a", 11, { data: {} }));
    for (const { object } of await watch.events(3)) {
      assert.deepEqual([object.kind, object.apiVersion], ["PartialObjectMetadata", "meta.k8s.io/v1"]);
      assert.ok(!("data" in object));
    }
  });

  it("does not get the bytes of a watch of whole objects, nor of another version", async () => {
    const { api, informer } = apiOf("v1/configmaps", []);
    const path = "/api/v1/configmaps?watch=1&resourceVersion=10";
    const watches = [
      await WatchReader.open(api, path),
      await WatchReader.open(api, path, ONE),
      await WatchReader.open(api, path, ONE.replace("v=v1", "v=v1beta1")),
    ];
    informer.put(object("shop/a", 11));
    const seen = await Promise.all(
      watches.map(async (watch) => (await watch.events(1))[0].object.apiVersion),
    );
    assert.deepEqual(seen, ["v1", "meta.k8s.io/v1", "meta.k8s.io/v1beta1"]);
  });

  it("of the wrong form is 406", async () => {
    const { api } = apiOf("v1/configmaps", [object("shop/a", 5)]);
    await get(api, "/api/v1/configmaps", { accept: ONE, status: 406 });
    await get(api, "/api/v1/namespaces/shop/configmaps/a", { accept: LIST, status: 406 });
  });
});

describe("readApi and the Accept header", () => {
  it("prefers by q, not by order", async () => {
    const { api } = apiOf("v1/pods", []);
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.2, application/json;q=0.9";
    assert.equal((await get(api, "/api/v1/pods", { accept })).kind, "PodList");
  });
});
