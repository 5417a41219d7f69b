/** The content of a snapshot: loaded at once, saved as it changes. */

import { isOlder, keyOf, resourceVersionOf } from "../../meta/object.ts";
import type { RestoredContent } from "../../reflector/state.ts";
import type { Held, Holding } from "../../store/holding.ts";
import type { ObjectHead } from "../../text/object_reader.ts";
import { ObjectText } from "../../text/object_text_reader.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { errorMessage, isThenable } from "../../util/errors.ts";
import { newObjectPacer } from "../../util/turns.ts";
import {
  type LoadedSnapshot,
  type SnapshotChange,
  type SnapshotContext,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotPut,
  SnapshotRefusedError,
  type SnapshotStatus,
  type SnapshotStorage,
} from "./storage.ts";
import { monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { defined, freezeObject, isPlainJson, isSameJson } from "../../util/json.ts";
import type { StoreEvent } from "../events.ts";
import { Backoff } from "../../util/backoff.ts";

/** Loads a snapshot: all of it or nothing, in turns. */
export async function loadSnapshot<T>(
  storage: SnapshotStorage,
  context: SnapshotContext<T>,
  { identity, timeoutMs, signal, onBegin }: {
    readonly identity: SnapshotIdentity;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    /** Receives what resolves when the storage has ended the load, which may be long after it is awaited. */
    readonly onBegin: (ended: Promise<void>) => void;
  },
): Promise<RestoredContent | undefined> {
  const load = async (limited: AbortSignal) => {
    const loaded = await storage.load(identity, limited);
    limited.throwIfAborted();
    return loaded && await contentOf(loaded, context, limited);
  };
  try {
    return await withTimeLimit((limited) => {
      const loading = load(limited);
      onBegin(loading.then(() => {}, () => {}));
      return loading;
    }, {
      ms: timeoutMs,
      newError: () => {
        const why = `it was not loaded within ${timeoutMs} ms; nothing is saved before the load ends`;
        return new SnapshotRefusedError("timeout", why);
      },
      clock: context.clock,
      signal,
    });
  } catch (error) {
    if (error instanceof SnapshotRefusedError) throw error;
    throw new SnapshotRefusedError("unreadable", errorMessage(error), { cause: error });
  }
}

async function contentOf<T>(
  loaded: LoadedSnapshot,
  context: SnapshotContext<T>,
  signal: AbortSignal,
): Promise<RestoredContent> {
  const { resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid, count } = loaded;
  if (typeof resourceVersion !== "string" || !Number.isFinite(savedAtMs) || !Number.isInteger(count)) {
    throw new SnapshotRefusedError("corrupt", "its version, its time or its number of objects is missing");
  }
  // A server refuses watches and lists of another one: nothing would ever replace it.
  if (!/^[0-9]*$/.test(resourceVersion)) {
    const version = JSON.stringify(resourceVersion.slice(0, MAX_SHOWN_LENGTH));
    throw new SnapshotRefusedError("corrupt", `its version ${version} is no decimal number`);
  }
  const pacer = newObjectPacer(context.pace, context.clock);
  const hold = newHold(context);
  const items: Held<T>[] = [];
  const keys = new Set<string>();
  const giveTurn = async () => {
    await pacer.rest();
    signal.throwIfAborted();
  };
  for await (const batch of loaded.entries()) {
    for (const entry of batch) {
      if (items.length === count) {
        throw new SnapshotRefusedError(
          "corrupt",
          `it has more than the ${count} objects that it should have`,
        );
      }
      items.push(hold(entry));
      if (keys.size === keys.add(entry.key).size) {
        throw new SnapshotRefusedError("corrupt", `it has ${JSON.stringify(entry.key)} twice`);
      }
      if (pacer.spend()) await giveTurn();
    }
    signal.throwIfAborted();
    // Batches may be empty.
    if (pacer.spend()) await giveTurn();
  }
  if (items.length !== count) {
    throw new SnapshotRefusedError("truncated", `it has ${items.length} objects, and should have ${count}`);
  }
  return {
    items,
    resourceVersion,
    watchedVersion: isBefore(watchedVersion, resourceVersion) ? watchedVersion : undefined,
    savedAtMs,
    needsList: needsList !== false || isNoPosition(resourceVersion),
    clusterUid,
  };
}

const MAX_SHOWN_LENGTH = 100;

/** Whether a watch from this version begins anywhere. */
export function isNoPosition(resourceVersion: string): boolean {
  return resourceVersion === "" || resourceVersion === "0";
}

function isBefore(version: unknown, resourceVersion: string): boolean {
  return typeof version === "string" && isOlder(version, resourceVersion);
}

/** Makes what puts an entry into the form in which the store holds it. */
function newHold<T>(
  { store: { holding }, informer: { transform, freezeObjects }, accepted }: SnapshotContext<T>,
): (entry: SnapshotEntry) => Held<T> {
  const take = (entry: SnapshotEntry): Held<T> => {
    const { key, held, head } = entry;
    if (held !== undefined) {
      if (holding.isHeld(held)) return holding.hold(held as Held<T>);
      throw new SnapshotRefusedError("foreign", `${JSON.stringify(key)} is in another form than the store's`);
    }
    const { json } = entry;
    if (holding.holdText === undefined) return holding.hold(JSON.parse(json));
    if (head !== undefined) return holding.holdText.hold(json, head, { key, fields: [] }) as Held<T>;
    const read = holding.holdText.reader.read(json);
    if (!(read instanceof ObjectText)) return read as Held<T>;
    return holding.holdText.hold(read.text, read.head as SnapshotEntry["head"] & object, read) as Held<T>;
  };
  return (entry) => {
    const { key } = entry;
    try {
      const held = take(entry);
      const own = keyOf(holding.keyFunc, held, "load");
      if (own !== key) {
        throw new SnapshotRefusedError(
          "other-identity",
          `the object saved as ${JSON.stringify(key)} has the key ${JSON.stringify(own)}`,
        );
      }
      if (resourceVersionOf(held) === undefined) throw new TypeError("it has no metadata");
      if ((transform !== undefined || freezeObjects) && !holding.isHeld(held)) {
        if (freezeObjects) freezeObject(held);
        accepted.add(held as WeakKey);
      }
      return held;
    } catch (error) {
      if (error instanceof SnapshotRefusedError) throw error;
      throw new SnapshotRefusedError("corrupt", `${JSON.stringify(key)}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  };
}

export interface SnapshotKeeperOptions {
  readonly intervalMs: number;
  /** How long the last save may take, in milliseconds. */
  readonly stopTimeoutMs: number;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;

/**
 * Saves what a storage does not have yet. While a save runs, or until it is due, only the keys of what
 * changes are gathered; the content is read from the store in the turn in which the save begins, together
 * with its version. So a save always has the content at one version, and a slow storage needs no queue.
 *
 * After a save that failed, the storage is in an unknown state: the next save replaces everything.
 */
export class SnapshotKeeper<T> {
  readonly #storage: SnapshotStorage;
  readonly #context: SnapshotContext<T>;
  readonly #options: SnapshotKeeperOptions;
  readonly #clusterUid: () => string | undefined;
  /** The keys of what has changed since the last save. */
  #changed = new Set<string>();
  /** The next save replaces everything. */
  #replaces = true;
  /** Whether the store's version has changed since the last save, or its content. */
  #isDue = false;
  /** Whether the store has the content at one particular version. */
  #hasPosition = false;
  /** The version that the store had after the last event. */
  #reached = "";
  /** The version at which the watch is, while a proof by state is further. */
  #watchedVersion: string | undefined;
  /** The losses that the last list has repaired. */
  #repairedLosses = 0;
  #timer: TimerHandle;
  #saving: Promise<void> | undefined;
  #isStopped = false;
  /** The stop does not wait for the last save any more: unsaved changes never will be. */
  #isGivenUp = false;
  readonly #retryDelay = new Backoff({ durationMs: FIRST_RETRY_MS, factor: 2, capMs: LAST_RETRY_MS });
  /** No save before this time, after one that failed. */
  #quietUntilMs = -Infinity;
  #failedSaves = 0;
  #lastError: string | undefined;
  #savedResourceVersion: string | undefined;
  #lastSaveTimeMs: number | undefined;

  constructor(
    storage: SnapshotStorage,
    context: SnapshotContext<T>,
    options: SnapshotKeeperOptions,
    clusterUid: () => string | undefined,
  ) {
    this.#clusterUid = clusterUid;
    this.#storage = storage;
    this.#context = context;
    this.#options = options;
  }

  /** The storage is loading: nothing is saved, and it is not closed, before that has ended. */
  loading(ended: Promise<void>): void {
    this.#saving = ended.then(() => {
      this.#saving = undefined;
      if (this.#isDue) this.#schedule(0);
    });
  }

  /** The storage has the content of the store, which it has loaded. */
  restored({ resourceVersion, watchedVersion }: RestoredContent): void {
    this.#reached = resourceVersion;
    this.#watchedVersion = watchedVersion;
    this.#replaces = false;
    this.#hasPosition = !isNoPosition(resourceVersion);
    this.#savedResourceVersion = resourceVersion;
  }

  /** Something besides the content has changed that is saved with it. */
  touch(): void {
    this.#isDue = true;
    this.#schedule(this.#options.intervalMs);
  }

  /** Gathers what an event of the store has changed, or saves it. */
  gather(event: StoreEvent<Held<T>>): void {
    const { quarantine } = this.#context;
    this.#isDue = true;
    this.#follow(event);
    switch (event.type) {
      case "bookmark":
        this.#hasPosition = true;
        break;
      case "replaced":
        this.#hasPosition = !isNoPosition(event.resourceVersion);
        if (quarantine.isRepaired) this.#repairedLosses = quarantine.losses;
        if (!this.#replaces) { for (const { key } of event.changes) this.#changed.add(key); }
        break;
      default:
        if (!this.#replaces) this.#changed.add(event.key);
    }
    if (this.#storage.savesInTurn && event.type !== "bookmark" && !this.#isQuiet()) this.#save();
    else this.#schedule(this.#options.intervalMs);
  }

  /** Notes where the watch is. Its late events do not move the store's version. */
  #follow(event: StoreEvent<Held<T>>): void {
    const reached = this.#context.store.held.lastStoreSyncResourceVersion();
    if (event.type === "bookmark" && event.byState) this.#watchedVersion ??= this.#reached;
    else {
      const isList = event.type === "replaced" && !event.isGap;
      if (isList || event.type === "bookmark" || reached !== this.#reached) this.#watchedVersion = undefined;
    }
    this.#reached = reached;
  }

  /** The status of the saves. */
  status(): Omit<SnapshotStatus, "load" | "refusal"> {
    return defined({
      failedSaves: this.#failedSaves,
      lastError: this.#lastError,
      savedResourceVersion: this.#savedResourceVersion,
      lastSaveTimeMs: this.#lastSaveTimeMs,
    });
  }

  /** Saves what is left, and closes the storage; gives up after a time. */
  async stop(): Promise<void> {
    const { clock, logger, name } = this.#context;
    const { stopTimeoutMs } = this.#options;
    this.#isStopped = true;
    const newError = () => new Error(`it did not finish within ${stopTimeoutMs} ms`);
    try {
      await withTimeLimit(() => this.#finish(), { ms: stopTimeoutMs, newError, clock });
    } catch (error) {
      this.#isGivenUp = true;
      logger.error(`${name}: could not finish the snapshot: ${errorMessage(error)}`, { error });
    }
  }

  async #finish(): Promise<void> {
    await this.#saving;
    if (this.#isDue && !this.#isGivenUp) this.#save();
    await this.#saving;
    await this.#storage.close?.();
  }

  #isQuiet(): boolean {
    return monotonicNow(this.#context.clock) < this.#quietUntilMs;
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== undefined || this.#saving !== undefined || this.#isStopped) return;
    const { clock } = this.#context;
    const quietMs = this.#quietUntilMs - monotonicNow(clock);
    this.#timer = clock.setTimeout(() => this.#save(), Math.max(delayMs, quietMs));
  }

  #save(): void {
    if (this.#saving !== undefined) return;
    const { clock, metrics, name } = this.#context;
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    const startMs = monotonicNow(clock);
    const change = this.#take();
    const settled = (error?: { readonly cause: unknown }) => {
      this.#saving = undefined;
      const seconds = (monotonicNow(clock) - startMs) / 1_000;
      metrics?.observe("informer_snapshot_save_duration_seconds", seconds, { name });
      if (error === undefined) this.#saved(change);
      else this.#failed(error.cause);
      if (this.#isDue) this.#schedule(this.#options.intervalMs);
    };
    try {
      const saving = this.#storage.save(change);
      if (!isThenable(saving)) return settled();
      this.#saving = Promise.resolve(saving).then(() => {
        if (this.#storage.savesInTurn) {
          throw new TypeError("a storage that saves in the turn must not be asynchronous");
        }
      }).then(() => settled(), (cause) => settled({ cause }));
    } catch (cause) {
      settled({ cause });
    }
  }

  /** Takes the changes since the last save, and the version of the content, in one turn. */
  #take(): SnapshotChange {
    const { store, clock, quarantine, reflector } = this.#context;
    const { held, holding } = store;
    const puts: SnapshotPut[] = [];
    const deletes: string[] = [];
    for (const key of this.#replaces ? held.listKeys() : this.#changed) {
      const object = held.getByKey(key);
      if (object === undefined) deletes.push(key);
      else puts.push(new Put(key, object, holding));
    }
    const resourceVersion = held.lastStoreSyncResourceVersion();
    const change = defined<SnapshotChange>({
      resourceVersion,
      watchedVersion: this.#watchedVersion,
      savedAtMs: reflector().status().lastContactTimeMs ?? clock.now(),
      needsList: !this.#hasPosition || quarantine.losses > this.#repairedLosses || quarantine.keys.size > 0,
      clusterUid: this.#clusterUid(),
      replaces: this.#replaces,
      puts,
      deletes,
    });
    this.#changed = new Set();
    this.#replaces = false;
    this.#isDue = false;
    return change;
  }

  #saved({ resourceVersion }: SnapshotChange): void {
    const { clock, logger, metrics, name } = this.#context;
    if (this.#failedSaves > 0) logger.info(`${name}: the snapshot is saved again`);
    this.#failedSaves = 0;
    this.#retryDelay.reset();
    this.#savedResourceVersion = resourceVersion;
    this.#lastSaveTimeMs = clock.now();
    metrics?.count("informer_snapshot_saves_total", 1, { name, outcome: "saved" });
  }

  #failed(error: unknown): void {
    const { clock, logger, metrics, name } = this.#context;
    this.#lastError = errorMessage(error);
    const text = `${name}: could not save the snapshot: ${this.#lastError}`;
    if (this.#failedSaves++ === 0) logger.error(text, { error });
    else logger.debug(text, { error });
    metrics?.count("informer_snapshot_saves_total", 1, { name, outcome: "failed" });
    this.#replaces = true;
    this.#isDue = true;
    this.#changed.clear();
    this.#quietUntilMs = monotonicNow(clock) + this.#retryDelay.step();
  }
}

/** An object to save. */
class Put<T> implements SnapshotPut {
  readonly key: string;
  readonly held: Held<T>;
  readonly #holding: Holding<T>;

  constructor(key: string, held: Held<T>, holding: Holding<T>) {
    this.key = key;
    this.held = held;
    this.#holding = holding;
  }

  get head(): ObjectHead {
    const { apiVersion, kind } = this.held as ObjectHead;
    const { metadata } = this.#holding.head(this.held);
    return defined({ apiVersion, kind, metadata });
  }

  json(): string {
    const text = this.#holding.json(this.held);
    if (text !== undefined) return text;
    const object = this.#holding.peek(this.held);
    const json = JSON.stringify(object);
    // Mostly the object is plain. If not, it may be the same nevertheless: -0 is.
    if (isPlainJson(object) || isSameJson(JSON.parse(json), object)) return json;
    throw new TypeError(
      `Cannot save ${JSON.stringify(this.key)}: it is not the same after it was written as JSON; ` +
        "does a transform put dates, maps or the like into it?",
    );
  }
}
