/** The value of an informer's option `snapshot`. */

import { formatResource } from "../../meta/resource.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { ReflectedSnapshot } from "../../reflector/reflector_options.ts";
import { RESUMING } from "../../reflector/resumption.ts";
import type { Probe, ReflectorPhase, RestoredContent, Resuming } from "../../reflector/state.ts";
import type { Held } from "../../store/holding.ts";
import { errorMessage } from "../../util/errors.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { InformerStateError } from "../errors.ts";
import type {
  InformerStatus,
  SnapshotContext,
  SnapshotRun,
  SnapshotStatus,
  SnapshotStorage,
} from "./storage.ts";
import { loadSnapshot, SnapshotKeeper } from "./content.ts";
import type { StoreEvent } from "../events.ts";
import {
  compareResourceVersions,
  isOlder,
  type KubernetesObject,
  resourceVersionOf,
} from "../../meta/object.ts";
import { type LinkedAbort, linkedAbort, sleep } from "../../util/abort.ts";
import { momentOf } from "../../util/clock.ts";
import { ANSWER_MS, changesSince, ClusterCheck, currentVersion, inTime, TOO_SLOW } from "./progress.ts";

/** Options of a snapshot, whatever it is stored in. All may be left out. */
export interface SnapshotOptions {
  /**
   * How long changes are gathered before they are saved, in milliseconds; 1,000 by default. Changes in the
   * last such time before a crash are not saved, and come again by the watch. Not for a storage that saves in
   * the turn.
   */
  readonly intervalMs?: number;
  /**
   * How long the storage may take to load, in milliseconds; 30,000 by default. Then the snapshot is refused,
   * and everything is listed.
   */
  readonly loadTimeoutMs?: number;
  /** How long a stop waits for the last save, in milliseconds; 10,000 by default. */
  readonly stopTimeoutMs?: number;
  /**
   * A text that changes whenever the same objects of the server are held otherwise: after a change of the
   * transform, of the key function or of the source's schema. A snapshot with another text is refused.
   * Required beside a transform.
   */
  readonly identity?: string;
}

export interface SnapshotOwner {
  readonly name: string;
  /** The identity of its source. */
  readonly source: string | undefined;
  readonly hasQueue: boolean;
  readonly hasTransform: boolean;
}

/** The value of an informer's option `snapshot`: a storage and its options. For one informer. */
export interface InformerSnapshot {
  readonly storage: SnapshotStorage;
  readonly options: SnapshotOptions;
  /**
   * An informer has it.
   * @throws {TypeError} The snapshot does not fit the informer's other options.
   * @throws {InformerStateError} Another informer has it.
   * @internal
   */
  claim(informer: SnapshotOwner): void;
  /**
   * The informer starts.
   * @internal
   */
  begin<T>(context: SnapshotContext<T>): SnapshotRun<T>;
}

/**
 * Makes what an informer's option `snapshot` takes of a storage. The functions that make a storage of the
 * library return it already.
 * @throws {RangeError} A time among the options is negative or `NaN`.
 *
 * @example
 * ```ts
 * import { newInformerSnapshot, type SnapshotStorage } from "@listwatch/cache/informer";
 * const nothingSaved: SnapshotStorage = { load: () => undefined, save() {} };
 * const snapshot = newInformerSnapshot(nothingSaved, { intervalMs: 5_000 });
 * console.log(snapshot.options.intervalMs); // 5000
 * ```
 */
export function newInformerSnapshot(
  storage: SnapshotStorage,
  options: SnapshotOptions = {},
): InformerSnapshot {
  const { intervalMs, loadTimeoutMs, stopTimeoutMs } = options;
  requireNumbers("keep a snapshot", { intervalMs });
  requireNumbers("keep a snapshot", { loadTimeoutMs, stopTimeoutMs }, { mayBeInfinite: true });
  let owner: SnapshotOwner | undefined;
  return {
    storage,
    options,
    claim(informer) {
      const { name } = informer;
      const fault = faultOf(informer, options);
      if (fault !== undefined) throw new TypeError(`Cannot keep a snapshot of ${name}: ${fault}`);
      if (owner !== undefined) {
        throw new InformerStateError(
          `Cannot keep the snapshot of ${name} where that of ${owner.name} is: make a snapshot for each informer`,
        );
      }
      owner = informer;
    },
    begin: <T>(context: SnapshotContext<T>) => new Run<T>(storage, context, options),
  };
}

/** Why a snapshot would not fit the content of an informer. */
function faultOf(
  { source, hasQueue, hasTransform }: SnapshotOwner,
  { identity }: SnapshotOptions,
): string | undefined {
  if (hasQueue) {
    return "the store is at no single version behind a queue of your own. Leave out `queue` or `snapshot`";
  }
  if (!source && !identity) {
    return "nothing says what its source lists. Give the source or the snapshot an `identity`";
  }
  if (hasTransform && !identity) {
    return "nothing says which transform its objects have passed. Give the snapshot an `identity`";
  }
  return undefined;
}

const DEFAULTS = { intervalMs: 1_000, loadTimeoutMs: 30_000, stopTimeoutMs: 10_000 };
/** The changes since the snapshot may be on their way. */
const GRACE_MS = 200;
/** How many watches for a bookmark are opened, and questions about the cluster sent, at growing intervals. */
const MOST_PROOFS = 4;

/**
 * The snapshot of a running informer: the loaded content, until it is in the store; the content of the store,
 * until the server has confirmed it; and from then on the saved content.
 *
 * The server confirms it by a list or a bookmark, or by an event that brings the store to the version that
 * the server had at the start; if that version cannot be read, by an event no older than the snapshot, as a
 * restored server may send older ones. While a watch is open and nothing has confirmed it, a short second
 * watch asks for a bookmark (progress.ts): they come once a minute.
 */
class Run<T> implements SnapshotRun<T>, ReflectedSnapshot {
  readonly resuming: Resuming = RESUMING;
  readonly #storage: SnapshotStorage;
  readonly #context: SnapshotContext<T>;
  /** A source of the versions of the same objects. */
  readonly #metadata: ListerWatcher<KubernetesObject> | undefined;
  readonly #options: SnapshotOptions & typeof DEFAULTS;
  readonly #keeper: SnapshotKeeper<T>;
  readonly #stop = new AbortController();
  /** Ends the questions whether the content equals the server's. */
  readonly #confirmed = new AbortController();
  #load: SnapshotStatus["load"] = "loading";
  #refusal: string | undefined;
  /** The loaded content, until it is in the store. */
  #loaded: RestoredContent | undefined;
  /** The content of the store, while the server has not confirmed it. */
  #unconfirmed: InformerStatus["restored"];
  readonly #cluster: ClusterCheck;
  /** Reads which cluster it is after the last list. */
  #question: LinkedAbort | undefined;
  /** Whether only a list confirms it: a part of it could not be stored, or a list has started. */
  #needsList = false;
  /** The version that the server had at the start. */
  #serverVersion: string | undefined;
  #isWatching = false;
  #isAsking = false;
  /** A watch would have confirmed it, and may be another cluster's. */
  #isHeldBack = false;

  constructor(storage: SnapshotStorage, context: SnapshotContext<T>, options: SnapshotOptions) {
    this.#storage = storage;
    this.#context = context;
    this.#metadata = context.source.metadata?.();
    this.#options = { ...DEFAULTS, ...options };
    this.#cluster = new ClusterCheck(context);
    this.#keeper = new SnapshotKeeper(storage, context, this.#options, () => this.#cluster.uid);
  }

  get isPending(): boolean {
    return this.#loaded !== undefined || this.#unconfirmed !== undefined;
  }

  async load(signal: AbortSignal): Promise<RestoredContent | undefined> {
    const { name, metrics, source } = this.#context;
    const { loadTimeoutMs: timeoutMs } = this.#options;
    try {
      const identity = {
        resource: source.resource === undefined ? name : formatResource(source.resource),
        source: [source.identity, this.#options.identity].filter((text) => text).join(" "),
      };
      this.#loaded = await loadSnapshot(this.#storage, this.#context, {
        identity,
        timeoutMs,
        signal,
        onBegin: (ended) => this.#keeper.loading(ended),
      });
      this.#cluster.loaded(this.#loaded?.clusterUid);
      this.#load = this.#loaded === undefined ? "none" : "restored";
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#refuse(errorMessage(error), { error });
    }
    metrics?.count("informer_snapshot_loads_total", 1, { name, outcome: this.#load });
    return this.#loaded;
  }

  #refuse(refusal: string, fields?: { readonly error: unknown }): void {
    this.#load = "refused";
    this.#refusal = refusal;
    this.#context.logger.warn(`${this.#context.name}: ${refusal}; listing instead`, fields);
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    await this.#cluster.read(signal);
    const { isOther: isOtherCluster } = this.#cluster;
    if (!isOtherCluster) return { isOtherCluster, serverVersion: await this.#readVersion(signal) };
    this.#refuse("Cannot use the snapshot: another cluster responds at the address of its own");
    return { isOtherCluster, serverVersion: undefined };
  }

  async #readVersion(signal: AbortSignal): Promise<string | undefined> {
    const metadata = this.#metadata;
    if (metadata === undefined) return undefined;
    try {
      const { clock } = this.#context;
      return this.#serverVersion = await inTime((limited) => currentVersion(metadata, limited), {
        clock,
        signal,
      });
    } catch (error) {
      if (error === TOO_SLOW) return undefined; // it may be slow with lists only
      throw error;
    }
  }

  observe(event: StoreEvent<Held<T>>): void {
    if (this.#loaded !== undefined) {
      const last = this.#loaded.watchedVersion === undefined ? "replaced" : "bookmark";
      if (event.type === last) this.#restored(this.#loaded);
      return;
    }
    this.#keeper.gather(event);
    if (event.type === "replaced") {
      if (event.isGap) return; // it is of the server's past
      this.#identify();
      this.#confirm(true, { byList: true });
    } else if (this.#unconfirmed !== undefined && !this.#needsList) {
      if (event.type === "bookmark") this.#confirm(true);
      else if (this.#serverVersion !== undefined) {
        if (this.#hasReached(this.#serverVersion)) this.#confirm(true);
      } else if (!isOlder(resourceVersionOf(event.object) ?? "", this.#unconfirmed.resourceVersion)) {
        this.#confirm(false);
      }
    }
  }

  #restored(content: RestoredContent): void {
    const { items, resourceVersion, savedAtMs } = content;
    this.#loaded = undefined;
    this.#unconfirmed = { resourceVersion, savedAtMs };
    // An object that could not be stored, because of an index function for example, is in no later save.
    if (this.#context.store.held.size === items.length) this.#keeper.restored(content);
    else {
      this.#needsList = true;
      this.#context.quarantine.incomplete();
    }
    this.#context.waits.restored.open();
    this.#followed(); // the watch may have been opened while this was being stored
  }

  /**
   * Finds out what identifies the cluster whose objects were listed; a question after an earlier list ends.
   */
  #identify(): void {
    this.#question?.abort();
    const question = this.#question = linkedAbort(this.#stop.signal);
    this.#cluster.readAgain(question.signal).then((isNew) => {
      if (isNew) this.#keeper.touch();
    }, () => {}).finally(question.unlink); // with the next list
  }

  entered(phase: ReflectorPhase): void {
    this.#isWatching = phase === "watching";
    // When the next watch opens, listed objects may be on their way to the store.
    if (phase === "listing" || phase === "streaming") this.#needsList = true;
    this.#followed();
  }

  /** The store may have the content, and a watch from its version, or from a later one, may be open. */
  #followed(): void {
    if (!this.#isWatching || this.#needsList || this.#unconfirmed === undefined) return;
    if (this.#cluster.isUndecided) return void this.#recognise();
    if (this.#serverVersion === undefined) return;
    if (this.#hasReached(this.#serverVersion)) this.#confirm(true);
    else void this.#prove();
  }

  /**
   * @param isComplete As for `Reflector.confirmed`.
   * @param options `byList`: whichever cluster it is, this is its content.
   */
  #confirm(isComplete: boolean, { byList = false }: { readonly byList?: boolean } = {}): void {
    if (this.#unconfirmed === undefined) return;
    if (!byList && this.#cluster.isUndecided) {
      this.#isHeldBack ||= isComplete;
      return;
    }
    this.#unconfirmed = undefined;
    this.#confirmed.abort();
    this.#context.reflector().confirmed({ isComplete });
    this.#context.onConfirmed();
  }

  /**
   * Asks which cluster it is while a watch is open: the question broke before, and the watch may be another
   * cluster's. Without an answer after some tries, everything is listed.
   */
  async #recognise(): Promise<void> {
    const isKnown = await this.#asking(async (signal) => {
      await this.probe(signal).catch(() => signal.throwIfAborted());
      return !this.#cluster.isUndecided;
    });
    if (isKnown !== undefined) this.#recognised();
  }

  /**
   * Asks at growing intervals until it is so; `undefined`: no watch is open, or it was stopped, or listed.
   */
  async #asking(isSo: (signal: AbortSignal) => Promise<boolean>): Promise<boolean | undefined> {
    const { signal } = this.#confirmed;
    if (this.#isAsking || signal.aborted) return undefined;
    this.#isAsking = true;
    try {
      for (let tries = 0; tries < MOST_PROOFS; tries++) {
        await sleep(GRACE_MS * 4 ** tries, { clock: this.#context.clock, signal });
        if (!this.#isWatching) return undefined;
        if (await isSo(signal)) return true;
      }
      return false;
    } catch {
      return undefined;
    } finally {
      this.#isAsking = false;
    }
  }

  #recognised(): void {
    const { isOther, isUndecided } = this.#cluster;
    const restored = this.#unconfirmed?.resourceVersion ?? "";
    const isPast = this.#serverVersion !== undefined && isOlder(this.#serverVersion, restored);
    if (isOther || isUndecided || isPast) {
      this.#needsList = true;
      this.#context.quarantine.incomplete();
    } else if (this.#isHeldBack && !this.#needsList) this.#confirm(true);
    else this.#followed();
  }

  /** Asks for a proof until there is one. If none comes, an event or a bookmark has to do. */
  async #prove(): Promise<void> {
    if (await this.#asking((signal) => this.#isProven(signal)) && !this.#needsList) this.#confirm(true);
  }

  async #isProven(signal: AbortSignal): Promise<boolean> {
    const { store, waits, reflector } = this.#context;
    const metadata = this.#metadata;
    if (metadata === undefined) return false;
    try {
      const from = store.held.lastStoreSyncResourceVersion();
      const { clock } = this.#context;
      const asked = momentOf(clock);
      const changes = await inTime(
        (limited) => changesSince(metadata, { resourceVersion: from, signal: limited }),
        { clock, signal },
      );
      if (changes === undefined) return false;
      const after = changes.lastChange || from;
      // The reflector may have received what is still on its way to the store.
      if (await waits.versions.wait(after, { signal, timeoutMs: ANSWER_MS }) !== "reached") return false;
      return reflector().proven({ after, through: changes.through, asked });
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #hasReached(resourceVersion: string): boolean {
    const reached = this.#context.store.held.lastStoreSyncResourceVersion();
    return compareResourceVersions(reached, resourceVersion) >= 0;
  }

  status(): Pick<InformerStatus, "restored" | "snapshot"> {
    return {
      ...(this.#unconfirmed && { restored: this.#unconfirmed }),
      snapshot: {
        load: this.#load,
        ...(this.#refusal !== undefined && { refusal: this.#refusal }),
        ...this.#cluster.status(),
        ...this.#keeper.status(),
      },
    };
  }

  stop(): Promise<void> {
    this.#stop.abort();
    this.#confirmed.abort();
    return this.#keeper.stop();
  }
}
