/**
 * Informers that are killed and started again, with a storage that has only what was saved.
 * @module
 */

import assert from "node:assert/strict";
import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
} from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import {
  type LoadedSnapshot,
  newInformerSnapshot,
  type SnapshotChange,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotOptions,
  SnapshotRefusedError,
  type SnapshotStorage,
} from "@listwatch/cache/informer";
import { FakeClock, InMemoryApiServer, pod, type RecordedRequest } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { Recorder } from "./rig.ts";
import { storage } from "./storages.ts";

/** What a disk has: it survives the kill of a process. */
export class Disk {
  identity: string | undefined;
  meta: Omit<SnapshotChange, "replaces" | "puts" | "deletes"> | undefined;
  readonly objects: Map<string, SnapshotEntry> = new Map();
  /** Every change that was saved, with the keys of its puts. */
  readonly saves: (Omit<SnapshotChange, "puts"> & { readonly puts: readonly string[] })[] = [];
  /** Whether objects are loaded with their heads. */
  hasHeads = true;

  /** The storage of one process, until that is killed. */
  open(options: Partial<SnapshotStorage> = {}): SnapshotStorage {
    return {
      load: (identity) => this.load(identity),
      save: (change) => this.save(change),
      ...options,
    };
  }

  load(identity: SnapshotIdentity): LoadedSnapshot | undefined {
    const wanted = JSON.stringify(identity);
    const { identity: saved = wanted, meta } = this;
    this.identity = wanted;
    if (meta === undefined) return undefined;
    if (saved !== wanted) throw new SnapshotRefusedError("other-identity", `it is of ${saved}`);
    const entries = Array.from(
      this.objects.values(),
      ({ head, ...entry }) => this.hasHeads && head ? { ...entry, head } : entry,
    );
    return { ...meta, count: entries.length, entries: () => [entries.slice(0, 2), entries.slice(2)] };
  }

  save(change: SnapshotChange): void {
    const { puts, ...rest } = change;
    const entries = puts.map((put) => ({ key: put.key, json: put.json(), head: put.head }));
    if (change.replaces) this.objects.clear();
    for (const key of change.deletes) this.objects.delete(key);
    for (const entry of entries) this.objects.set(entry.key, entry);
    const { replaces: _, deletes: __, ...version } = rest;
    this.meta = version;
    this.saves.push({ ...rest, puts: puts.map(({ key }) => key) });
  }

  /** What a kill leaves. */
  copy(): Disk {
    const copy = new Disk();
    copy.identity = this.identity;
    copy.meta = this.meta;
    copy.hasHeads = this.hasHeads;
    for (const [key, entry] of this.objects) copy.objects.set(key, entry);
    return copy;
  }

  /** The objects of the store, as `web-1@3`. */
  content(): string[] {
    return Array.from(this.objects.values(), ({ json }) => nameAndVersion(JSON.parse(json))).sort();
  }
}

/** An object as its name and resourceVersion. */
export function nameAndVersion(object: KubernetesObject): string {
  return `${object.metadata?.name}@${object.metadata?.resourceVersion}`;
}

/** One process: an informer with all that was seen of it. */
export interface Process {
  readonly informer: SharedIndexInformer<KubernetesObject>;
  readonly recorder: Recorder;
  /** The store's events, as `added web-1@3`, `replaced at 3: ...`. */
  readonly observed: string[];
  readonly log: LogRecorder;
  /** The first of these events after which the informer had synced. */
  firstSynced(): string | undefined;
  /** The store's content, as `web-1@3`. */
  content(): string[];
  stop(): Promise<void>;
}

/** Options of {@linkcode Machine.start}. */
export interface StartOptions extends SharedIndexInformerOptions<KubernetesObject> {
  readonly disk?: Disk;
  readonly storageOptions?: Partial<SnapshotStorage>;
  readonly snapshotOptions?: SnapshotOptions;
  readonly isBareSource?: boolean;
  /** Reads what identifies the cluster; nothing does by default. */
  readonly clusterUid?: (signal?: AbortSignal) => Promise<string>;
  /** How many watches for a proof are refused. */
  readonly refusesProofs?: number;
  /** Whether it comes as far as it can without time passing; `true` by default. */
  readonly settles?: boolean;
  readonly resource?: { readonly labelSelector?: string; readonly drop?: readonly `metadata.${string}`[] };
}

/** An API server in memory, a disk, and the processes that run on them. */
export class Machine {
  readonly clock: FakeClock = new FakeClock(1_000_000);
  readonly server: InMemoryApiServer;
  readonly disk: Disk = new Disk();
  readonly #running = new Set<Process>();

  constructor(options: ConstructorParameters<typeof InMemoryApiServer>[0] = {}) {
    this.server = new InMemoryApiServer({ clock: this.clock, ...options });
  }

  create(...names: string[]): void {
    for (const name of names) this.server.create("v1/pods", pod(name));
  }

  touch(name: string): void {
    this.server.patch("v1/pods", `default/${name}`, {
      metadata: { annotations: { touched: this.server.resourceVersion } },
    });
  }

  delete(name: string): void {
    this.server.delete("v1/pods", `default/${name}`);
  }

  /** The server's objects, as `web-1@3`. */
  content(): string[] {
    return this.server.list("v1/pods").items.map(nameAndVersion).sort();
  }

  /** The requests since the last call, as `watch 3`, `list 0`, `stream 3`, `version`, `probe 3`. */
  requests(): string[] {
    const lines = this.server.requests.map(requestLine);
    this.server.clearRequests();
    return lines;
  }

  /** Starts an informer; comes as far as it can without time passing. */
  async start(
    {
      disk = this.disk,
      storageOptions,
      snapshotOptions,
      isBareSource,
      clusterUid,
      refusesProofs = 0,
      settles = true,
      resource,
      ...options
    }: StartOptions = {},
  ): Promise<Process> {
    const log = new LogRecorder();
    const { clock, server } = this;
    const fetch: FetchFunction = async (input, init) => {
      if (`${input}`.includes("timeoutSeconds=3&") && refusesProofs-- > 0) {
        throw new TypeError("fetch failed");
      }
      return await server.fetch(input, init);
    };
    const client = newCluster({ server: "http://in-memory", fetch, clock })
      .resource<KubernetesObject>("v1/pods", resource ?? {});
    const source = isBareSource
      ? {
        list: client.list.bind(client),
        watch: client.watch.bind(client),
        identity: client.identity,
        description: client.description,
        ...(clusterUid && { clusterUid }),
      }
      : Object.assign(client, { clusterUid });
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      clock,
      logger: log,
      storage: storage(),
      snapshot: newInformerSnapshot(disk.open(storageOptions), snapshotOptions),
      ...options,
      reflector: { useWatchList: false, random: () => 0, ...options.reflector },
    });
    const recorder = new Recorder();
    const observed: string[] = [];
    let firstSynced: string | undefined;
    informer.addEventHandler(recorder);
    informer.observe((event) => {
      if (event.type === "bookmark") observed.push(`bookmark ${event.resourceVersion}`);
      else if (event.type === "replaced") {
        const changes = event.changes.map(({ type, object }) => `${type} ${nameAndVersion(object)}`);
        observed.push(`replaced at ${event.resourceVersion}: ${changes.join(", ")}`);
      } else observed.push(`${event.type} ${nameAndVersion(event.object)}`);
      if (informer.hasSynced()) firstSynced ??= observed.at(-1);
    });
    const running = informer.start();
    const process: Process = {
      informer,
      recorder,
      observed,
      log,
      firstSynced: () => firstSynced,
      content: () => informer.indexer.list().map(nameAndVersion).sort(),
      stop: async () => {
        this.#running.delete(process);
        await running.stop();
      },
    };
    this.#running.add(process);
    if (settles) await this.settle();
    return process;
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let i = 0; i < 5; i++) await this.clock.advance(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    let isStopped = false;
    const stopping = Promise.all([...this.#running].map((process) => process.stop())).finally(() =>
      isStopped = true
    );
    await this.settle();
    if (!isStopped) await this.clock.advance(10_000); // a load hangs
    await stopping;
    this.server.close();
    assert.equal(this.clock.pendingTimers, 0, "timers are left");
  }
}

function requestLine({ isWatch, query }: RecordedRequest): string {
  const at = query.resourceVersion === undefined ? "" : ` ${query.resourceVersion}`;
  if (!isWatch) return query.limit === "1" ? "version" : `list${at}`;
  if (query.sendInitialEvents) return `stream${at}`;
  return query.timeoutSeconds === "3" ? `proof${at}` : `watch${at}`;
}
