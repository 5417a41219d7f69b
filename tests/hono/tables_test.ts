import assert from "node:assert/strict";
import { readApi } from "@listwatch/cache/hono";
import type { ApiResource } from "../../src/protocol/api_resource.ts";
import { parseResource } from "../../src/meta/resource.ts";
import { FakeClock } from "../../src/util/clock.ts";
import { describe, it } from "node:test";
import { FakeInformer, object, type TestObject } from "./fake_informer.ts";
import { get, type Json } from "./reading.ts";
import { RECORDED_TABLES } from "./recorded_tables.ts";

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

  it("of a kind of Kubernetes' own that has no columns shows names and times", async () => {
    const table = await tableOf("storage.k8s.io/v9/novelties", [object("x", 1)]);
    assert.deepEqual(table.columnDefinitions.map((c: Json) => [c.name, c.type]), [["Name", "string"], [
      "Created At",
      "date",
    ]]);
    assert.deepEqual(table.rows[0].cells, ["x", "0001-01-01T00:00:00Z"]);
  });

  it("of flow schemas is in the order of precedence, as kube-apiserver's", async () => {
    const schema = (name: string, matchingPrecedence: number) =>
      object(name, 1, { spec: { matchingPrecedence } });
    const schemas = [schema("a", 9000), schema("c", 2), schema("b", 2), schema("d", 1)];
    const { rows } = await tableOf("flowcontrol.apiserver.k8s.io/v1/flowschemas", schemas);
    assert.deepEqual(rows.map((row: Json) => row.cells[0]), ["d", "b", "c", "a"]);
  });

  it("of jobs shows how long they ran", async () => {
    const duration = async (status: object) => (await cells("batch/v1/jobs", { status }))[3];
    const startTime = "2026-11-21T10:00:00Z";
    assert.equal(await duration({}), "");
    assert.equal(await duration({ startTime }), "120m");
    assert.equal(await duration({ startTime, completionTime: "2026-11-21T10:01:40Z" }), "100s");
  });

  it("of events shows when they were seen first and last, in both groups", async () => {
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
    assert.deepEqual(
      await times("events.k8s.io/v1/events", {
        deprecatedFirstTimestamp: old,
        deprecatedLastTimestamp: late,
        deprecatedCount: 2,
      }),
      ["9m30s", "120m", 2],
    );
  });

  it("marks the default of storage classes and ingress classes", async () => {
    const name = async (resource: string, annotation: string) =>
      (await cells(resource, { metadata: { annotations: { [annotation]: "true" } } }))[0];
    const storage = "storage.k8s.io/v1/storageclasses";
    assert.equal(await name(storage, "storageclass.kubernetes.io/is-default-class"), "x (default)");
    assert.equal(await name(storage, "storageclass.beta.kubernetes.io/is-default-class"), "x (default)");
    const ingress = "networking.k8s.io/v1/ingressclasses";
    assert.equal(await name(ingress, "ingressclass.kubernetes.io/is-default-class"), "x (default)");
    assert.equal(await name(ingress, "storageclass.kubernetes.io/is-default-class"), "x");
  });

  it("of API services shows which service answers, and why it is not available", async () => {
    const shown = async (spec: object, status: object) =>
      (await cells("apiregistration.k8s.io/v1/apiservices", { spec, status })).slice(1, 3);
    const conditions = [{ type: "Available", status: "False", reason: "MissingEndpoints" }];
    const service = { namespace: "monitoring", name: "metrics" };
    assert.deepEqual(await shown({ service }, { conditions }), [
      "monitoring/metrics",
      "False (MissingEndpoints)",
    ]);
    assert.deepEqual(await shown({}, {}), ["Local", "Unknown"]);
  });

  it("of signing requests shows what was decided, and whether there is a certificate", async () => {
    const state = async (status: object) =>
      (await cells("certificates.k8s.io/v1/certificatesigningrequests", { status })).at(-1);
    const conditions = (...types: string[]) => ({ conditions: types.map((type) => ({ type })) });
    assert.equal(await state({}), "Pending");
    assert.equal(await state({ ...conditions("Approved"), certificate: "AA==" }), "Approved,Issued");
    assert.equal(await state(conditions("Approved", "Denied", "Failed")), "Denied,Failed");
  });

  it("of kinds that API servers have off by default shows kube-apiserver's columns", async () => {
    const scheduled = { conditions: [{ type: "PodGroupScheduled", status: "True" }] };
    assert.deepEqual(
      (await cells("scheduling.k8s.io/v1alpha2/podgroups", {
        spec: {
          schedulingPolicy: { gang: { minCount: 2 } },
          podGroupTemplateRef: { workload: { workloadName: "w" } },
        },
        status: scheduled,
      })).slice(1),
      ["Gang", "w", "Scheduled", "2d"],
    );
    const evicted = {
      conditions: [...scheduled.conditions, { type: "DisruptionTarget", reason: "Preempted" }],
    };
    assert.equal((await cells("scheduling.k8s.io/v1alpha2/podgroups", { status: evicted }))[3], "Preempted");
    assert.deepEqual(
      await cells("storagemigration.k8s.io/v1beta1/storageversionmigrations", {
        spec: { resource: { group: "apps", resource: "deployments" } },
        status: { conditions: [{ type: "Running", status: "False" }, { type: "Succeeded", status: "True" }] },
      }),
      ["x", "deployments.apps", "Succeeded"],
    );
    assert.deepEqual(
      await cells("certificates.k8s.io/v1beta1/podcertificaterequests", {
        spec: { podName: "p", serviceAccountName: "s", nodeName: "n", signerName: "a/b" },
        status: { conditions: [{ type: "Denied", status: "True" }] },
      }),
      ["x", "p", "s", "n", "a/b", "Denied", "<none>"],
    );
    const pools = [{ totalDevices: 4, availableDevices: 1, validationError: "no" }, { totalDevices: 3 }];
    const conditions = [{ type: "Complete", status: "True", lastTransitionTime: "2026-11-21T11:59:00Z" }];
    assert.deepEqual(
      (await cells("resource.k8s.io/v1alpha3/resourcepoolstatusrequests", {
        spec: { driver: "d" },
        status: { pools, poolCount: 3, conditions },
      })).slice(1),
      ["d", "7", "1", "0", "0", "1", 3, "Complete (2/3 pools)", "60s"],
    );
    assert.deepEqual(
      await cells("internal.apiserver.k8s.io/v1alpha1/storageversions", {
        status: {
          storageVersions: ["a", "b", "c", "d"].map((apiServerID) => ({
            apiServerID,
            encodingVersion: "v1",
          })),
        },
      }),
      ["x", "<unset>", "a=v1,b=v1,c=v1 + 1 more...", "2d"],
    );
    assert.deepEqual(
      await cells("resource.k8s.io/v1beta2/devicetaintrules", {
        spec: { taint: { key: "k", effect: "NoSchedule", timeAdded: "2026-11-21T11:59:00Z" } },
      }),
      ["x", "k", "", "NoSchedule", "60s", "2d"],
    );
    assert.deepEqual(await cells("certificates.k8s.io/v1beta1/clustertrustbundles", {}), ["x", "<none>"]);
    assert.deepEqual(
      await cells("coordination.k8s.io/v1beta1/leasecandidates", {
        spec: { leaseName: "l", binaryVersion: "1.36.0" },
      }),
      ["x", "l", "1.36.0", "", "2d"],
    );
    assert.deepEqual(
      await cells("v1/componentstatuses", {
        conditions: [{ type: "Healthy", status: "True", message: "ok" }],
      }),
      ["x", "Healthy", "ok", ""],
    );
    assert.deepEqual(await cells("v1/componentstatuses", {}), ["x", "Unknown", "", ""]);
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
  });
});
