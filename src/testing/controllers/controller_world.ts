import type { RecordedEvent } from "../../controller/event_recorder.ts";
import type { ManagerOptions } from "../../controller/manager.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatResource } from "../../meta/resource.ts";
import { parseResourcePath, pathSegments } from "../../protocol/request_url.ts";
import { FakeClock } from "../fake_clock.ts";
import { answerStatus } from "../faults.ts";
import { InMemoryApiServer, type InMemoryListOptions } from "../in_memory_api_server.ts";
import { seededRandom } from "../seeded_random.ts";
import type { CustomResource } from "../served_resources.ts";
import { ControllerProcess, type DefineControllers } from "./process.ts";

/** Options of {@linkcode testController}. */
export interface TestControllerOptions {
  /** The resources besides the built-in ones. */
  readonly customResources?: readonly CustomResource[];
  /** Options of the `Manager` that runs the controllers; it has no leader election by default. */
  readonly manager?: Partial<ManagerOptions>;
}

/** The requests that {@linkcode ControllerWorld.fail} fails, and how. */
export interface FailOptions {
  /** How many requests fail; 1 by default. */
  readonly times?: number;
  /** Only requests for objects of this resource, such as `v1/configmaps`; all by default. */
  readonly resource?: string;
  /** Sends a `Retry-After` header. */
  readonly retryAfterSeconds?: number;
}

/** An event that a controller has recorded. */
export interface TestEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  /** The object of the event: `namespace/name`, or `name`. */
  readonly about: string;
  /** How many times the event was recorded. */
  readonly count: number;
}

/** A request that changes something. */
export interface TestWrite {
  readonly method: string;
  /** The resource, such as `v1/configmaps`. */
  readonly resource: string;
  readonly name: string;
  /** The subresource, such as `status`; `""` for the object itself. */
  readonly subresource: string;
}

// A world that is not idle after this time never will be.
const IDLE_WITHIN_MS = 3_600_000;

const EVENTS = "events.k8s.io/v1/events";
const LEASES = "coordination.k8s.io/v1/leases";

/**
 * Runs controllers against a cluster in memory, until it is disposed. Only
 * {@linkcode ControllerWorld.idle} and {@linkcode ControllerWorld.advance} move the time.
 * @param define Makes the controllers; called for each start of the program.
 * @returns When the program has started and nothing is left to do.
 *
 * @example
 * ```ts
 * import { type KubernetesObject } from "@listwatch/cache";
 * import { defineController, ownedBy } from "@listwatch/cache/controller";
 * import { type ControllerWorld, testController } from "@listwatch/cache/testing";
 *
 * const shops = { group: "example.com", version: "v1", resource: "shops", kind: "Shop", namespaced: true };
 * await using world: ControllerWorld = await testController((cluster) =>
 *   defineController({
 *     name: "shops",
 *     for: cluster.resource("example.com/v1/shops"),
 *     owns: { configMaps: cluster.resource<KubernetesObject>("v1/configmaps") },
 *     async reconcile(shop, { configMaps }) {
 *       await configMaps.apply({ metadata: { name: `shop-${shop.metadata?.name}`, ...ownedBy(shop) } });
 *     },
 *   }), { customResources: [shops] });
 *
 * world.fail("PATCH", 503);
 * world.create("example.com/v1/shops", { metadata: { name: "tea" } });
 * await world.idle();
 * console.log(world.get("v1/configmaps", "shop-tea") !== undefined); // true
 * console.log(world.writes.length); // 2
 * world.crash();
 * await world.restart();
 * ```
 */
export async function testController(
  define: DefineControllers,
  options: TestControllerOptions = {},
): Promise<ControllerWorld> {
  const world = new ControllerWorld(define, options);
  await world.idle();
  return world;
}

/**
 * A program with controllers, and the cluster in memory that it works on; made by {@linkcode testController}.
 * Objects whose owners are deleted are deleted, too, as by the garbage collector of a cluster.
 */
export class ControllerWorld implements AsyncDisposable {
  /** The cluster. */
  readonly server: InMemoryApiServer;
  /** The clock of the cluster and the program. */
  readonly clock: FakeClock;
  /** The warnings, errors and information that were logged, each with its level: `warn Cannot ...`. */
  readonly lines: string[] = [];
  readonly #define: DefineControllers;
  readonly #options: TestControllerOptions;
  readonly #memory = new Map<string, unknown>();
  readonly #writes: TestWrite[] = [];
  readonly #random = seededRandom(1);
  #process: ControllerProcess;

  /** Starts the program. */
  constructor(define: DefineControllers, options: TestControllerOptions = {}) {
    this.#define = define;
    this.#options = options;
    this.clock = new FakeClock(Date.UTC(2026, 0, 1));
    this.server = new InMemoryApiServer({ clock: this.clock, customResources: options.customResources });
    this.#process = this.#start();
  }

  /**
   * The requests of the program that have changed something or
   * failed, oldest first; without Leases and events.
   */
  get writes(): readonly TestWrite[] {
    return this.#writes;
  }

  /** The events that the controllers have recorded, oldest first. */
  get events(): readonly TestEvent[] {
    const { items } = this.server.list<RecordedEvent>(EVENTS);
    return items.map(({ type = "", reason = "", note = "", regarding = {}, series }) => ({
      type,
      reason,
      note,
      about: [regarding.namespace, regarding.name].filter(Boolean).join("/"),
      count: series?.count ?? 1,
    }));
  }

  /** Creates an object, as a user does; in the namespace `default` if it names none. */
  create<T extends KubernetesObject>(resource: string, object: T): T {
    return this.server.create(resource, object);
  }

  /** Replaces an object, including its status. */
  update<T extends KubernetesObject>(resource: string, object: T): T {
    return this.server.update(resource, object);
  }

  /** Changes an object by a merge patch. */
  patch<T extends KubernetesObject>(
    resource: string,
    name: string,
    patch: Readonly<Record<string, unknown>>,
  ): T {
    return this.server.patch<T>(resource, name, patch);
  }

  /** Deletes an object; it stays while it has finalizers. */
  delete(resource: string, name: string): void {
    this.server.delete(resource, name);
  }

  /** The object of a name (`namespace/name`, or `name`); `undefined` if there is none. */
  get<T extends KubernetesObject>(resource: string, name: string): T | undefined {
    return this.server.get<T>(resource, name);
  }

  /** The objects of a resource. */
  list<T extends KubernetesObject>(resource: string, options?: InMemoryListOptions): readonly T[] {
    return this.server.list<T>(resource, options).items;
  }

  /**
   * Lets the next requests of a method fail.
   * @param method Such as `PATCH`; `apply` and the status are patches.
   * @param status The code of the answer, such as 409.
   */
  fail(method: string, status: number, options: FailOptions = {}): void {
    const { times = 1, resource, retryAfterSeconds } = options;
    this.server.intercept(
      answerStatus(status, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      {
        times,
        match: (request) => {
          const target = targetOf(new URL(request.path, "http://in-memory"));
          return request.method === method && target !== undefined &&
            (resource === undefined ? isOwn(target) : resource === target.resource);
        },
      },
    );
  }

  /**
   * Moves the time until the program has nothing left to do: its caches are complete, and no key waits, is in
   * progress or waits for another try. A delay that a reconcile asked for by `requeueAfterMs` does not count.
   * @throws {Error} The controllers are not idle within an hour of the clock: the message says why.
   */
  async idle(): Promise<void> {
    if (await untilIdle(this.server, this.clock, () => [this.#process], IDLE_WITHIN_MS)) return;
    const { manager } = this.#process;
    const { problems, isLeading } = manager.status();
    const why = [
      ...(isLeading ? [] : ["it does not reconcile"]),
      ...problems,
      ...(manager.pending > 0 ? [`${manager.pending} keys wait or are tried again`] : []),
    ];
    const lines = this.lines.slice(-5).map((line) => `\n  ${line}`).join("");
    throw new Error(`The controllers are not idle after an hour: ${why.join("; ")}. The last lines:${lines}`);
  }

  /** Moves the time. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Kills the program, as `kill -9` does. */
  crash(): void {
    this.#process.kill();
  }

  /** Starts the program again, and waits until nothing is left to do; kills it first if it runs. */
  async restart(): Promise<void> {
    this.#process.kill();
    this.#process = this.#start();
    await this.idle();
  }

  /** Stops the program in an orderly way, and closes the cluster. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.isRunning) {
      const stopped = this.#process.manager.stop();
      await this.clock.advance(60_000);
      await stopped;
    }
    this.server.close();
  }

  #start(): ControllerProcess {
    return new ControllerProcess({
      name: "program",
      define: this.#define,
      memory: this.#memory,
      clock: this.clock,
      fetch: this.server.fetch,
      random: this.#random,
      network: (request, send) => {
        const target = request.method === "GET" ? undefined : targetOf(request.url);
        if (target !== undefined && isOwn(target)) this.#writes.push({ method: request.method, ...target });
        return send(request.url, request.init);
      },
      onLine: (line) => void this.lines.push(line),
      ...(this.#options.manager && { manager: this.#options.manager }),
    });
  }
}

/** The object or collection of a request; `undefined` if it has none. */
export function targetOf({ pathname }: URL): Omit<TestWrite, "method"> | undefined {
  const path = parseResourcePath(pathSegments(pathname) ?? []);
  if (path === undefined) return undefined;
  const { namespace, name, subresource } = path;
  return {
    resource: formatResource(path),
    name: name && namespace ? `${namespace}/${name}` : name,
    subresource,
  };
}

/** Whether a request is about an object of the controller, not one that the manager keeps for itself. */
export function isOwn({ resource }: Pick<TestWrite, "resource">): boolean {
  return resource !== EVENTS && resource !== LEASES;
}

/** Moves the clock until no process has anything to do; `false` if that takes longer than `withinMs`. */
export async function untilIdle(
  server: InMemoryApiServer,
  clock: FakeClock,
  processes: () => readonly ControllerProcess[],
  withinMs: number,
): Promise<boolean> {
  const endMs = clock.monotonicNow() + withinMs;
  for (;;) {
    await clock.advance(0);
    if (!collectGarbage(server, processes()) && isIdle(processes())) return true;
    const nextMs = clock.nextTimerMs ?? Infinity;
    if (nextMs > endMs) return false;
    await clock.advance(nextMs - clock.monotonicNow());
  }
}

function isIdle(processes: readonly ControllerProcess[]): boolean {
  const running = processes.filter(({ isRunning }) => isRunning);
  return running.some(({ manager }) => manager.status().isLeading) &&
    running.every(({ manager }) =>
      manager.pending === 0 && manager.caches.every(({ informer }) => informer.status().phase === "watching")
    );
}

/**
 * Deletes objects of which no owner is left, as a cluster's garbage collector does; `false` if there are
 * none. Owners and dependents are of the resources that the controllers know.
 */
export function collectGarbage(server: InMemoryApiServer, processes: readonly ControllerProcess[]): boolean {
  const names = new Set(
    processes.flatMap(({ manager }) => manager.caches.map(({ client }) => formatResource(client.resource))),
  );
  const kinds = new Set(
    server.resources.filter((resource) => names.has(formatResource(resource))).map(({ kind }) => kind),
  );
  const objects = [...names].flatMap((name) =>
    server.list<KubernetesObject>(name).items.map((object) => ({ name, object }))
  );
  const uids = new Set(objects.map(({ object }) => object.metadata?.uid));
  const garbage = objects.filter(({ object: { metadata = {} } }) => {
    const owners = metadata.ownerReferences ?? [];
    return owners.length > 0 && !metadata.deletionTimestamp &&
      owners.every(({ kind, uid }) => kinds.has(kind) && !uids.has(uid));
  });
  for (const { name, object } of garbage) server.delete(name, object);
  return garbage.length > 0;
}
