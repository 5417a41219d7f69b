import assert from "node:assert/strict";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import { parseResource } from "../../../src/meta/resource.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { describe, it } from "node:test";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json } from "../reading.ts";
import { RECORDED_TABLES } from "../recorded_tables.ts";
import { readApi } from "../read_api.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const NOW = Date.parse("2026-11-21T12:00:00Z");

interface Recorded {
  readonly resource: string;
  readonly columns: readonly unknown[];
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: TestObject }[];
}

async function tableOf(
  resource: string,
  objects: readonly TestObject[],
  more: Partial<ApiResource> = {},
): Promise<Json> {
  const described = { ...parseResource(resource), kind: "Any", namespaced: false, ...more };
  const api = readApi({
    resources: [{ informer: FakeInformer.with(objects, 10), resource: described }],
    allowAnonymous: true,
    allowSecrets: true,
    clock: new FakeClock(NOW),
  });
  const prefix = described.group === "" ? "/api" : `/apis/${described.group}`;
  return await get(api, `${prefix}/${described.version}/${described.resource}`, { accept: TABLE });
}

/** The cells of one object that was created two days ago. */
async function cells(resource: string, fields: object): Promise<unknown[]> {
  const { metadata, ...rest } = fields as TestObject;
  const creationTimestamp = "2026-11-19T12:00:00Z";
  const one = { ...object("x", 5), ...rest, metadata: { name: "x", creationTimestamp, ...metadata } };
  return (await tableOf(resource, [one])).rows[0].cells;
}

describe("A Table", () => {
  for (const line of RECORDED_TABLES.trim().split("\n")) {
    const { resource, columns, rows } = JSON.parse(line) as Recorded;
    it(`of ${resource} has kube-apiserver's columns and cells`, async () => {
      const shown = rows.map(({ object }, i) => ({
        ...object,
        metadata: { ...object.metadata, resourceVersion: String(i + 1), namespace: `n${100 + i}` },
      }));
      const table = await tableOf(resource, shown, { namespaced: true });
      assert.deepEqual(
        table.columnDefinitions.map((c: Json) => [c.name, c.type, c.format, c.priority]),
        columns,
      );
      for (const [i, { cells }] of rows.entries()) {
        const actual = table.rows[i].cells.map((cell: unknown) =>
          typeof cell === "string" ? cell.replace(/\b(?:\d+[smhdy])+\b/, "<age>") : cell
        );
        assert.deepEqual(actual, cells);
      }
    });
  }

  it("of a kind outside the groups that people list by hand shows names and ages", async () => {
    const kinds = ["coordination.k8s.io/v1/leases", "storage.k8s.io/v9/novelties", "example.com/v1/widgets"];
    for (const kind of kinds) {
      const table = await tableOf(kind, [object("x", 1)]);
      const columns = table.columnDefinitions.map((column: Json) => [column.name, column.type]);
      assert.deepEqual(columns, [["Name", "string"], ["Age", "date"]], kind);
      assert.deepEqual(await cells(kind, {}), ["x", "2d"], kind);
    }
  });

  it("of jobs shows how long they ran", async () => {
    const duration = async (status: object) => (await cells("batch/v1/jobs", { status }))[3];
    const startTime = "2026-11-21T10:00:00Z";
    assert.equal(await duration({}), "");
    assert.equal(await duration({ startTime }), "120m");
    assert.equal(await duration({ startTime, completionTime: "2026-11-21T10:01:40Z" }), "100s");
  });

  it("of jobs shows the first of its states that says most, as kube-apiserver's", async () => {
    const status = async (types: readonly string[], metadata = {}) => {
      const conditions = types.map((type) => ({ type, status: "True" }));
      return (await cells("batch/v1/jobs", { metadata, status: { conditions } }))[1];
    };
    const deleted = { deletionTimestamp: "2026-11-21T11:00:00Z" };
    const order = ["SuccessCriteriaMet", "FailureTarget", "Suspended", "Failed", "Complete"];
    for (let count = 1; count <= order.length; count++) {
      assert.equal(await status(order.slice(0, count)), order[count - 1]);
      const isOver = order[count - 1] === "Failed" || order[count - 1] === "Complete";
      assert.equal(await status(order.slice(0, count), deleted), isOver ? order[count - 1] : "Terminating");
    }
    assert.equal(await status([]), "Running");
  });

  it("of jobs without a number of completions shows how many run at once, where that is more than one", async () => {
    const completions = async (spec: object) => (await cells("batch/v1/jobs", { spec, status: {} }))[2];
    assert.equal(await completions({ completions: 3, parallelism: 2 }), "0/3");
    assert.equal(await completions({ parallelism: 2 }), "0/1 of 2");
    assert.equal(await completions({ parallelism: 1 }), "0/1");
    assert.equal(await completions({}), "0/1");
  });

  it("of controller revisions shows the owner that controls them, of several", async () => {
    const owner = (name: string, controller?: boolean) => ({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      name,
      uid: name,
      ...(controller !== undefined && { controller }),
    });
    const controllerOf = async (...ownerReferences: object[]) =>
      (await cells("apps/v1/controllerrevisions", { metadata: { name: "x", ownerReferences } }))[1];
    assert.equal(await controllerOf(owner("a"), owner("b", false), owner("c", true)), "statefulset.apps/c");
    assert.equal(await controllerOf(owner("a"), owner("b", false)), "<none>");
  });

  it("of pods shows as not ready one that runs beside a container that has completed", async () => {
    const containerStatuses = [
      { name: "done", state: { terminated: { exitCode: 0, reason: "Completed" } } },
      { name: "main", ready: true, state: { running: {} } },
    ];
    const statusOf = async (conditions: readonly object[]) => {
      const spec = { containers: [{ name: "done" }, { name: "main" }] };
      return (await cells("v1/pods", { spec, status: { phase: "Running", conditions, containerStatuses } }))[
        2
      ];
    };
    const condition = (type: string, status: string) => ({ type, status });
    assert.equal(await statusOf([condition("Ready", "True")]), "Running");
    assert.equal(await statusOf([condition("Initialized", "True"), condition("Ready", "False")]), "NotReady");
    assert.equal(await statusOf([condition("Initialized", "True")]), "NotReady");
  });

  it("of pods shows why the first of its containers waits that do", async () => {
    const waiting = (name: string, reason: string) => ({ name, state: { waiting: { reason } } });
    const status = {
      phase: "Pending",
      containerStatuses: [
        { name: "a", ready: true, state: { running: {} } },
        waiting("b", "CrashLoopBackOff"),
        waiting("c", "ImagePullBackOff"),
      ],
    };
    const spec = { containers: [{ name: "a" }, { name: "b" }, { name: "c" }] };
    assert.deepEqual((await cells("v1/pods", { spec, status })).slice(1, 3), ["1/3", "CrashLoopBackOff"]);
  });

  it("of pods has the words of states that are rare", async () => {
    const deletion = { deletionTimestamp: "2026-11-21T11:00:00Z" };
    const failed = { exitCode: 1, reason: "Error" };
    const main = [{ name: "main" }];
    const gated = (type: string, reason: string) => [{ type, status: "False", reason }];
    const init = (...states: object[]) => ({
      phase: "Pending",
      initContainerStatuses: states.map((state, i) => ({ name: `init-${i}`, state, started: true })),
      containerStatuses: [{ name: "main", state: { waiting: { reason: "PodInitializing" } } }],
    });
    const done = { terminated: { exitCode: 0 } };
    const cases: readonly (readonly [status: object, word: string, metadata?: object])[] = [
      [{ phase: "Running" }, "Terminating", deletion],
      [{ phase: "Succeeded" }, "Succeeded", deletion],
      [{ phase: "Failed" }, "Failed", deletion],
      [{ phase: "Running", reason: "NodeLost" }, "Unknown", deletion],
      [{ phase: "Running", reason: "NodeLost" }, "NodeLost"],
      [{ phase: "Pending", conditions: gated("PodScheduled", "SchedulingGated") }, "SchedulingGated"],
      [{ phase: "Pending", conditions: gated("PodScheduled", "Unschedulable") }, "Pending"],
      [{ phase: "Pending", conditions: gated("Other", "SchedulingGated") }, "Pending"],
      [init({ running: {} }), "Init:0/2"],
      [init(done, { running: {} }), "Init:1/2"],
      [init(done, done), "PodInitializing"],
      [init({ waiting: { reason: "PodInitializing" } }), "Init:0/2"],
      [init({ waiting: { reason: "ImagePullBackOff" } }), "Init:ImagePullBackOff"],
      [init({ terminated: { exitCode: 2 } }), "Init:ExitCode:2"],
      [init({ terminated: { exitCode: 137, signal: 9 } }), "Init:Signal:9"],
      [init({ terminated: failed }), "Init:Error"],
      [{
        phase: "Failed",
        containerStatuses: [{ state: { terminated: { exitCode: 0, reason: "Completed" } } }, {
          state: { terminated: failed },
        }],
      }, "Error"],
    ];
    const spec = { containers: main, initContainers: [{ name: "init-0" }, { name: "init-1" }] };
    for (const [status, word, metadata] of cases) {
      const [, , shown] = await cells("v1/pods", { spec, status, metadata });
      assert.equal(shown, word, JSON.stringify(status));
    }
  });

  it("of pods counts sidecars, and shows the last of all restarts", async () => {
    const ended = (minute: number) => ({ terminated: { finishedAt: `2026-11-21T11:${minute}:00Z` } });
    const initContainers = [{ name: "proxy", restartPolicy: "Always" }, { name: "init" }];
    const done = { name: "init", restartCount: 4, state: { terminated: { exitCode: 0 } } };
    const proxy = { name: "proxy", state: { running: {} }, restartCount: 1, lastState: ended(20) };
    const running = { state: { running: {} }, ready: true, restartCount: 1 };
    const shown = async (sidecar: object) => {
      const containerStatuses = [{ ...running, lastState: ended(50) }, { ...running, lastState: ended(40) }];
      const initContainerStatuses = [{ ...proxy, ...sidecar }, done];
      const status = { phase: "Running", containerStatuses, initContainerStatuses };
      const fields = { spec: { containers: [{}, {}], initContainers }, status };
      return (await cells("v1/pods", fields)).slice(1, 4);
    };
    assert.deepEqual(await shown({ started: true, ready: true }), ["3/3", "Running", "3 (10m ago)"]);
    assert.deepEqual(await shown({ started: true, ready: false }), ["2/3", "Running", "3 (10m ago)"]);
    assert.deepEqual(await shown({ started: false }), ["0/3", "Init:0/2", "1 (40m ago)"]);
  });

  it("of pods counts as ready what runs and is ready, and as restarts what was started again", async () => {
    const completed = { state: { terminated: { exitCode: 0, reason: "Completed" } } };
    const ended = (finishedAt: string) => ({ terminated: { finishedAt } });
    const [at, before] = [ended("2026-11-21T11:50:00Z"), ended("2026-11-21T11:40:00Z")];
    const shown = async (containerStatuses: readonly object[], more: object = {}) => {
      const spec = { containers: containerStatuses, initContainers: [{ name: "init" }] };
      const conditions = [{ type: "Ready", status: "True" }];
      const status = { phase: "Running", conditions, containerStatuses, ...more };
      return (await cells("v1/pods", { spec, status })).slice(1, 4);
    };
    assert.deepEqual(await shown([{ ready: false, state: { running: {} } }]), ["0/1", "Running", "0"]);
    assert.deepEqual(await shown([{ ready: true, state: {} }]), ["0/1", "Running", "0"]);
    assert.deepEqual(await shown([completed, completed]), ["0/2", "Completed", "0"]);
    const restarted = (lastState?: object, restartCount = 2) => ({
      ready: true,
      state: { running: {} },
      restartCount,
      lastState,
    });
    assert.deepEqual(await shown([restarted(before), restarted(at)]), ["2/2", "Running", "4 (10m ago)"]);
    assert.deepEqual(await shown([restarted(at), restarted(before)]), ["2/2", "Running", "4 (10m ago)"]);
    assert.deepEqual(await shown([restarted(at), restarted()]), ["2/2", "Running", "4 (10m ago)"]);
    assert.deepEqual(await shown([restarted(at, 0)]), ["1/1", "Running", "0"]);
    // An init container that runs again, as after a restart of its node.
    const again = {
      initContainerStatuses: [{ name: "init", state: { running: {} } }],
      conditions: [{ type: "Initialized", status: "True" }],
    };
    assert.deepEqual(await shown([restarted(at)], again), ["1/1", "Init:0/1", "2 (10m ago)"]);
    assert.deepEqual(await shown([restarted(at)], { ...again, conditions: [] }), ["0/1", "Init:0/1", "0"]);
    const nominated = { status: { phase: "Pending", nominatedNodeName: "node-1" } };
    assert.equal((await cells("v1/pods", nominated))[7], "node-1");
  });

  it("of pods shows no address where there is an empty one", async () => {
    const address = async (podIPs: unknown) => (await cells("v1/pods", { status: { podIPs } }))[5];
    assert.deepEqual([await address([{ ip: "" }]), await address([{ ip: "10.0.0.1" }])], [
      "<none>",
      "10.0.0.1",
    ]);
  });

  it("of pods says in conditions of its rows which of them have completed", async () => {
    const phases = ["Succeeded", "Failed", "Running"];
    const pods = phases.map((phase, i) => object(phase, i + 1, { status: { phase } }));
    const { rows } = await tableOf("v1/pods", pods);
    const completed = { type: "Completed", status: "True" };
    assert.deepEqual(rows.map(({ cells, conditions }: Json) => [cells[0], conditions]), [
      ["Failed", [{ ...completed, reason: "Failed", message: "The pod failed." }]],
      ["Running", undefined],
      ["Succeeded", [
        { ...completed, reason: "Succeeded", message: "The pod has completed successfully." },
      ]],
    ]);
  });

  it("shows labels in the order of their names", async () => {
    const selector = { tier: "front", app: "web" };
    assert.ok(
      (await cells("v1/replicationcontrollers", { spec: { selector } })).includes("app=web,tier=front"),
    );
  });

  it("of services shows the address of a load balancer rather than its name", async () => {
    const ingress = [{ ip: "192.0.2.1", hostname: "lb.example" }, { hostname: "b.example" }];
    const row = await cells("v1/services", {
      spec: { type: "LoadBalancer" },
      status: { loadBalancer: { ingress } },
    });
    assert.equal(row[3], "192.0.2.1,b.example");
  });

  it("of volumes and claims that are being deleted shows that", async () => {
    const fields = { metadata: { deletionTimestamp: "2026-11-21T10:00:00Z" }, status: { phase: "Bound" } };
    assert.equal((await cells("v1/persistentvolumeclaims", fields))[1], "Terminating");
  });

  it("counts no characters of a text that is where entries should be", async () => {
    assert.equal((await cells("v1/configmaps", { data: "abc", binaryData: { a: "" } }))[1], 1);
  });

  it("of endpoints puts an IPv6 address in brackets", async () => {
    const subsets = [{ addresses: [{ ip: "fd00::1" }, { ip: "10.0.0.1" }], ports: [{ port: 80 }] }];
    assert.equal((await cells("v1/endpoints", { subsets }))[1], "[fd00::1]:80,10.0.0.1:80");
  });

  it("of nodes shows the last of several conditions", async () => {
    const conditions = ["False", "True"].map((status) => ({ type: "Ready", status }));
    assert.equal((await cells("v1/nodes", { status: { conditions } }))[1], "Ready");
  });

  it("of nodes shows the roles that have a name", async () => {
    const roles = async (labels: Record<string, string>) =>
      (await cells("v1/nodes", { metadata: { labels } }))[2];
    const label = "node-role.kubernetes.io/";
    assert.equal(
      await roles({ [`${label}worker`]: "", [`${label}control-plane`]: "" }),
      "control-plane,worker",
    );
    assert.equal(await roles({ [label]: "", "kubernetes.io/role": "infra" }), "infra");
    assert.equal(await roles({ "kubernetes.io/role": "", "node-role": "x" }), "<none>");
    assert.equal(await roles({ "kubernetes.io/role": "", [`${label}worker`]: "" }), "worker");
  });

  it("of events shows what they are about, also without a name", async () => {
    const about = async (involvedObject: object) => (await cells("v1/events", { involvedObject }))[3];
    assert.equal(await about({ kind: "Pod", name: "web-1" }), "pod/web-1");
    assert.equal(await about({ kind: "Pod" }), "pod");
  });

  it("of events shows when they were seen first and last", async () => {
    const times = async (resource: string, event: object) => {
      const row = await cells(resource, event);
      return [row[0], row[7], row[8]];
    };
    const [old, late] = ["2026-11-21T10:00:00Z", "2026-11-21T11:50:30Z"];
    const classic = { firstTimestamp: old, lastTimestamp: late, count: 3 };
    assert.deepEqual(await times("v1/events", classic), ["9m30s", "120m", 3]);
    assert.deepEqual(
      await times("v1/events", { firstTimestamp: null, lastTimestamp: null, eventTime: old }),
      [
        "120m",
        "120m",
        1,
      ],
    );
    const series = { count: 8, lastObservedTime: late };
    assert.deepEqual(await times("v1/events", { eventTime: old, series, count: 1 }), ["9m30s", "120m", 8]);
    assert.deepEqual(await times("v1/events", { eventTime: old, series: {} }), ["<unknown>", "120m", 0]);
  });

  it("marks the default of storage classes and ingress classes", async () => {
    const name = async (resource: string, annotation: string, value = "true") =>
      (await cells(resource, { metadata: { annotations: { [annotation]: value } } }))[0];
    const storage = "storage.k8s.io/v1/storageclasses";
    assert.equal(await name(storage, "storageclass.kubernetes.io/is-default-class"), "x (default)");
    assert.equal(await name(storage, "storageclass.beta.kubernetes.io/is-default-class"), "x (default)");
    assert.equal(await name(storage, "storageclass.kubernetes.io/is-default-class", "false"), "x");
    const ingress = "networking.k8s.io/v1/ingressclasses";
    assert.equal(await name(ingress, "ingressclass.kubernetes.io/is-default-class"), "x (default)");
    assert.equal(await name(ingress, "storageclass.kubernetes.io/is-default-class"), "x");
  });

  it("shows what it can of an object of an unexpected shape, in every kind", async () => {
    const odd = [7, "text", null, true, [1, null, { name: 5 }], { a: { b: 1 } }];
    for (const line of RECORDED_TABLES.trim().split("\n")) {
      const { resource } = JSON.parse(line) as Recorded;
      for (const value of odd) {
        const row = await cells(resource, {
          spec: value,
          status: value,
          data: value,
          subsets: value,
          series: value,
        });
        assert.ok(row.includes("x"), `${resource} with ${JSON.stringify(value)}: ${JSON.stringify(row)}`);
        for (const cell of row) assert.notEqual(typeof cell, "object", resource);
      }
    }
    const metadata = { ownerReferences: [{ controller: true }] };
    assert.equal((await cells("apps/v1/controllerrevisions", { metadata }))[1], "<unknown>");
  });

  it("of cron jobs shows one that was never started, also where that is said by null", async () => {
    for (const status of [{}, { lastScheduleTime: null }]) {
      assert.equal((await cells("batch/v1/cronjobs", { status }))[5], "<none>");
    }
  });
});
