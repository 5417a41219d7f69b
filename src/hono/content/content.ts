/** The content of one resource: what its informer holds, what it held before, and what has happened since. */

import type { StoreChange, StoreEvent } from "../../informer/events.ts";
import { compareResourceVersions, type KubernetesObject, resourceVersionOf } from "../../meta/object.ts";
import {
  PartwiseVersionWaiters,
  type VersionWaiters,
  type VersionWaitOptions,
} from "../../meta/version_waiters.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import { type Appended, EventLog, type EventLogOptions } from "./event_log.ts";
import { ContentHashes } from "./hashes.ts";
import type { LogEntry } from "./log_history.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";
import { ContentStates } from "./states.ts";

/** Who sends what comes into the log of a content. */
export interface ContentFollower<T> {
  /** A relist comes, or a new history, which no watch may continue with. Returns what to call after it. */
  interrupted(isNewHistory: boolean): () => void;
  /** There are entries to send. Whether it calls {@linkcode Content.trim} when it has sent them. */
  grown(): boolean;
  /** There was news of the API server. */
  heard(): void;
  /** An entry was dropped. */
  forget(entry: LogEntry<T>): void;
  /** The entries before this one were dropped. */
  trimmed(tail: number): void;
  /** Nothing more comes. */
  end(): void;
}

/** Follows one informer, in the order in which its store changes. */
export class Content<T extends KubernetesObject> {
  readonly #informer: ServedInformer<T>;
  readonly #unobserve: () => void;
  readonly #unlisten: (() => void) | undefined;
  readonly #waiters: VersionWaiters;
  readonly #held: ServedStore<Held<T>>;
  #follower: ContentFollower<T> | undefined;
  #isStarted = false;
  #isClosed = false;
  /** Changes whose versions say nothing about the position: the next bookmark places them. */
  #unplaced: StoreChange<Held<T>>[] = [];

  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  /** What has happened. */
  readonly log: EventLog<T>;
  /** What lists read. */
  readonly states: ContentStates<T>;
  /** Shows whether lists are the same. */
  readonly hashes: ContentHashes<T>;

  /** Starts to follow the informer. */
  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    const { holding, held } = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = holding;
    this.#held = held;
    this.log = new EventLog(options);
    this.states = new ContentStates(this.log, held, options.clock);
    this.hashes = new ContentHashes(this.log, this.states);
    this.#waiters = new PartwiseVersionWaiters(() => this.log.resourceVersion, options);
    const observer = (event: StoreEvent<Held<T>>) => this.#observe(event);
    this.#unobserve = informer.observeHeld?.(observer) ?? informer.observe(observer);
    this.#unlisten = informer.onStatus?.((status) => this.#letGoIfStopped(status));
    this.#letGoIfStopped(informer.status());
    this.isReady();
  }

  /** Who sends what comes, from now on. */
  follow(follower: ContentFollower<T>): void {
    this.#follower = follower;
  }

  /**
   * Whether the informer has synced, or has the content of a snapshot; before that there is nothing to read.
   */
  isReady(): boolean {
    if (!this.#informer.hasSynced() && !this.#informer.isRestored?.()) return false;
    if (!this.#isStarted) this.#start("");
    return true;
  }

  /** Whether nothing more comes. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The resourceVersion that the content has reached. */
  get resourceVersion(): string {
    return this.log.resourceVersion;
  }

  /** How many milliseconds ago the informer had the last contact with its server; 0 if it does not say. */
  get ageMs(): number {
    const { lagMs = 0 } = this.#informer.status();
    return Number.isFinite(lagMs) ? lagMs : 0;
  }

  /** The object of a key, as the store holds it. */
  held(key: string): Held<T> | undefined {
    return this.#held.getByKey(key);
  }

  /** Whether the content reaches a resourceVersion within a time; at once if it has, or never will. */
  async reaches(resourceVersion: string, options: VersionWaitOptions): Promise<boolean> {
    return await this.#waiters.wait(resourceVersion, options) === "reached";
  }

  /** Drops the oldest entries of the log, where there are too many, but none from `keepFrom` on. */
  trim(keepFrom: number = Infinity): void {
    const { log } = this;
    const before = log.tail;
    log.trim({ keepFrom, onDropped: (entry) => this.#follower?.forget(entry) });
    if (log.tail !== before) this.#follower?.trimmed(log.tail);
  }

  /** Stops following the informer, ends every watch and every wait. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unobserve();
    this.#unlisten?.();
    this.#follower?.end();
    this.#waiters.stop();
  }

  /** An informer that has stopped reaches no other version. */
  #letGoIfStopped({ phase }: { readonly phase: string }): void {
    if (phase === "stopped") this.#waiters.stop();
  }

  /** What the store holds now is where the log begins. */
  #start(resourceVersion: string): void {
    this.#isStarted = true;
    const stored = this.#informer.indexer.lastStoreSyncResourceVersion();
    const position = compareResourceVersions(resourceVersion, stored) > 0 ? resourceVersion : stored;
    this.states.replaced();
    this.log.begin(position, (key) => this.held(key));
  }

  #observe(event: StoreEvent<Held<T>>): void {
    if (!this.#isStarted) {
      // The first list comes as one event, or object by object, of which nothing is known until the informer
      // has synced.
      if (event.type === "replaced") this.#start(event.resourceVersion);
      return;
    }
    if (event.type === "bookmark") this.#bookmark(event.resourceVersion);
    else if (event.type === "replaced") this.#replaced(event.resourceVersion, event.changes);
    else this.#changed(event);
  }

  #changed(change: StoreChange<Held<T>>): void {
    const version = resourceVersionOf(change.object) ?? "";
    if (change.type === "updated" && this.#isUnchanged(change.oldObject, change.object)) return;
    this.states.changed(change);
    if (!this.log.places(version)) {
      this.#unplaced.push(change);
      return;
    }
    this.log.append(change, { isLate: !this.#advance(version, false) });
    this.#grown();
  }

  /**
   * Everything up to a resourceVersion is there: also what came since the position and is not placed yet, as
   * one step.
   */
  #bookmark(resourceVersion: string): void {
    const before = this.resourceVersion;
    const isLate = !this.#advance(resourceVersion, true);
    if (this.#unplaced.length > 0) this.#place({ isLate, ...(!isLate && { gapAfter: before }) });
    this.#follower?.heard();
  }

  #place(at: Appended): void {
    const changes = this.#unplaced;
    this.#unplaced = [];
    for (const change of changes) this.log.append(change, at);
    this.#grown();
  }

  /** Whether two states of one object are the same state: of two versions the content differs. */
  #isUnchanged(oldObject: Held<T>, object: Held<T>): boolean {
    return resourceVersionOf(oldObject) === resourceVersionOf(object) &&
      this.holding.isSameContent(oldObject, object);
  }

  #replaced(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    if (this.#unplaced.length > 0) this.#place({ isLate: true });
    // A server that went back in time: there is no way from what watches have seen to what is there, as the
    // same resourceVersion may mean another state. They receive what came before, and have to list again.
    const isNewHistory = compareResourceVersions(resourceVersion, this.resourceVersion) < 0;
    const after = this.#follower?.interrupted(isNewHistory);
    for (const change of changes) this.states.changed(change);
    this.states.replaced(isNewHistory);
    if (isNewHistory) this.log.restart(resourceVersion);
    else this.log.relist(resourceVersion, changes);
    after?.();
    this.#waiters.moved();
    if (!isNewHistory) this.#grown();
  }

  #advance(resourceVersion: string, isOfAll: boolean): boolean {
    const isMoved = this.log.advance(resourceVersion, isOfAll);
    if (isMoved) this.#waiters.moved();
    return isMoved;
  }

  #grown(): void {
    if (this.#follower?.grown() !== true) this.trim();
  }
}
