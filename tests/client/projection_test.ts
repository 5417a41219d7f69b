import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, resourceOf } from "@listwatch/cache";
import type { Dropped, Kept, Schema } from "@listwatch/cache/client";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string; volumes?: { name: string; secret?: object }[] };
  status?: { phase?: string };
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const POD = {
  metadata: {
    name: "web-1",
    annotations: { [LAST_APPLIED]: '{"spec":{}}\n', team: "shop" },
    managedFields: [{ manager: "kubectl" }],
  },
  spec: { nodeName: "node-1", volumes: [{ name: "keys", secret: {} }, { name: "tmp" }] },
  status: { phase: "Running" },
};
const { managedFields: _, ...METADATA } = { ...POD.metadata, annotations: { team: "shop" } };

const cluster = newCluster({
  server: "http://127.0.0.1:8001",
  fetch: (url) =>
    new URL(String(url)).searchParams.has("watch")
      ? new Response(`${JSON.stringify({ type: "ADDED", object: POD })}\n`)
      : String(url).endsWith("/web-1")
      ? Response.json(POD)
      : Response.json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [POD] }),
});

async function watched<T>(watching: Promise<AsyncIterable<readonly { object?: T }[]>>): Promise<unknown> {
  for await (const [event] of await watching) return event.object;
  return undefined;
}

describe("ResourceClient: fields that lists and watches leave out", () => {
  it("are rarely read ones by default", async () => {
    const pods = cluster.resource<Pod>("v1/pods");
    const [item] = (await pods.list()).items;
    assert.deepEqual(item, { ...POD, metadata: METADATA, apiVersion: "v1", kind: "Pod" });
    assert.deepEqual(await watched(pods.watch() as never), { ...POD, metadata: METADATA });
  });

  it("are those of `drop` besides, not instead", async () => {
    for (const drop of [[], ["spec"], ["spec", "status"]]) {
      const { spec: _, status, ...rest } = { ...POD, metadata: METADATA };
      const pods = cluster.resource("v1/pods", { drop });
      const expected = drop.length === 0
        ? { ...POD, metadata: METADATA }
        : { ...rest, ...(drop.length === 1 && { status }) };
      assert.deepEqual((await pods.list()).items[0], { ...expected, apiVersion: "v1", kind: "Pod" });
      assert.deepEqual(await watched(pods.watch() as never), expected);
    }
  });

  it('is nothing with `keep: "everything"`', async () => {
    const pods = cluster.resource<Pod>("v1/pods", { keep: "everything" });
    assert.deepEqual((await pods.list()).items[0], { ...POD, apiVersion: "v1", kind: "Pod" });
    assert.deepEqual(await watched(pods.watch() as never), POD);
    const typed = cluster.resource(resourceOf<Pod>("v1/pods"), { keep: "everything" });
    assert.equal((await typed.list()).items[0].spec?.nodeName, "node-1");
    assert.throws(() => cluster.resource("v1/pods", { keep: "all" as "everything" }), /keep.*"all"/);
  });

  it("is kubectl's last-applied annotation, too, where anything is: it has the whole object in it", async () => {
    const pods = cluster.resource("v1/pods", { keep: "everything", drop: ["status"] });
    const { status: _, ...rest } = POD;
    const metadata = { ...POD.metadata, annotations: METADATA.annotations };
    assert.deepEqual(await watched(pods.watch() as never), { ...rest, metadata });
    const typed = cluster.resource(resourceOf<Pod>("v1/pods"), { keep: "everything", drop: ["status"] });
    // @ts-expect-error -- dropped
    assert.equal((await typed.list()).items[0].status, undefined);
  });

  it("is not left out of a single object, so that it can be replaced", async () => {
    assert.deepEqual(await cluster.resource<Pod>("v1/pods").get("web-1"), POD);
  });

  it("is typed away where the type of the objects is known from the resource", async () => {
    const pods = cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["spec.volumes[].secret", "status"] });
    const [item] = (await pods.list()).items;
    assert.deepEqual(item.spec, { nodeName: "node-1", volumes: [{ name: "keys" }, { name: "tmp" }] });
    assert.equal(item.spec?.volumes?.[0].name, "keys");
    // @ts-expect-error -- dropped
    assert.equal(item.spec?.volumes?.[0].secret, undefined);
    // @ts-expect-error -- dropped
    assert.equal(item.status, undefined);
    const [slim] = (await cluster.resource(resourceOf<Pod>("v1/pods")).list()).items;
    const pod: Pod = slim;
    assert.equal(pod.metadata?.managedFields, undefined);
    assert.equal(slim.metadata?.name, "web-1");
  });

  it("is typed away too where it is more than by default", async () => {
    const pods = cluster.resource(resourceOf<Pod>("v1/pods"), {
      drop: ["metadata.managedFields", "spec.volumes"],
    });
    const [item] = (await pods.list()).items;
    assert.equal(item.spec?.nodeName, "node-1");
    // @ts-expect-error -- dropped
    assert.equal(item.spec?.volumes, undefined);
    // @ts-expect-error -- dropped by default
    assert.equal(item.metadata?.managedFields, undefined);
  });

  it("is typed away of what is kept", async () => {
    const pods = cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ["spec.nodeName"] });
    const [item] = (await pods.list()).items;
    assert.deepEqual(item, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: METADATA,
      spec: { nodeName: "node-1" },
    });
    assert.equal(item.spec?.nodeName, "node-1");
    // @ts-expect-error -- not kept
    assert.equal(item.spec?.volumes, undefined);
    // @ts-expect-error -- not kept
    assert.equal(item.status, undefined);
  });

  it("is typed away of what a schema says", async () => {
    const schema: Schema<Pod> = {
      "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) },
    };
    const [item] = (await cluster.resource("v1/pods", { schema, drop: ["spec.volumes"] }).list()).items;
    // @ts-expect-error -- dropped
    assert.equal(item.spec?.volumes, undefined);
    assert.equal(item.spec?.nodeName, "node-1");
  });

  it("leaves the type alone where the paths are known at run time only", async () => {
    const drop: string[] = ["status"];
    const [item] = (await cluster.resource(resourceOf<Pod>("v1/pods"), { drop }).list()).items;
    assert.equal(item.spec?.nodeName, "node-1");
    assert.equal(item.status, undefined);
  });

  it("has types of its own", () => {
    const pod: Dropped<Pod, "spec.volumes" | "status.phase"> = { spec: { nodeName: "a" }, status: {} };
    // A type without a field stands for the type with it, where the field may be absent.
    const whole: Pod = pod;
    const kept: Kept<Pod, "status.phase"> = { kind: "Pod", metadata: {}, status: { phase: "Running" } };
    assert.equal(whole.spec?.nodeName, "a");
    assert.equal(kept.status?.phase, "Running");
  });

  it("is refused at once where a path is wrong, or of what a cache needs", () => {
    assert.throws(
      () => cluster.resource("v1/pods", { drop: ["spec..volumes"] }),
      /Cannot read the path "spec..volumes" at character 5/,
    );
    assert.throws(
      () => cluster.resource("v1/pods", { drop: ["metadata.name"] }),
      /a cache needs metadata.name/,
    );
  });
});
