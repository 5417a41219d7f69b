import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type BuiltSpecObject, FakeClock } from "@listwatch/cache/testing";
import { EMBEDDED_RESOURCES, EmbeddedCluster } from "../../../src/cli/embedded_cluster/embedded_cluster.ts";

const NOW_MS = Date.UTC(2026, 0, 20);
const RESOURCES = EMBEDDED_RESOURCES.map((name) => {
  const [resource, group] = name.split(".");
  return group === undefined ? `v1/${resource}` : `${group}/v1/${resource}`;
});

function newCluster(seed: number) {
  const clock = new FakeClock(NOW_MS);
  const cluster = new EmbeddedCluster({ clock, seed });
  const list = (resource: string) => cluster.server.list<BuiltSpecObject>(resource).items;
  return { clock, cluster, list };
}

/** Runs a cluster for a time, and calls `look` about every `stepMs`. */
async function live(seed: number, forMs: number, look: () => void = () => {}, stepMs = 2_000) {
  const made = newCluster(seed);
  const stop = new AbortController();
  const running = made.cluster.run(stop.signal);
  for (let ms = 0; ms < forMs; ms += stepMs) {
    // deno-lint-ignore no-await-in-loop -- one step after the other
    await made.clock.advance(stepMs);
    look.call(made);
  }
  stop.abort();
  await running;
  assert.equal(made.clock.pendingTimers, 0, "a timer is left after the end");
  return made;
}

function livingPods(pods: readonly BuiltSpecObject[], { metadata }: BuiltSpecObject): BuiltSpecObject[] {
  return pods.filter((pod) =>
    pod.metadata.namespace === metadata.namespace && pod.metadata.labels?.app === metadata.name &&
    !pod.metadata.deletionTimestamp
  );
}

describe("EmbeddedCluster", () => {
  it("starts with about 300 objects of days ago, of every default resource, and with all pods ready", () => {
    const { cluster, clock, list } = newCluster(1);
    const objects = RESOURCES.map((resource) => list(resource).length);
    assert.ok(objects.every((count) => count > 0), objects.join(" "));
    const total = objects.reduce((sum, count) => sum + count);
    assert.ok(total > 250 && total < 320, `${total} objects`);
    assert.ok(list("v1/pods").length > 60);
    for (const { metadata, spec, status } of list("v1/pods")) {
      assert.equal(status.phase, "Running");
      assert.ok(spec.nodeName);
      assert.ok(Date.parse(metadata.creationTimestamp!) < NOW_MS);
    }
    for (const app of list("apps/v1/deployments")) {
      assert.equal(app.status.readyReplicas, app.spec.replicas);
      assert.equal(livingPods(list("v1/pods"), app).length, app.spec.replicas);
    }
    assert.ok(NOW_MS - Date.parse(list("v1/nodes")[0].metadata.creationTimestamp!) > 5 * 24 * 3_600_000);
    assert.equal(clock.pendingTimers, 0);
    cluster.server.close();
  });

  it("has the fields without which the official clients of Python and Java refuse an object", async () => {
    const { list } = await live(1, 60_000);
    const requireAll = (object: object, names: string) => {
      for (const name of names.split(" ")) assert.ok(name in object, `${name} in ${JSON.stringify(object)}`);
    };
    for (const { status } of list("v1/pods")) {
      for (const container of status.containerStatuses ?? []) {
        requireAll(container, "image imageID name ready restartCount");
      }
    }
    for (const { status } of list("v1/nodes")) {
      requireAll(
        status.nodeInfo,
        "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID " +
          "operatingSystem osImage systemUUID",
      );
    }
    for (const { spec } of list("apps/v1/deployments")) requireAll(spec, "selector template");
    for (const event of list("v1/events")) requireAll(event, "involvedObject metadata");
  });

  it("keeps about 300 objects, owners, addresses and replicas in order, with a few changes a second", async () => {
    for (const seed of [1, 2]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { cluster: { server }, list } = await live(seed, 900_000);
      const total = RESOURCES.reduce((sum, resource) => sum + list(resource).length, 0);
      assert.ok(total > 260 && total < 340, `seed ${seed}: ${total} objects`);
      const perSecond = Number(server.resourceVersion) / 900;
      assert.ok(perSecond > 2 && perSecond < 10, `seed ${seed}: ${perSecond} writes per second`);
      const pods = list("v1/pods");
      const uids = new Set(list("apps/v1/replicasets").map(({ metadata }) => metadata.uid));
      const nodes = new Set(list("v1/nodes").map(({ metadata }) => metadata.name));
      for (const { metadata, spec } of pods) {
        assert.ok(uids.has(metadata.ownerReferences?.[0].uid), `seed ${seed}: ${metadata.name} has no owner`);
        assert.ok(spec.nodeName === undefined || nodes.has(spec.nodeName), `seed ${seed}: ${spec.nodeName}`);
      }
      const addresses = pods.map(({ status }) => status.podIP).filter((address) => address !== undefined);
      assert.equal(new Set(addresses).size, addresses.length);
      let apart = 0;
      for (const app of list("apps/v1/deployments")) {
        const difference = livingPods(pods, app).length - app.spec.replicas;
        assert.ok(
          Math.abs(difference) <= 3,
          `seed ${seed}: ${app.metadata.name} is ${difference} from its replicas`,
        );
        if (difference !== 0) apart++;
      }
      assert.ok(apart <= 6, `seed ${seed}: ${apart} deployments are not where they want to be`);
    }
  });

  it("shows every stage of a pod's life, and deployments that change", async () => {
    const seen = new Set<string>();
    await live(6, 300_000, function (this: ReturnType<typeof newCluster>) {
      for (const { metadata, spec, status } of this.list("v1/pods")) {
        const text = JSON.stringify(status);
        if (metadata.deletionTimestamp) seen.add("terminating");
        else if (text.includes("CrashLoopBackOff")) seen.add("crashed");
        else if (text.includes("ContainerCreating")) seen.add("creating");
        else if (spec.nodeName === undefined) seen.add("pending");
        else seen.add(status.containerStatuses[0].ready ? "ready" : "starting");
      }
      for (const { metadata } of this.list("apps/v1/deployments")) {
        if (metadata.generation! > 1) seen.add("changed");
      }
    }, 250);
    assert.deepEqual([...seen].sort(), [
      "changed",
      "crashed",
      "creating",
      "pending",
      "ready",
      "starting",
      "terminating",
    ]);
  });

  it("is equal for equal seeds, and differs for different seeds", async () => {
    const text = async (seed: number) => JSON.stringify((await live(seed, 60_000)).list("v1/pods"));
    const [a, b, c] = [await text(8), await text(8), await text(9)];
    assert.equal(a, b);
    assert.notEqual(a, c);
  });

  it("rejects when a write is refused, and leaves no timer", async () => {
    const { clock, cluster } = newCluster(1);
    cluster.server.patch = () => {
      throw new Error("the disk is full");
    };
    const running = assert.rejects(cluster.run(new AbortController().signal), /the disk is full/);
    await clock.advance(60_000);
    await running;
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends at once when the signal is already aborted", async () => {
    const { clock, cluster } = newCluster(1);
    await cluster.run(AbortSignal.abort());
    assert.equal(clock.pendingTimers, 0);
  });
});
