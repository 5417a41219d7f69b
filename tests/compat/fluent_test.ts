import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import {
  type Filters,
  type GenericClass,
  type K8sFunction,
  newK8s,
  RegisterKind,
  WatcherEvent,
  type WatchPhase,
} from "@listwatch/cache/compat/fluent";
import { answerStatus, FakeClock, InMemoryApiServer, pod, refuseConnection } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";

class V1Pod {
  metadata?: { name?: string; namespace?: string; uid?: string; labels?: Record<string, string> };
}

/** A server, `K8s` for it, and the time. */
class World {
  readonly clock = new FakeClock(1_000_000);
  readonly server = new InMemoryApiServer({
    clock: this.clock,
    customResources: [WIDGET_RESOURCE],
  });
  readonly logger = new LogRecorder();
  readonly calls: string[] = [];
  readonly K8s: K8sFunction = newK8s({
    cluster: () => newCluster({ server: "http://in-memory", fetch: this.server.fetch, clock: this.clock }),
    clock: this.clock,
    logger: this.logger,
  });

  /** A callback that records its calls. */
  readonly record = (object: V1Pod, phase: WatchPhase): void => {
    this.calls.push(`${phase} ${object.metadata?.name}`);
  };

  /** The calls since the last time. */
  async received(): Promise<string[]> {
    await this.clock.advance(0);
    return this.calls.splice(0);
  }

  create(name: string, labels: Record<string, string> = {}): void {
    this.server.create("v1/pods", pod(name, { namespace: "shop", labels }));
  }

  label(name: string, labels: Record<string, string>): void {
    const before = this.server.get<V1Pod>("v1/pods", `shop/${name}`)!;
    this.server.update("v1/pods", { ...before, metadata: { ...before.metadata, labels } });
  }

  delete(name: string): void {
    this.server.delete("v1/pods", `shop/${name}`);
  }

  [Symbol.dispose](): void {
    this.server.close();
  }
}

/** A callback that fails as often as it is set to. */
class Failing {
  failures = 0;
  readonly calls: string[] = [];
  readonly call = (object: V1Pod, phase: WatchPhase): Promise<void> => {
    this.calls.push(`${phase} ${object.metadata?.name} ${object.metadata?.labels?.v ?? "1"}`);
    return this.failures-- > 0 ? Promise.reject(new Error("not now")) : Promise.resolve();
  };
}

describe("K8s(kind).Watch", () => {
  it("calls back for what is there, then for each change", async () => {
    using world = new World();
    world.create("a");
    const watcher = world.K8s(V1Pod).Watch(world.record);
    assert.deepEqual(await world.received(), [], "not before it is started");
    const controller = await watcher.start();
    assert.equal(await watcher.start(), controller, "it starts once");
    world.create("b");
    world.label("a", { v: "2" });
    world.delete("b");
    assert.deepEqual(await world.received(), ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"]);
    controller.abort();
    world.create("c");
    assert.deepEqual(await world.received(), []);
    assert.ok(watcher.isClosed);
    assert.equal(world.server.openWatches, 0);
  });

  it("selects by namespace, labels, fields and name", async () => {
    using world = new World();
    const watchers = [
      world.K8s(V1Pod).InNamespace("shop").WithLabel("app", "web").WithLabel("tier").Watch(world.record),
      world.K8s(V1Pod, { name: "a", namespace: "shop", labels: { app: "web" } }).Watch(world.record),
      world.K8s(V1Pod).WithField("spec.nodeName", "node-1").Watch(world.record),
    ];
    await Promise.all(watchers.map((watcher) => watcher.start()));
    const asked = world.server.requests.map((
      { path, query },
    ) => [path, query.labelSelector, query.fieldSelector]);
    assert.deepEqual(asked, [
      ["/api/v1/namespaces/shop/pods", "app=web,tier", undefined],
      ["/api/v1/namespaces/shop/pods", "app=web", "metadata.name=a"],
      ["/api/v1/pods", undefined, "spec.nodeName=node-1"],
    ]);
    for (const watcher of watchers) watcher.close();
    assert.throws(() => world.K8s(V1Pod, { namespace: "shop" }).InNamespace("other"), /"shop" is selected/);
  });

  it("shares one watch among the watchers of the same objects, until the last one is closed", async () => {
    using world = new World();
    world.create("a");
    const first = world.K8s(V1Pod).WithLabel("x").WithLabel("y");
    world.label("a", { x: "", y: "" });
    const watchers = [
      first.Watch(world.record),
      world.K8s(V1Pod, { labels: { y: "", x: "" } }).Watch(world.record),
    ];
    await Promise.all(watchers.map((watcher) => watcher.start()));
    assert.deepEqual(await world.received(), ["ADDED a", "ADDED a"]);
    const late = first.Watch(world.record);
    await late.start();
    assert.deepEqual(await world.received(), ["ADDED a"]);
    assert.equal(world.server.requests.length, 1);
    watchers[0].close();
    watchers[1].close();
    world.delete("a");
    assert.deepEqual(await world.received(), ["DELETED a"]);
    assert.equal(world.server.openWatches, 1);
    await late[Symbol.asyncDispose]();
    assert.equal(world.server.openWatches, 0);
    assert.equal(world.clock.pendingTimers, 0);
    const again = first.Watch(world.record);
    await again.start();
    assert.equal(world.server.openWatches, 1);
    again.close();
  });

  it("reports another object of the same name as a delete and an add", async () => {
    using world = new World();
    world.create("a");
    const uids: (string | undefined)[] = [];
    const watcher = world.K8s(V1Pod).Watch((object, phase) => {
      uids.push(object.metadata?.uid);
      world.record(object, phase);
    });
    await watcher.start();
    world.server.intercept(answerStatus(410), { match: ({ isWatch }) => isWatch, times: 1 });
    world.server.closeWatches();
    world.delete("a");
    world.create("a");
    world.server.compact();
    await world.clock.advance(60_000);
    assert.deepEqual(await world.received(), ["ADDED a", "DELETED a", "ADDED a"]);
    assert.equal(uids[0], uids[1]);
    assert.notEqual(uids[1], uids[2]);
    watcher.close();
  });

  it("lets a callback close its watcher", async () => {
    using world = new World();
    for (const name of ["a", "b"]) world.create(name);
    const watcher = world.K8s(V1Pod).Watch((object, phase) => {
      world.record(object, phase);
      watcher.close();
    });
    await watcher.start();
    assert.deepEqual(await world.received(), ["ADDED a"]);
    assert.equal(world.server.openWatches, 0);
  });

  it("lets a listener close its watcher", async () => {
    using world = new World();
    const first = world.K8s(V1Pod).Watch(() => {});
    await first.start();
    await world.received();
    const second = world.K8s(V1Pod).Watch(world.record);
    second.events.on(WatcherEvent.CONNECT, () => second.close());
    await second.start();
    await first[Symbol.asyncDispose]();
    await world.received();
    assert.equal(world.server.openWatches, 0);
  });

  it("starts once, and not after it was closed", async () => {
    using world = new World();
    const watcher = world.K8s(V1Pod).Watch(world.record);
    const [one, other] = await Promise.all([watcher.start(), watcher.start()]);
    assert.equal(one, other);
    assert.equal(world.server.openWatches, 1);
    watcher.close();
    const closed = world.K8s(V1Pod).Watch(world.record);
    closed.close();
    assert.equal((await closed.start()).signal.aborted, true);
    await world.received();
    assert.equal(world.server.openWatches, 0);
  });
});

describe("K8s(kind).Watch's callback", () => {
  it("is awaited before its next call", async () => {
    using world = new World();
    for (const name of ["a", "b"]) world.create(name);
    const waiting: (() => void)[] = [];
    const watcher = world.K8s(V1Pod).Watch((object, phase) => {
      world.record(object, phase);
      return new Promise<void>((resolve) => waiting.push(resolve));
    });
    await watcher.start();
    assert.deepEqual(await world.received(), ["ADDED a"]);
    waiting.shift()!();
    assert.deepEqual(await world.received(), ["ADDED b"]);
    watcher.close();
    waiting.shift()!();
  });

  it("is called again when it fails, later each time, while others are not held up", async () => {
    using world = new World();
    const failing = new Failing();
    failing.failures = 3;
    const errors: unknown[] = [];
    const watcher = world.K8s(V1Pod).Watch(failing.call);
    watcher.events.on(WatcherEvent.DATA_ERROR, (error) => errors.push(error.message));
    world.create("a");
    await watcher.start();
    await world.received();
    assert.deepEqual(failing.calls, ["ADDED a 1"]);
    await world.clock.advance(999);
    assert.equal(failing.calls.length, 1);
    await world.clock.advance(1);
    assert.equal(failing.calls.length, 2);
    await world.clock.advance(2_000);
    assert.equal(failing.calls.length, 3);
    world.create("b");
    await world.received();
    assert.deepEqual(failing.calls.slice(3), ["ADDED b 1"]);
    await world.clock.advance(4_000);
    await world.clock.advance(600_000);
    assert.deepEqual(failing.calls.slice(4), ["ADDED a 1"]);
    assert.deepEqual(errors, ["not now", "not now", "not now"]);
    assert.equal(world.logger.of("warn").length, 3);
    watcher.close();
  });

  const cases = [
    {
      title: "an object that has changed since is still an added one, as it is then",
      change: (world: World) => world.label("a", { v: "2" }),
      calls: ["ADDED a 1", "ADDED a 2"],
    },
    {
      title: "an object that was deleted since is a deleted one",
      change: (world: World) => world.delete("a"),
      calls: ["ADDED a 1", "DELETED a 1"],
    },
  ];
  for (const { title, change, calls } of cases) {
    it(`receives after a failure what is true then: ${title}`, async () => {
      using world = new World();
      const failing = new Failing();
      failing.failures = 1;
      world.create("a");
      const watcher = world.K8s(V1Pod).Watch(failing.call);
      await watcher.start();
      await world.received();
      change(world);
      await world.received();
      await world.clock.advance(600_000);
      assert.deepEqual(failing.calls, calls);
      watcher.close();
    });
  }

  it("receives a delete that failed before what was created since", async () => {
    using world = new World();
    const failing = new Failing();
    world.create("a");
    const watcher = world.K8s(V1Pod).Watch(failing.call);
    await watcher.start();
    await world.received();
    failing.failures = 2;
    world.delete("a");
    await world.received();
    world.server.create("v1/pods", pod("a", { namespace: "shop", labels: { v: "2" } }));
    await world.received();
    world.label("a", { v: "3" });
    await world.received();
    assert.deepEqual(failing.calls, ["ADDED a 1", "DELETED a 1", "DELETED a 1", "DELETED a 1", "ADDED a 3"]);
    watcher.close();
  });

  it("is called no more often than `callbackRetryMax` allows, and not after a close", async () => {
    using world = new World();
    const failing = new Failing();
    failing.failures = Infinity;
    world.create("a");
    const watcher = world.K8s(V1Pod).Watch(failing.call, { callbackRetryMax: 2, callbackRetryDelaySec: 10 });
    await watcher.start();
    await world.received();
    await world.clock.advance(600_000);
    assert.equal(failing.calls.length, 3);
    world.label("a", { v: "2" });
    await world.received();
    assert.equal(failing.calls.length, 4);
    watcher.close();
    await world.clock.advance(600_000);
    assert.equal(failing.calls.length, 4);
    assert.equal(world.clock.pendingTimers, 0);
  });
});

describe("Watcher.events", () => {
  it("report connections, changes, failed tries and the end", async () => {
    using world = new World();
    world.create("a");
    const seen: string[] = [];
    const watcher = world.K8s(V1Pod).InNamespace("shop").Watch(() => {});
    const { events } = watcher;
    events.on(WatcherEvent.CONNECT, (path) => seen.push(`connect ${path}`));
    events.on(WatcherEvent.DATA, (object, phase) => seen.push(`data ${phase} ${object.metadata.name}`));
    events.on(WatcherEvent.WATCH_ERROR, (error) => seen.push(`refused ${error.httpStatus}`));
    events.on(WatcherEvent.NETWORK_ERROR, (error) => seen.push(`network ${error.reason}`));
    events.on(WatcherEvent.RECONNECT, (count) => seen.push(`reconnect ${count}`));
    events.on(WatcherEvent.ABORT, () => seen.push("abort"));
    await watcher.start();
    await world.received();
    assert.deepEqual(seen.splice(0).sort(), ["connect /api/v1/namespaces/shop/pods", "data ADDED a"]);
    let tries = 0;
    const [away, broken] = [refuseConnection(), answerStatus(500)];
    // A streamed list that is refused is followed by a list at once.
    world.server.intercept((...call) => (tries++ === 0 ? away : broken)(...call), { times: 3 });
    world.server.closeWatches();
    await world.clock.advance(120_000);
    assert.deepEqual(seen.splice(0), [
      "network ConnectionRefused",
      "reconnect 1",
      "refused 500",
      "reconnect 2",
      "connect /api/v1/namespaces/shop/pods",
    ]);
    watcher.close();
    assert.deepEqual(seen, ["abort"]);
  });

  it("report the limit of failed tries, at which the watcher is closed", async () => {
    using world = new World();
    world.server.intercept(answerStatus(403));
    const watcher = world.K8s(V1Pod).Watch(() => {}, { resyncFailureMax: 2 });
    const seen: string[] = [];
    watcher.events.once(WatcherEvent.GIVE_UP, (error) => seen.push(error.message));
    await watcher.start(); // as upstream, the first failure is no rejection
    assert.ok(!watcher.isClosed);
    await world.clock.advance(600_000);
    assert.deepEqual(seen, ["Cannot watch v1/pods: 3 tries have failed, and the limit is 2"]);
    assert.ok(watcher.isClosed);
    assert.equal(world.clock.pendingTimers, 0);
  });

  it("report no failure to a watcher that was before it came", async () => {
    using world = new World();
    const heal = world.server.intercept(answerStatus(500));
    await using first = world.K8s(V1Pod).Watch(() => {});
    await first.start();
    await using second = world.K8s(V1Pod).Watch(() => {});
    const failures: unknown[] = [];
    second.events.on(WatcherEvent.WATCH_ERROR, (error) => failures.push(error));
    const started = second.start();
    await world.clock.advance(0);
    assert.equal(failures.length, 0);
    heal();
    await world.clock.advance(60_000);
    await started;
    assert.equal(failures.length, 0);
    const closed = [first, second].map((watcher) => watcher[Symbol.asyncDispose]());
    await world.clock.advance(0);
    await Promise.all(closed);
  });

  it("release the informer of a watcher that comes when the limit is passed already", async () => {
    using world = new World();
    const heal = world.server.intercept(answerStatus(500));
    const first = world.K8s(V1Pod).Watch(() => {});
    await first.start();
    await world.clock.advance(120_000);
    const second = world.K8s(V1Pod).Watch(() => {}, { resyncFailureMax: 1 });
    const started = second.start();
    await world.clock.advance(120_000);
    await started;
    assert.ok(second.isClosed);
    heal();
    await world.clock.advance(120_000);
    assert.equal(world.server.openWatches, 1);
    await first[Symbol.asyncDispose]();
    await world.clock.advance(0);
    assert.equal(world.server.openWatches, 0);
    assert.equal(world.clock.pendingTimers, 0);
  });

  it("call a listener once, or until it is removed, and log what it throws", async () => {
    using world = new World();
    const watcher = world.K8s(V1Pod).Watch(() => {});
    const seen: string[] = [];
    const listener = () => seen.push("on");
    watcher.events.on(WatcherEvent.DATA, listener).once(WatcherEvent.DATA, () => seen.push("once"));
    watcher.events.addListener(WatcherEvent.DATA, () => {
      throw new Error("broken");
    });
    await watcher.start();
    world.create("a");
    await world.received();
    watcher.events.removeListener(WatcherEvent.DATA, listener);
    world.create("b");
    await world.received();
    watcher.events.removeAllListeners();
    world.create("c");
    await world.received();
    assert.deepEqual(seen, ["on", "once"]);
    assert.deepEqual(world.logger.of("error"), Array(2).fill('error: a listener for "data" threw: broken'));
    watcher.close();
  });
});

describe("RegisterKind", () => {
  /** A class of that name. */
  const named = (name: string): GenericClass => ({ [name]: class {} })[name];
  const pathOf = async (world: World, model: GenericClass, filters?: Filters): Promise<string> => {
    world.server.clearRequests();
    const watcher = world.K8s(model, filters).Watch(() => {});
    await watcher.start();
    watcher.close();
    return world.server.requests[0].path;
  };

  it("is not needed for Kubernetes' own kinds, by the names of client-node's classes", async () => {
    using world = new World();
    const paths = {
      V1ConfigMap: "/api/v1/configmaps",
      V1Endpoints: "/api/v1/endpoints",
      V1Deployment: "/apis/apps/v1/deployments",
      V1NetworkPolicy: "/apis/networking.k8s.io/v1/networkpolicies",
      V1Ingress: "/apis/networking.k8s.io/v1/ingresses",
      V1HorizontalPodAutoscaler: "/apis/autoscaling/v2/horizontalpodautoscalers",
      CoreV1Event: "/api/v1/events",
      EventsV1Event: "/apis/events.k8s.io/v1/events",
    };
    for (const [name, path] of Object.entries(paths)) assert.equal(await pathOf(world, named(name)), path);
  });

  it("says which resource a class of your own is, and so does `kindOverride`", async () => {
    using world = new World();
    const Widget = named("Widget");
    assert.throws(() => world.K8s(Widget), /no kind is known by this name/);
    // The class names another version than the resource has.
    assert.throws(() => world.K8s(named("V1beta1ServiceCIDR")), /no kind is known by this name/);
    const kind = { group: "example.com", version: "v1", kind: "Widget" };
    assert.equal(await pathOf(world, named("Other"), { kindOverride: kind }), "/apis/example.com/v1/widgets");
    const policy = { group: "networking.k8s.io", kind: "NetworkPolicy" };
    const policies = "/apis/networking.k8s.io/v1/networkpolicies";
    assert.equal(await pathOf(world, named("Other"), { kindOverride: policy }), policies);
    const core = { group: "", kind: "Gadget" };
    assert.equal(await pathOf(world, named("Other"), { kindOverride: core }), "/api/v1/gadgets");
    RegisterKind(Widget, kind);
    assert.equal(await pathOf(world, Widget), "/apis/example.com/v1/widgets");
    assert.equal(await pathOf(world, Widget, { kindOverride: policy }), policies);
    assert.throws(() => RegisterKind(Widget, kind), /it is known already/);
    assert.throws(() => RegisterKind(V1Pod, kind), /it is known already/);
    const unversioned = { group: "example.com", kind: "Gadget" };
    assert.throws(() => world.K8s(named("Gadget"), { kindOverride: unversioned }), /needs a version/);
  });
});

describe("newK8s", () => {
  it("loads the cluster when a watcher starts, and again after a failure", async () => {
    using world = new World();
    let loads = 0;
    const K8s = newK8s({
      cluster: () => {
        if (++loads === 1) throw new Error("no kubeconfig");
        return newCluster({ server: "http://in-memory", fetch: world.server.fetch, clock: world.clock });
      },
      clock: world.clock,
      logger: world.logger,
    });
    const first = K8s(V1Pod).Watch(world.record);
    assert.equal(loads, 0);
    await assert.rejects(first.start(), /no kubeconfig/);
    const second = K8s(V1Pod).Watch(world.record);
    await second.start();
    assert.equal(loads, 2);
    assert.equal(world.server.openWatches, 1);
    second.close();
  });
});
