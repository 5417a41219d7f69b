import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { Projection } from "@listwatch/cache/client";
import { type ApiResource, MergedInformer } from "@listwatch/cache/hono";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { heldPrinter, isCutColumn } from "../../../src/hono/tables/cut_columns.ts";
import { printerOf } from "../../../src/hono/tables/printers.ts";
import { describedResource } from "../../../src/protocol/builtin_resources.ts";
import { get, type Json, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

const POD = {
  metadata: { name: "web-1", namespace: "shop" },
  spec: { nodeName: "n1", containers: [{ name: "app", image: "web:1" }] },
  status: {
    phase: "Running",
    podIPs: [{ ip: "10.0.0.1" }],
    containerStatuses: [{ name: "app", ready: true, restartCount: 3, state: { running: {} } }],
  },
};

interface Leaves {
  readonly keep?: readonly string[] | "everything";
  readonly drop?: readonly string[];
  readonly metadataOnly?: boolean;
}

async function served(
  leaves: Leaves,
  use: (api: ReturnType<typeof readApi>) => Promise<void>,
): Promise<void> {
  const server = new InMemoryApiServer();
  server.create("v1/pods", POD);
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
  const resource = cluster.resource<KubernetesObject>("v1/pods", leaves as { drop: [] });
  const informer = new SharedIndexInformer(resource, { logger: silentLogger });
  await using _running = informer.start();
  await informer.synced();
  await use(readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true }));
}

async function tableOf(leaves: Leaves, path = "/api/v1/pods") {
  let found: { cells: unknown[]; columns: Json[]; warning: string | null } | undefined;
  await served(leaves, async (api) => {
    const response = await api.request(path, { headers: { Accept: TABLE } });
    const { rows: [{ cells }], columnDefinitions: columns } = await response.json() as Json;
    found = { cells, columns, warning: response.headers.get("Warning") };
  });
  return found!;
}

describe("heldPrinter, in the Table of pods,", () => {
  it("says of which columns the cache leaves out the fields: in the cells, the descriptions and a warning", async () => {
    for (const path of ["/api/v1/pods", "/api/v1/namespaces/shop/pods/web-1"]) {
      const { cells, columns, warning } = await tableOf({ drop: ["status"] }, path);
      assert.deepEqual(cells.toSpliced(4, 1), [
        "web-1",
        "<cut>",
        "<cut>",
        "<cut>",
        "<cut>",
        "n1",
        "<cut>",
        "<cut>",
      ]);
      assert.match(columns[1].description, /The cache leaves out the fields that it is made of\.$/);
      // The columns by which the page offers no order.
      const cut = columns.flatMap((column: Json, i: number) => isCutColumn(column) ? [cells[i]] : []);
      assert.deepEqual(cut, cells.filter((cell: unknown) => cell === "<cut>"));
      assert.equal(
        warning,
        '299 - "this cache leaves out fields of the objects: <cut> are ' +
          'Ready, Status, Restarts, IP, Nominated Node, Readiness Gates"',
      );
    }
  });

  it("cuts only the columns of the fields that are left out, however they are", async () => {
    const columnsCut = async (leaves: Leaves) => {
      const { cells, columns } = await tableOf(leaves);
      return columns.flatMap(({ name }, i) => cells[i] === "<cut>" ? name : []).join();
    };
    assert.equal(await columnsCut({ drop: ["status.podIPs", "spec.nodeName"] }), "IP,Node");
    assert.equal(await columnsCut({ drop: ["status.containerStatuses[].restartCount"] }), "Restarts");
    assert.equal(await columnsCut({ drop: ["status.containerStatuses[].state"] }), "Ready,Status");
    assert.equal(
      await columnsCut({ keep: ["spec", "status.phase", "status.reason"] }),
      "Ready,Status,Restarts,IP,Nominated Node,Readiness Gates",
    );
    assert.equal(await columnsCut({ drop: ["metadata.creationTimestamp"] }), "Age");
    for (const leaves of [{ metadataOnly: true }, { metadataOnly: true, keep: "everything" }] as const) {
      assert.equal(await columnsCut(leaves), "Ready,Status,Restarts,IP,Node,Nominated Node,Readiness Gates");
    }
  });

  it("changes nothing where no column is concerned", async () => {
    for (
      const leaves of [{}, { keep: "everything" }, { drop: ["spec.volumes", "metadata.labels"] }] as const
    ) {
      const { cells, columns, warning } = await tableOf(leaves);
      assert.deepEqual(cells.slice(0, 4), ["web-1", "1/1", "Running", "3"]);
      assert.deepEqual(columns, printerOf(describedResource("v1/pods", "test")).columns);
      assert.equal(warning, null);
    }
  });

  it("has the warning once on a watch, and none where no Table is requested", async () => {
    await served({ drop: ["status"] }, async (api) => {
      const watch = await WatchReader.open(api, "/api/v1/pods?watch=1", `${TABLE},application/json`);
      assert.match(
        watch.response.headers.get("Warning") ?? "",
        /^299 - "this cache leaves out [^,]*, [^"]*"$/,
      );
      const [{ object }] = await watch.events(1);
      assert.equal(object.rows[0].cells[1], "<cut>");
      await watch.cancel();
      const list = await api.request("/api/v1/pods");
      assert.equal(list.headers.get("Warning"), null);
      assert.equal((await get(api, "/api/v1/pods")).items.length, 1);
    });
  });

  it("has no order by a column that is cut", async () => {
    await served({ drop: ["status"] }, async (api) => {
      for (const query of ["", "&watch=1"]) {
        const path = `/api/v1/pods?limit=1&sortBy=metadata.name,column(Restarts)${query}`;
        const { message } = await get(api, path, { status: 400 });
        assert.match(message, /^sortBy: the cache leaves out what the column Restarts is made of; sort by/);
      }
      assert.equal((await get(api, "/api/v1/pods?limit=1&sortBy=column(Node)")).items.length, 1);
    });
  });

  it("cuts what one of several sources leaves out", async () => {
    const server = new InMemoryApiServer();
    server.create("v1/pods", POD);
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const sources = [{ drop: ["spec.nodeName"] as const }, { drop: [] as const }].map((leaves, i) => ({
      name: `c${i}`,
      informer: new SharedIndexInformer(
        cluster.resource<KubernetesObject>("v1/pods", leaves as { drop: [] }),
        {
          logger: silentLogger,
        },
      ),
    }));
    const informer = new MergedInformer(sources, { by: "cluster" });
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    await using _one = sources[0].informer.start();
    await using _two = sources[1].informer.start();
    for (const source of sources) await source.informer.synced();
    const { rows } = await get(api, "/api/v1/pods", { accept: TABLE });
    assert.deepEqual(rows.map(({ cells }: Json) => [cells[0], cells[6]]), [
      ["c0.web-1", "<cut>"],
      ["c1.web-1", "<cut>"],
    ]);
  });
});

describe("heldPrinter", () => {
  const cut = (resource: string | ApiResource, leaves: Leaves) => {
    const projection = new Projection(leaves as { drop: string[] });
    return heldPrinter(printerOf(describedResource(resource, "test")), [projection]).cut.join();
  };

  it("finds out which fields the columns of other kinds read", () => {
    assert.equal(cut("apps/v1/deployments", { drop: ["status"] }), "Ready,Up-to-date,Available");
    assert.equal(cut("apps/v1/deployments", { drop: ["status.readyReplicas"] }), "Ready");
    assert.equal(cut("v1/services", { drop: ["spec.ports[].nodePort"] }), "Port(s)");
    assert.equal(cut("v1/configmaps", { drop: ["data"] }), "Data");
    assert.equal(cut("v1/nodes", { keep: ["spec"] }).includes("Status"), true);
    assert.equal(cut("v1/namespaces", { drop: ["metadata.managedFields"] }), "");
    // A name is shown in any case, although it says whether an annotation makes the class the default.
    assert.equal(cut("networking.k8s.io/v1/ingressclasses", { drop: ["metadata.annotations"] }), "");
  });

  it("finds out which fields the columns of custom resources read", () => {
    const widgets: ApiResource = {
      ...WIDGET_RESOURCE,
      printerColumns: [
        { name: "Size", type: "integer", jsonPath: ".spec.size" },
        { name: "Ready", type: "string", jsonPath: ".status.conditions[0].status" },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        { name: "Any", type: "string", jsonPath: ".data.*" },
      ],
    };
    assert.equal(cut(widgets, { drop: ["data.one"] }), "Any");
    assert.equal(cut(widgets, { keep: ["spec", "data.one"] }), "Ready,Any");
    assert.equal(cut(widgets, { drop: ["other"] }), "");
    assert.equal(cut(widgets, { drop: ["status"] }), "Ready");
    assert.equal(cut(widgets, { drop: ["status.conditions[].status"] }), "Ready");
    assert.equal(cut(widgets, { keep: ["status", "data"] }), "Size");
    assert.equal(cut(widgets, { drop: ["spec.other"] }), "");
    const { columns, cells } = heldPrinter(printerOf(widgets), [new Projection({ drop: ["spec.size"] })]);
    assert.equal(columns[1].type, "string");
    assert.equal(cells({ metadata: { name: "w" } }, 0)[1], "<cut>");
  });
});
