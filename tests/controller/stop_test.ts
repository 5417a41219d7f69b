import { type KubernetesObject, newCluster, silentLogger } from "@listwatch/cache";
import {
  type ControllerDefinition,
  defineController,
  LeadershipLostError,
  Manager,
  type ManagerOptions,
} from "@listwatch/cache/controller";
import { answerStatus, delayRequest, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Lease } from "../../src/controller/leader_election.ts";
import { CountingSignal } from "../counting_signal.ts";
import { type Rig, SlowWatches, startRig, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

interface Waiting {
  readonly rig: Rig;
  /** The names of the objects whose reconcile began, and what ends it. */
  readonly began: Map<string, () => void>;
}

/** A manager with one worker, whose reconciles take as long as the test says, whatever their signals say. */
function startWaiting(options: Partial<ManagerOptions> = {}): Waiting {
  const began = new Map<string, () => void>();
  const rig = startRig((cluster) =>
    defineController({
      name: "widgets",
      for: cluster.resource<KubernetesObject>(WIDGETS),
      reconcile: ({ metadata }) => new Promise<void>((end) => void began.set(metadata!.name!, end)),
    }), options);
  return { rig, began };
}

const problems = ({ lines }: Rig) => lines.filter((line) => !line.startsWith("info"));

describe("Manager.stop", () => {
  it("lets a reconcile end that runs, and begins no other", async () => {
    const { rig, began } = startWaiting();
    await using _ = rig;
    for (const name of ["a", "b", "c"]) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.until(() => began.size === 1);
    let hasEnded = false;
    void rig.manager.stop().then(() => hasEnded = true);
    await rig.clock.advance(1_000);
    assert.equal(hasEnded, false);
    began.get("a")!();
    await rig.clock.advance(1_100);
    assert.deepEqual([...began.keys()], ["a"]);
    assert.deepEqual([hasEnded, rig.manager.pending], [true, 0]);
    assert.deepEqual(problems(rig), []);
  });

  it("names what ignores its signal, and nothing that has ended before", async () => {
    const { rig, began } = startWaiting({ drainMs: 2_000 });
    await using _ = rig;
    for (const name of ["a", "b", "c"]) rig.server.create(WIDGETS, widget(name, "red"));
    for (const name of ["a", "b"]) {
      await rig.until(() => began.has(name));
      began.get(name)!();
    }
    await rig.until(() => began.has("c"));
    let hasEnded = false;
    void rig.manager.stop().then(() => hasEnded = true);
    await rig.clock.advance(5_000);
    assert.equal(hasEnded, true);
    assert.deepEqual(problems(rig), [
      "warn reconciles still run after 2000 ms: their signals are aborted",
      "error the reconcile of shop/c ignores its signal: its worker takes other keys",
    ]);
  });

  it("resolves when the lease was given back, and not before", async () => {
    const { rig } = startWaiting({ leader: { lease: "widgets", namespace: "shop" } });
    await using _ = rig;
    await rig.until(() => rig.manager.status().isLeading);
    rig.server.intercept(delayRequest(700), { match: ({ method }) => method === "PUT" });
    let hasEnded = false;
    void rig.manager.stop().then(() => hasEnded = true);
    await rig.clock.advance(600);
    assert.equal(hasEnded, false);
    await rig.clock.advance(200);
    const lease = rig.server.get<Lease>("coordination.k8s.io/v1/leases", "shop/widgets");
    assert.deepEqual([hasEnded, lease?.spec?.holderIdentity], [true, ""]);
  });

  it("leaves no timer, whether reconciles have ended, end at their signals or ignore them", async () => {
    for (const how of ["have ended", "end", "ignore them"]) {
      const clock = new FakeClock();
      const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
      let count = 0;
      const controllers = ["one", "other"].map((name) =>
        defineController({
          name,
          for: cluster.resource<KubernetesObject>(WIDGETS),
          async reconcile(_, { signal }) {
            count++;
            if (how === "have ended" || name === "other") return;
            await new Promise<void>((end) => signal.addEventListener("abort", () => how === "end" && end()));
          },
        })
      );
      const manager = new Manager(cluster, { controllers, clock, drainMs: 100, logger: silentLogger });
      const timers: number[] = [];
      void manager.run().then(() => timers.push(clock.pendingTimers));
      server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_000);
      assert.equal(count, 2);
      server.close();
      void manager.stop();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(how === "ignore them" ? 2_100 : 100);
      assert.deepEqual(timers, [0], how);
    }
  });

  it("leaves no listener on the signal with which the manager runs", async () => {
    const { rig } = startWaiting();
    await using _ = rig;
    const { cluster, clock } = rig;
    const manager = new Manager(cluster, {
      controllers: [
        defineController({
          name: "others",
          for: cluster.resource<KubernetesObject>(WIDGETS),
          reconcile: () => {},
        }),
      ],
      clock,
      logger: silentLogger,
    });
    const signal = new CountingSignal();
    void manager.run(signal.signal);
    await clock.advance(100);
    const stopped = manager.stop();
    await clock.advance(1_000);
    await stopped;
    assert.equal(signal.listeners, 0);
  });

  it("ends the wait of a key for its own writes, which is no failure", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const watches = new SlowWatches(server, (path) => path.endsWith("/configmaps"));
    const define = (cluster: Rig["cluster"]): ControllerDefinition =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        owns: { maps: cluster.resource("v1/configmaps") },
        async reconcile({ metadata }, { maps }) {
          await maps.createOrUpdate(
            "m",
            (map) => ({ ...map, metadata: { ...map.metadata, ...metadata?.labels } }),
          );
        },
      });
    await using rig = startRig(define, { drainMs: 100 }, { server, clock, fetch: () => watches.fetch });
    await rig.until(() => rig.manager.status().isLeading);
    watches.hold();
    server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => server.get("v1/configmaps", "shop/m") !== undefined);
    server.patch(WIDGETS, "shop/a", { metadata: { annotations: { again: "1" } } });
    await clock.advance(50);
    assert.equal(rig.manager.pending, 1); // it waits for the ConfigMap
    let hasEnded = false;
    void rig.manager.stop().then(() => hasEnded = true);
    await clock.advance(3_000);
    assert.equal(hasEnded, true);
    assert.deepEqual(problems(rig), ["warn reconciles still run after 100 ms: their signals are aborted"]);
    watches.release();
    server.close();
  });
});

describe("Manager.pending", () => {
  it("counts keys that are reconciled, wait or are to be tried again, and notifications", async () => {
    const counts: number[] = [];
    const began = new Map<string, () => void>();
    await using rig: Rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        watches: {
          maps: {
            resource: cluster.resource<KubernetesObject>("v1/configmaps"),
            keys: () => (counts.push(rig.manager.pending), []),
          },
        },
        reconcile({ metadata }) {
          if (metadata!.name === "bad") throw new Error("not yet");
          return new Promise<void>((end) => void began.set(metadata!.name!, end));
        },
      })
    );
    await rig.until(() => rig.manager.status().isLeading);
    assert.equal(rig.manager.pending, 0);
    rig.server.create(WIDGETS, widget("bad", "red"));
    await rig.clock.advance(1_000);
    assert.equal(rig.manager.pending, 1);
    for (const name of ["a", "b", "c"]) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.clock.advance(0);
    assert.deepEqual([[...began.keys()], rig.manager.pending], [["a"], 4]);
    await rig.clock.advance(5_000); // another try is due, and waits behind the others
    assert.equal(rig.manager.pending, 4);
    rig.server.closeWatches();
    for (const name of ["m", "n"]) {
      rig.server.create("v1/configmaps", { metadata: { name, namespace: "shop" } });
    }
    await rig.until(() => counts.length === 2);
    assert.deepEqual(counts, [5, 4]); // the notifications behind this one, and the keys
    for (const name of ["a", "b", "c"]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => began.has(name));
      began.get(name)!();
    }
    await rig.clock.advance(0);
    assert.equal(rig.manager.pending, 1);
    rig.server.delete(WIDGETS, "shop/bad");
    await rig.until(() => rig.manager.pending === 0, 100); // long before the next try
  });
});

describe("Manager.run", () => {
  const leader = { lease: "widgets", identity: "one" };
  const isRenewal = ({ method, path }: { method: string; path: string }) =>
    method === "PUT" && path.includes("leases");

  it("rejects when the lease is lost, and stops at once", async () => {
    const { rig, began } = startWaiting({ leader });
    await using _ = rig;
    for (const name of ["a", "b"]) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.until(() => began.size === 1);
    rig.server.intercept(answerStatus(503), { match: isRenewal });
    await rig.clock.advance(20_000);
    assert.ok(await rig.ended instanceof LeadershipLostError);
    assert.deepEqual([...began.keys()], ["a"]);
    const { isLeading, problems } = rig.manager.status();
    assert.deepEqual([isLeading, problems], [false, ["it has ended"]]);
  });

  it("lets no reconcile write in the turn in which a frozen process wakes up", async () => {
    const wakeup = Promise.withResolvers<void>();
    const errors: unknown[] = [];
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        owns: { maps: cluster.resource("v1/configmaps") },
        async reconcile(_, { maps }) {
          await maps.get("m"); // so that discovery is over
          await wakeup.promise;
          await maps.create({ metadata: { name: "m" } }).catch((error) => errors.push(error));
        },
      }), { leader });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => rig.manager.status().isLeading);
    await rig.clock.advance(100);
    rig.server.intercept(answerStatus(503), { match: isRenewal });
    wakeup.resolve();
    await rig.clock.jump(11_000);
    assert.equal(rig.server.get("v1/configmaps", "shop/m"), undefined);
    assert.ok(errors[0] instanceof LeadershipLostError, String(errors[0]));
    assert.ok(await rig.ended instanceof LeadershipLostError);
  });

  it("lets no reconcile write with credentials that come in that turn", async () => {
    let token = Promise.withResolvers<string>();
    token.resolve("early");
    const errors: unknown[] = [];
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    await using rig = startRig(
      (cluster) => {
        const maps = newCluster({
          server: "http://in-memory",
          fetch: server.fetch,
          token: () => token.promise,
          clock,
        }).resource("v1/configmaps");
        return defineController({
          name: "widgets",
          for: cluster.resource<KubernetesObject>(WIDGETS),
          owns: { maps },
          async reconcile(_, { maps }) {
            await maps.get("m"); // so that discovery is over
            token = Promise.withResolvers();
            await maps.create({ metadata: { name: "m" } }).catch((error) => errors.push(error));
          },
        });
      },
      { leader },
      { server, clock },
    );
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => rig.manager.status().isLeading);
    await rig.clock.advance(100);
    assert.equal(errors.length, 0);
    rig.server.intercept(answerStatus(503), { match: isRenewal });
    token.resolve("late");
    await rig.clock.jump(11_000);
    assert.equal(server.get("v1/configmaps", "shop/m"), undefined);
    assert.ok(errors[0] instanceof LeadershipLostError, String(errors[0]));
    assert.ok(await rig.ended instanceof LeadershipLostError);
    server.close();
  });
});
