/**
 * kubernetes-fluent-client and `./compat/fluent` beside each other: the same program on the same API server,
 * over sockets, and what both of them report. A difference is one of the table in
 * docs/from_fluent_client.md.
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster } from "@listwatch/cache";
import {
  type GenericClass,
  type K8sFilters,
  type K8sFunction,
  newK8s,
  type RegisteredKind,
  RegisterKind,
  type WatchCfg,
  WatcherEvent,
  WatchPhase,
} from "@listwatch/cache/compat/fluent";
import { answerStatus, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import type { Pod } from "kubernetes-types/core/v1";
import { RealCluster } from "../cli/real_cluster.ts";
import { LogRecorder } from "../log_recorder.ts";

/** The original, with the types of the adapter: its own bring another version of Node's types. */
interface Upstream {
  readonly K8s: K8sFunction;
  readonly kind: Readonly<Record<string, GenericClass>>;
  readonly models: Readonly<Record<string, GenericClass>>;
  modelToGroupVersionKind(name: string): RegisteredKind | undefined;
  RegisterKind(model: GenericClass, kind: RegisteredKind): void;
  readonly WatchEvent: Readonly<Record<string, string>>;
}

const load = async <T>(name: string): Promise<T> => await import(name);
const upstreamPackage = await load<Upstream>("kubernetes-fluent-client");
const { kind, models, WatchEvent } = upstreamPackage;

type Callback = (object: Pod, phase: WatchPhase) => void | Promise<void>;
type Select = (K8s: K8sFunction) => K8sFilters<Pod>;

/** Events that only upstream has a cause for. */
const UPSTREAM_ONLY: readonly string[] = [
  WatchEvent.INIT_CACHE_MISS,
  WatchEvent.CACHE_MISS,
  WatchEvent.LIST,
  WatchEvent.LIST_ERROR,
];

/** A cluster, one of the two packages, and what a program of it reports. */
class World {
  readonly lines: string[] = [];
  readonly #cluster: RealCluster;
  readonly #K8s: K8sFunction;
  readonly #closing: (() => void)[] = [];
  #onLine: () => void = () => {};

  private constructor(cluster: RealCluster, K8s: K8sFunction) {
    this.#cluster = cluster;
    this.#K8s = K8s;
  }

  static async start(which: "upstream" | "compat"): Promise<World> {
    const cluster = await RealCluster.start();
    const { url, kubeconfig } = cluster;
    if (which === "compat") {
      return new World(cluster, newK8s({ cluster: newCluster({ server: url }), logger: new LogRecorder() }));
    }
    const text = await readFile(kubeconfig, "utf8");
    await writeFile(kubeconfig, text.replace(/^( +)server: .*$/m, "$&\n$1insecure-skip-tls-verify: true"));
    process.env.KUBECONFIG = kubeconfig;
    return new World(cluster, upstreamPackage.K8s);
  }

  get server(): InMemoryApiServer {
    return this.#cluster.server;
  }

  /** A watcher of the pods of "shop", whose calls and events are lines. */
  watch(
    callback: Callback = () => {},
    cfg: WatchCfg = {},
    select: Select = (K8s) => K8s(kind.Pod).InNamespace("shop"),
  ) {
    const watcher = select(this.#K8s).Watch((object, phase) => {
      const { name, labels } = object.metadata!;
      this.say(`call ${phase} ${name} ${JSON.stringify(labels ?? {})}`);
      return callback(object, phase);
    }, { resyncDelaySec: 0.05, ...cfg });
    this.#closing.push(() => watcher.close());
    for (const event of Object.values(WatchEvent).filter((event) => !UPSTREAM_ONLY.includes(event))) {
      watcher.events.on(event, (...values) => {
        // The text of an error is each package's own.
        const shown = values.map((value) =>
          value instanceof Error ? "Error" : value?.metadata?.name ?? value
        );
        this.say([`event ${event}`, ...shown].join(" "));
      });
    }
    return watcher;
  }

  say(line: string): void {
    this.lines.push(line);
    this.#onLine();
  }

  /** Waits until a line was there so many times. */
  async until(line: string, times = 1): Promise<void> {
    while (this.lines.filter((one) => one === line).length < times) {
      await new Promise<void>((resolve) => this.#onLine = resolve);
    }
  }

  create(name: string, labels: Record<string, string> = {}): void {
    this.server.create("v1/pods", pod(name, { namespace: "shop", labels }));
  }

  label(name: string, labels: Record<string, string>): void {
    const before = this.server.get<KubernetesObject>("v1/pods", `shop/${name}`)!;
    this.server.update("v1/pods", { ...before, metadata: { ...before.metadata, labels } });
  }

  delete(name: string): void {
    this.server.delete("v1/pods", `shop/${name}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closing) close();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

/** What a program reports with each of the packages. */
async function reports(
  program: (world: World) => Promise<void>,
): Promise<{ upstream: string[]; compat: string[] }> {
  const lines = { upstream: [] as string[], compat: [] as string[] };
  for (const which of ["upstream", "compat"] as const) {
    await using world = await World.start(which);
    await program(world);
    lines[which] = [...world.lines];
  }
  return lines;
}

/** What says that a watch is open: upstream lists before; here, one request does both. */
const isOpen = (line: string) => /^event (connect|inc_resync_failure_count 0$)/.test(line);

const calls = (lines: readonly string[]) => lines.filter((line) => line.startsWith("call"));

describe("K8s(kind).Watch beside upstream's", () => {
  const same: Readonly<Record<string, (world: World) => Promise<void>>> = {
    "what is added, changed and deleted, each after its event": async (world) => {
      for (const name of ["a", "b"]) world.create(name);
      const watcher = world.watch();
      await watcher.start();
      world.say("started");
      world.create("c", { v: "1" });
      await world.until('call ADDED c {"v":"1"}');
      world.label("a", { v: "2" });
      world.delete("b");
      await world.until("call DELETED b {}");
    },
    "all of the first list, before `start` resolves": async (world) => {
      for (let i = 0; i < 100; i++) world.create(`pod-${i}`);
      const controller = await world.watch(() => Promise.resolve()).start();
      world.say(`started ${controller.constructor.name} ${controller.signal.aborted}`);
    },
    "nothing after a close, by itself or by the controller that `start` returns": async (world) => {
      const [one, other] = [world.watch(), world.watch()];
      one.events.removeAllListeners();
      other.events.removeAllListeners();
      await one.start();
      const controller = await other.start();
      one.close();
      controller.abort();
      world.create("a");
      const last = world.watch();
      await last.start();
    },
    "an object that a label brings into the selection, and out of it": async (world) => {
      world.create("a", { app: "web" });
      const select: Select = (K8s) => K8s(kind.Pod).WithLabel("app", "web").WithLabel("tier");
      await world.watch(() => {}, {}, select).start();
      for (const labels of [{ app: "web", tier: "1" }, { app: "web", tier: "2" }, { app: "db", tier: "2" }]) {
        world.label("a", labels);
      }
      await world.until('call DELETED a {"app":"web","tier":"2"}');
    },
    "what has changed while the watch was cut, and its next connection": async (world) => {
      for (const name of ["a", "b"]) world.create(name);
      await world.watch().start();
      world.server.closeWatches();
      world.create("c");
      await world.until("call ADDED c {}");
      await world.until("event connect /api/v1/namespaces/shop/pods", 2);
    },
  };
  for (const [title, program] of Object.entries(same)) {
    it(`reports ${title}`, async () => {
      const { upstream, compat } = await reports(program);
      assert.ok(upstream.length > 0);
      const [first, second] = [upstream, compat].map((lines) => lines.filter((line) => !isOpen(line)));
      assert.deepEqual(second, first);
      assert.deepEqual(
        compat.filter((line) => /connect/.test(line)),
        upstream.filter((line) => /connect/.test(line)),
      );
    });
  }

  it("hands over the same objects, and those of a list with their kind", async () => {
    const objects: Record<string, Pod[]> = { upstream: [], compat: [] };
    for (const which of ["upstream", "compat"] as const) {
      await using world = await World.start(which);
      world.create("a", { app: "web" });
      const collect: Callback = (object) => {
        const { creationTimestamp, uid, ...metadata } = object.metadata!;
        assert.deepEqual([typeof creationTimestamp, typeof uid], ["string", "string"]);
        objects[which].push({ ...object, metadata });
      };
      await world.watch(collect).start();
      world.label("a", { app: "db" });
      world.delete("a");
      await world.until('call DELETED a {"app":"db"}');
    }
    const [listed] = objects.upstream;
    assert.deepEqual([listed.kind, listed.apiVersion], [undefined, undefined]);
    objects.upstream[0] = { apiVersion: "v1", kind: "Pod", ...listed };
    assert.deepEqual(objects.compat, objects.upstream);
  });

  it("gives up after the same number of tries, with the same events", async () => {
    for (const resyncFailureMax of [0, 1]) {
      const { upstream, compat } = await reports(async (world) => {
        world.server.intercept(answerStatus(403));
        await world.watch(() => {}, { resyncFailureMax }).start();
        await world.until("event give_up Error");
      });
      assert.deepEqual(compat.filter((line) => !line.startsWith("event abort")), upstream);
      assert.equal(
        upstream.filter((line) => line === "event watch_error Error").length,
        resyncFailureMax + 1,
      );
    }
  });

  it("reports what a callback throws in the same way, and calls it again, which upstream does not", async () => {
    for (const fails of [() => fail("not now"), () => Promise.reject(new Error("not now"))]) {
      const lines: Record<string, string[]> = {};
      for (const which of ["upstream", "compat"] as const) {
        await using world = await World.start(which);
        world.create("a");
        let calls = 0;
        const cfg: WatchCfg = { callbackRetryDelaySec: 0.001 };
        await world.watch(() => calls++ === 0 ? fails() : undefined, cfg).start();
        if (which === "compat") await world.until("call ADDED a {}", 2);
        world.create("last");
        await world.until("call ADDED last {}");
        lines[which] = world.lines.filter((line) => !isOpen(line));
      }
      const first = ["event data a ADDED", "call ADDED a {}", "event data_error Error"];
      const last = ["event data last ADDED", "call ADDED last {}"];
      assert.deepEqual(lines, { upstream: [...first, ...last], compat: [...first, first[1], ...last] });
    }
  });

  it("reports another object of the same name as a delete and an add, upstream the other way round", async () => {
    const { upstream, compat } = await reports(async (world) => {
      world.create("a");
      await world.watch().start();
      world.server.closeWatches();
      world.delete("a");
      world.create("a", { v: "2" });
      world.server.compact();
      await world.until('call ADDED a {"v":"2"}');
      await world.until("call DELETED a {}");
    });
    const [, ...after] = calls(upstream);
    assert.deepEqual(calls(compat), [calls(upstream)[0], ...after.reverse()]);
  });

  it("asks for the same objects, with the name beside other fields, which upstream leaves out", async () => {
    const asked: Record<string, string[]> = {};
    for (const which of ["upstream", "compat"] as const) {
      await using world = await World.start(which);
      const filters = { name: "a", namespace: "shop", fields: { "spec.nodeName": "node-1" } };
      const selections: Select[] = [
        (K8s) => K8s(kind.Pod),
        (K8s) => K8s(kind.Pod, { name: "a", namespace: "shop", labels: { app: "web" } }),
        (K8s) => K8s(kind.Pod).InNamespace("shop").WithField("spec.nodeName", "node-1"),
        (K8s) => K8s(kind.Pod).WithLabel("app", "web").WithLabel("tier"),
        (K8s) => K8s(kind.Pod, filters),
      ];
      for (const select of selections) await world.watch(() => {}, {}, select).start();
      asked[which] = [
        ...new Set(
          world.server.requests.map(({ path, query }) =>
            [path, query.labelSelector, query.fieldSelector].join(" ")
          ),
        ),
      ];
    }
    const [last] = asked.upstream.splice(-1);
    assert.equal(last, "/api/v1/namespaces/shop/pods  metadata.name=a");
    assert.deepEqual(asked.compat, [...asked.upstream, `${last},spec.nodeName=node-1`]);
  });
});

describe("WatcherEvent and WatchPhase beside upstream's", () => {
  it("have the same names and values", async () => {
    const shared = "kubernetes-fluent-client/dist/fluent/shared-types.js";
    const { WatchPhase: WatchPhaseUpstream } = await load<{ WatchPhase: object }>(shared);
    assert.deepEqual<object>({ ...WatcherEvent }, { ...WatchEvent });
    assert.deepEqual<object>({ ...WatchPhase }, { ...WatchPhaseUpstream });
  });
});

describe("RegisterKind beside upstream's", () => {
  it("knows the kinds that upstream knows, but for those that cannot be watched", async () => {
    const unknown: string[] = [];
    const server = new InMemoryApiServer();
    const K8s = newK8s({ cluster: newCluster({ server: "http://in-memory", fetch: server.fetch }) });
    const classes = new Set(Object.values({ ...models, ...kind }).filter((one) => typeof one === "function"));
    for (const model of classes) {
      const upstream = upstreamPackage.modelToGroupVersionKind(model.name);
      if (upstream === undefined) continue;
      const { group, version, plural = `${upstream.kind.toLowerCase()}s` } = upstream;
      server.clearRequests();
      try {
        const watcher = K8s(model).Watch(() => {});
        await watcher.start();
        watcher.close();
      } catch {
        unknown.push(model.name);
        continue;
      }
      const path = group === "" ? `/api/v1/${plural}` : `/apis/${group}/${version}/${plural}`;
      assert.equal(server.requests[0].path, path, model.name);
    }
    assert.deepEqual(unknown.sort(), [
      "V1LocalSubjectAccessReview",
      "V1SelfSubjectAccessReview",
      "V1SelfSubjectRulesReview",
      "V1SubjectAccessReview",
      "V1TokenReview",
    ]);
    server.close();
  });

  it("accepts kinds that are known here, and not there, and any class of a registered name", () => {
    const K8s = newK8s();
    const register = [RegisterKind, upstreamPackage.RegisterKind];
    for (const known of register) {
      known(models.V1Lease, { group: "coordination.k8s.io", version: "v1", kind: "Lease" });
      known(kind.GenericKind, { group: "example.com", version: "v1", kind: "Widget" });
      for (const again of [models.V1Lease, kind.Pod, class GenericKind {}]) {
        assert.throws(() => known(again, { group: "example.com", version: "v1", kind: "Widget" }));
      }
    }
    for (const model of [models.V1Lease, kind.GenericKind, class GenericKind {}]) K8s(model);
  });
});

function fail(text: string): never {
  throw new Error(text);
}
