/**
 * Informers under test, and their invariants.
 * @module
 */

import assert from "node:assert/strict";
import {
  type KubernetesObject,
  type Logger,
  metaNamespaceIndex,
  metaNamespaceKey,
  type ReflectorStatus,
  type ResourceClient,
  SharedIndexInformer,
} from "@listwatch/cache";
import { DeltaFIFO } from "@listwatch/cache/queue";
import {
  type ListerWatcher,
  newReflectorBackoff,
  realClock,
  type ReflectorOptions,
  type ReflectorPhase,
} from "@listwatch/cache/reflector";
import { eventually } from "./eventually.ts";
import { History } from "./history.ts";
import { TEAM, type WriteLog } from "./writers.ts";

/** How an informer differs from the default. */
export interface ReflectedOptions {
  /** For messages. */
  readonly name: string;
  /** The queue of older informers, which merges the events of an object. */
  readonly deltaFifo?: boolean;
  /** Whether the reflected server is a cache. */
  readonly ofCache?: boolean;
  readonly reflector?: ReflectorOptions;
}

/** A running informer with a handler, and their history. */
export class Reflected<T extends KubernetesObject> implements AsyncDisposable {
  readonly name: string;
  readonly informer: SharedIndexInformer<T, "namespace" | "team">;
  readonly history: History<T>;
  /** The first status of each phase and step. */
  readonly statuses: ReflectorStatus[] = [];
  /** The errors that the watch error handler received. */
  readonly errors: Error[] = [];
  /** Lines that were logged as errors: internal failures. */
  readonly logged: string[] = [];
  readonly #stop: () => Promise<void>;
  readonly #backlog: () => number;

  constructor(source: ListerWatcher<T>, options: ReflectedOptions) {
    this.name = options.name;
    this.history = new History<T>(options);
    const logger: Logger = {
      debug: () => {},
      info: () => {},
      warn: () => {},
      error: (message) => this.logged.push(message),
    };
    this.informer = new SharedIndexInformer<T, "namespace" | "team">(source, {
      name: options.name,
      indexers: { namespace: metaNamespaceIndex, team: (object) => [object.metadata?.labels?.[TEAM] ?? ""] },
      logger,
      reflector: { watchErrorHandler: (error) => this.errors.push(error), ...options.reflector },
      ...(options.deltaFifo && {
        queue: (context) => new DeltaFIFO<T>({ ...context, emitDeltaTypeReplaced: true }),
      }),
    });
    this.informer.onStatus((status) => this.statuses.push(status));
    const registration = this.informer.addEventHandler(this.history);
    this.#backlog = () => registration.backlog;
    const running = this.informer.start();
    this.#stop = () => running.stop();
  }

  /** The phases it went through since `from`, without repetitions. */
  phases(from = 0): ReflectorPhase[] {
    const phases: ReflectorPhase[] = [];
    for (const { phase } of this.statuses.slice(from)) if (phases.at(-1) !== phase) phases.push(phase);
    return phases;
  }

  /** The codes of the failures it reported in its status since `from`, each once. */
  failures(from = 0): string[] {
    const codes = this.statuses.slice(from).map(({ lastError }) => lastError?.code);
    return [...new Set(codes.filter((code) => code !== undefined))];
  }

  async synced(): Promise<void> {
    await this.informer.synced(AbortSignal.timeout(30_000));
  }

  /**
   * Waits until store, indices and the handler's fold all equal what the server lists, and checks that
   * nothing impossible was received. No writer may run meanwhile.
   */
  async equalsServer(client: ResourceClient<T>): Promise<T[]> {
    const { items } = await client.list();
    await eventually(() =>
      assertSameObjects(this.informer.indexer.list(), items, `the store of ${this.name}`)
    );
    await eventually(() => assert.equal(this.#backlog(), 0));
    assertSameObjects([...this.history.objects.values()], items, `the fold of the handler of ${this.name}`);
    this.assertIndices(items);
    this.assertSound();
    return items;
  }

  /** No impossible notification, no internal failure. */
  assertSound(): void {
    assert.deepEqual(this.history.faults, [], this.name);
    assert.deepEqual(this.logged, [], this.name);
    assert.equal(this.informer.status().quarantined, 0, this.name);
  }

  /** The indices hold what one would compute from the objects. */
  assertIndices(objects: readonly T[]): void {
    const { indexer } = this.informer;
    for (const [name, indexFunc] of Object.entries(indexer.getIndexers())) {
      const index = name as "namespace" | "team";
      const expected = new Map<string, string[]>();
      for (const object of objects) {
        for (const value of indexFunc(object)) {
          expected.set(value, [...expected.get(value) ?? [], metaNamespaceKey(object)]);
        }
      }
      assert.deepEqual(indexer.listIndexFuncValues(index).sort(), [...expected.keys()].sort(), index);
      for (const [value, keys] of expected) {
        assert.deepEqual(indexer.indexKeys(index, value).sort(), keys.sort(), `${index} ${value}`);
        const found = indexer.byIndex(index, value).map(metaNamespaceKey);
        assert.deepEqual(found.sort(), keys, `${index} ${value}`);
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop();
  }
}

/** Both hold the same objects: namespace, name, uid, resourceVersion, and all the rest. */
export function assertSameObjects<T extends KubernetesObject>(
  actual: readonly T[],
  expected: readonly T[],
  what: string,
): void {
  assert.deepEqual(summaries(actual), summaries(expected), what);
  const byKey = new Map(expected.map((object) => [metaNamespaceKey(object), object]));
  for (const object of actual) assert.deepEqual(object, byKey.get(metaNamespaceKey(object)), what);
}

function summaries(objects: readonly KubernetesObject[]): string[] {
  return objects.map(({ metadata: { namespace, name, uid, resourceVersion } = {} }) =>
    `${namespace ?? ""}/${name} ${uid} at ${resourceVersion}`
  ).sort();
}

/**
 * The handler received every version that was acknowledged since the first list once, in
 * order, and every delete. It may have received unacknowledged versions too: the server
 * can be killed between a write and its response.
 *
 * @param deletedUids The uids of objects that were deleted before the informer started.
 */
export function assertAllReceived<T extends KubernetesObject>(
  { name, history }: Reflected<T>,
  log: WriteLog,
  deletedUids: ReadonlySet<string>,
): void {
  const received = history.byUid();
  for (const [uid, { key, resourceVersions, isDeleted }] of log.objects) {
    if (deletedUids.has(uid)) continue;
    const what = `${name}: ${key} ${uid}`;
    const events = received.get(uid);
    assert.ok(events !== undefined, `${what} was written, but not received`);
    const expected = events[0].isInInitialList
      ? resourceVersions.slice(resourceVersions.indexOf(events[0].resourceVersion))
      : resourceVersions;
    const acknowledged = new Set(resourceVersions);
    const versions = events.filter(({ type }) => type !== "delete").map((event) => event.resourceVersion);
    assert.deepEqual(versions.filter((version) => acknowledged.has(version)), expected, what);
    if (isDeleted) assert.equal(events.at(-1)!.type, "delete", what);
  }
}

/** Options for tests in which waiting is not the point: delays of a second at most. */
export function quickRetries(): ReflectorOptions {
  const backoff = { durationMs: 200, factor: 1.5, capMs: 1000 };
  return { backoff: newReflectorBackoff({ clock: realClock, random: Math.random, backoff }) };
}

/** Stops them all. */
export async function stopAll(reflected: readonly AsyncDisposable[]): Promise<void> {
  await Promise.all(reflected.map((one) => one[Symbol.asyncDispose]()));
}
