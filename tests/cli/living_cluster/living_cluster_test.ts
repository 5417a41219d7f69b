import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../../../src/util/clock.ts";
import type { ClusterWriter } from "../../../src/cli/living_cluster/context.ts";
import { LivingCluster } from "../../../src/cli/living_cluster/living_cluster.ts";
import type { ClusterObject } from "../../../src/cli/living_cluster/objects.ts";
import { seededRandom } from "@listwatch/cache/testing";

/**
 * A clock that runs all timers in one turn. FakeClock yields between timers, which takes minutes for the tens of
 * thousands of timers of an hour; the living cluster is synchronous and needs no turns.
 */
class StepClock implements Clock {
  #nowMs: number;
  readonly #timers = new Map<number, { readonly dueMs: number; readonly callback: () => void }>();
  #nextId = 1;

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimeout(callback: () => void, ms: number): number {
    this.#timers.set(this.#nextId, { dueMs: this.#nowMs + ms, callback });
    return this.#nextId++;
  }

  clearTimeout(id: unknown): void {
    this.#timers.delete(id as number);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      let next: number | undefined;
      let nextMs = Infinity;
      for (const [id, { dueMs }] of this.#timers) if (dueMs < nextMs) [next, nextMs] = [id, dueMs];
      if (next === undefined || nextMs > untilMs) break;
      const timer = this.#timers.get(next);
      this.#timers.delete(next);
      this.#nowMs = nextMs;
      timer?.callback();
    }
    this.#nowMs = untilMs;
  }
}

interface Write {
  readonly verb: "create" | "update" | "delete";
  readonly key: string;
}

/** Records the objects, and refuses writes that an API server would refuse. */
class RecordingWriter implements ClusterWriter {
  readonly objects = new Map<string, ClusterObject>();
  readonly writes: Write[] = [];

  create(object: ClusterObject): void {
    const key = this.#log("create", object);
    assert.ok(!this.objects.has(key), `${key} is created twice`);
    for (const owner of object.metadata.ownerReferences ?? []) {
      const found = [...this.objects.values()].find((o) => o.metadata.uid === owner.uid);
      assert.equal(found?.metadata.name, owner.name, `${key} has an owner that does not exist`);
    }
    this.objects.set(key, object);
  }

  update(object: ClusterObject): void {
    const key = this.#log("update", object);
    const old = this.objects.get(key);
    assert.ok(old, `${key} is updated and does not exist`);
    assert.equal(object.metadata.uid, old.metadata.uid);
    assert.equal(object.metadata.creationTimestamp, old.metadata.creationTimestamp);
    this.objects.set(key, object);
  }

  delete(object: ClusterObject): void {
    const key = this.#log("delete", object);
    assert.ok(this.objects.delete(key), `${key} is deleted and does not exist`);
  }

  all(kind: string): ClusterObject[] {
    return [...this.objects.values()].filter((object) => object.kind === kind);
  }

  #log(verb: Write["verb"], object: ClusterObject): string {
    const key = `${object.kind}/${object.metadata.namespace ?? ""}/${object.metadata.name}`;
    this.writes.push({ verb, key });
    return key;
  }
}

interface PodParts {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly ready: boolean; readonly restartCount: number }[];
  };
}

function parts(pod: ClusterObject): PodParts {
  return pod as unknown as PodParts;
}

function wantedReplicas(object: ClusterObject): number {
  return (object.spec as { readonly replicas: number }).replicas;
}

function livingPods(writer: RecordingWriter, app: ClusterObject): ClusterObject[] {
  return writer.all("Pod").filter((pod) =>
    pod.metadata.namespace === app.metadata.namespace && pod.metadata.labels?.app === app.metadata.name &&
    !pod.metadata.deletionTimestamp
  );
}

async function live(seed: number, forMs: number): Promise<RecordingWriter> {
  const clock = new StepClock(Date.UTC(2026, 0, 1));
  const writer = new RecordingWriter();
  const cluster = new LivingCluster(writer, { clock, random: seededRandom(seed) });
  const controller = new AbortController();
  const running = cluster.run(controller.signal);
  clock.advance(forMs);
  controller.abort();
  await running;
  assert.equal(clock.pendingTimers, 0, "a timer is left after the end");
  return writer;
}

describe("LivingCluster", () => {
  it("starts with about 300 objects, all pods ready", () => {
    const writer = new RecordingWriter();
    const clock = new StepClock(Date.UTC(2026, 0, 1));
    const cluster = new LivingCluster(writer, { clock, random: seededRandom(1) });
    cluster.populate();
    cluster.populate();
    assert.equal(writer.objects.size, writer.writes.length);
    assert.ok(writer.objects.size > 250 && writer.objects.size < 320, `${writer.objects.size} objects`);
    assert.ok(writer.all("Pod").length > 60);
    for (const pod of writer.all("Pod")) {
      assert.equal(parts(pod).status.phase, "Running");
      assert.ok(parts(pod).spec.nodeName);
    }
    for (const app of writer.all("Deployment")) {
      assert.equal(livingPods(writer, app).length, wantedReplicas(app));
    }
    assert.equal(clock.pendingTimers, 0);
  });

  it("keeps about 300 objects for an hour, with a few changes a second", async () => {
    for (const seed of [1, 2, 3]) {
      const writer = await live(seed, 3_600_000);
      assert.ok(
        writer.objects.size > 260 && writer.objects.size < 340,
        `seed ${seed}: ${writer.objects.size} objects`,
      );
      const perSecond = writer.writes.length / 3_600;
      assert.ok(perSecond > 2 && perSecond < 10, `seed ${seed}: ${perSecond} writes per second`);
    }
  });

  it("keeps the pods of each deployment near its replicas, through crashes, rollouts and drained nodes", async () => {
    for (const seed of [4, 5]) {
      const writer = await live(seed, 1_800_000);
      let apart = 0;
      for (const app of writer.all("Deployment")) {
        const difference = livingPods(writer, app).length - wantedReplicas(app);
        assert.ok(
          Math.abs(difference) <= 3,
          `seed ${seed}: ${app.metadata.name} is ${difference} from what it wants`,
        );
        if (difference !== 0) apart++;
      }
      assert.ok(apart <= 6, `seed ${seed}: ${apart} deployments are not where they want to be`);
    }
  });

  it("shows every stage of a pod's life", async () => {
    const seen = new Set<string>();
    class StageWriter extends RecordingWriter {
      override update(object: ClusterObject): void {
        super.update(object);
        if (object.kind === "Pod") seen.add(stage(object));
      }
      override create(object: ClusterObject): void {
        super.create(object);
        if (object.kind === "Pod") seen.add(stage(object));
      }
    }
    function stage(pod: ClusterObject): string {
      if (pod.metadata.deletionTimestamp) return "terminating";
      const text = JSON.stringify(pod.status);
      if (text.includes("CrashLoopBackOff")) return "crashed";
      if (text.includes("ContainerCreating")) return "creating";
      if (parts(pod).spec.nodeName === undefined) return "pending";
      return parts(pod).status.containerStatuses?.[0].ready ? "ready" : "starting";
    }
    const clock = new StepClock();
    const cluster = new LivingCluster(new StageWriter(), { clock, random: seededRandom(6) });
    const controller = new AbortController();
    const running = cluster.run(controller.signal);
    clock.advance(300_000);
    controller.abort();
    await running;
    assert.deepEqual([...seen].sort(), [
      "crashed",
      "creating",
      "pending",
      "ready",
      "starting",
      "terminating",
    ]);
  });

  it("gives every pod its own address and an existing node", async () => {
    const writer = await live(7, 7_200_000);
    const addresses = writer.all("Pod").map((pod) => parts(pod).status.podIP).filter((ip) =>
      ip !== undefined
    );
    assert.equal(new Set(addresses).size, addresses.length);
    const nodes = new Set(writer.all("Node").map((node) => node.metadata.name));
    for (const pod of writer.all("Pod")) {
      const { nodeName } = parts(pod).spec;
      assert.ok(nodeName === undefined || nodes.has(nodeName));
    }
  });

  it("is equal for equal seeds, and differs for different seeds", async () => {
    const [a, b, c] = [await live(8, 60_000), await live(8, 60_000), await live(9, 60_000)];
    assert.deepEqual(a.writes, b.writes);
    assert.notDeepEqual(a.writes, c.writes);
  });

  it("rejects when a write fails, and leaves no timer", async () => {
    const clock = new StepClock();
    const writer = new RecordingWriter();
    const cluster = new LivingCluster(writer, { clock, random: seededRandom(1) });
    cluster.populate();
    writer.update = () => {
      throw new Error("the disk is full");
    };
    const running = assert.rejects(cluster.run(new AbortController().signal), /the disk is full/);
    clock.advance(60_000);
    await running;
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends at once when the signal is already aborted", async () => {
    const clock = new StepClock();
    const cluster = new LivingCluster(new RecordingWriter(), { clock, random: seededRandom(1) });
    await cluster.run(AbortSignal.abort());
    assert.equal(clock.pendingTimers, 0);
  });
});
