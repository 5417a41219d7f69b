import { type KubernetesObject, metaNamespaceKey } from "../meta/object.ts";
import {
  type BookmarkObject,
  INITIAL_EVENTS_END_ANNOTATION,
  type ListOptions,
  type ListPage,
  type WatchItem,
  type WatchStream,
} from "../meta/list_watch.ts";
import { type Status, StatusError } from "../meta/status.ts";
import { watchTooOld } from "../protocol/statuses.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import { onAbort } from "../util/abort.ts";
import { initialEventsUnsupported } from "./api_errors.ts";

/**
 * An open watch that a test feeds: what `watch` of a `ListerWatcher` returns in a test.
 *
 * Events wait without limit until they are read; the waiting events are read as one batch. It has one reader.
 * After its end, events are dropped. Mirrors `FakeWatcher` of apimachinery's `watch`, without its blocking.
 */
export class FakeWatcher<T extends KubernetesObject = KubernetesObject>
  implements AsyncIterable<readonly WatchItem<T>[]> {
  #waiting: WatchItem<T>[] = [];
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: PromiseWithResolvers<void> | undefined;
  #onClose: (() => void) | undefined;
  #isClosedByReader = false;

  /** Makes an open watch; `onClose` is called once, at its end or when its reader leaves. */
  constructor(options: { readonly onClose?: () => void } = {}) {
    this.#onClose = options.onClose;
  }

  /** Whether the watch has ended: stopped, failed, or left by its reader. */
  get isStopped(): boolean {
    return this.#isOver;
  }

  /** Whether the reader left before the end. */
  get isClosedByReader(): boolean {
    return this.#isClosedByReader;
  }

  /** Sends ADDED. */
  add(object: T): void {
    this.send({ type: "ADDED", object });
  }

  /** Sends MODIFIED. */
  modify(object: T): void {
    this.send({ type: "MODIFIED", object });
  }

  /** Sends DELETED. */
  delete(lastState: T): void {
    this.send({ type: "DELETED", object: lastState });
  }

  /** Sends BOOKMARK with a resourceVersion and optional annotations. */
  bookmark(resourceVersion: string, annotations?: Readonly<Record<string, string>>): void {
    const object: BookmarkObject = { metadata: { resourceVersion, ...(annotations && { annotations }) } };
    this.send({ type: "BOOKMARK", object });
  }

  /** Sends ERROR. */
  error(status: Status): void {
    this.send({ type: "ERROR", object: status });
  }

  /** Sends any event. */
  send(item: WatchItem<T>): void {
    if (this.#isOver) return;
    this.#waiting.push(item);
    this.#wake?.resolve();
  }

  /** Ends the watch, as a server does at its timeout; the sent events can still be read. */
  stop(): void {
    this.#end();
  }

  /** Breaks the watch, as a lost connection does: after the sent events the reader receives this error. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#failure = { error };
    this.#end();
  }

  /** Reads the events; there can be one reader only. */
  [Symbol.asyncIterator](): AsyncIterator<readonly WatchItem<T>[]> {
    return {
      next: async () => {
        if (this.#waiting.length === 0 && !this.#isOver) {
          this.#wake = Promise.withResolvers();
          await this.#wake.promise;
          this.#wake = undefined;
        }
        if (this.#waiting.length > 0) {
          const batch = this.#waiting;
          this.#waiting = [];
          return { done: false, value: batch };
        }
        const failure = this.#failure;
        this.#failure = undefined;
        if (failure !== undefined) throw failure.error;
        return { done: true, value: undefined };
      },
      return: () => {
        if (!this.#isOver) this.#isClosedByReader = true;
        this.#waiting = [];
        this.#end();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wake?.resolve();
    this.#onClose?.();
    this.#onClose = undefined;
  }
}

/** Options of {@linkcode FakeControllerSource}. */
export interface FakeControllerSourceOptions {
  /**
   * Whether a watch with `sendInitialEvents` is served. By default it is refused with 422, so that reflectors
   * list; client-go's fake refuses it too.
   */
  readonly watchList?: boolean;
  /** A name for log lines; `fake` by default. */
  readonly description?: string;
}

/** A request to a {@linkcode FakeControllerSource}. */
export interface FakeSourceRequest {
  readonly verb: "list" | "watch";
  readonly options: ListOptions;
}

/**
 * A `ListerWatcher` that a test fills: every change gets the next resourceVersion and is sent to the open
 * watches, except by the `...DropWatch` methods. {@linkcode FakeControllerSource.resetWatch} makes every
 * watcher list again.
 *
 * Lists are complete: `limit` and selectors are ignored. All objects are copies, as a transform may change
 * them.
 *
 * Mirrors `FakeControllerSource` of client-go's `tools/cache/testing`, except that a watch from the version
 * just before the oldest known change is served, as no change is lost.
 *
 * @example
 * ```ts
 * import { SharedIndexInformer } from "@listwatch/cache";
 * import { FakeControllerSource, FakeWatcher, pod } from "@listwatch/cache/testing";
 * const source = new FakeControllerSource();
 * source.add(pod("web-1"));
 * const informer = new SharedIndexInformer(source);
 * await using _running = informer.start();
 * await informer.synced();
 * console.log(informer.indexer.listKeys()); // [ "default/web-1" ]
 * const watcher = new FakeWatcher();
 * watcher.add(pod("web-1", { resourceVersion: "1" }));
 * watcher.stop();
 * for await (const batch of watcher) console.log(batch[0].type); // ADDED
 * ```
 */
export class FakeControllerSource<T extends KubernetesObject = KubernetesObject> {
  /** Thrown by every list while it is set. */
  listError: unknown;
  /** Thrown by every watch while it is set. */
  watchError: unknown;
  /** The name in log lines. */
  readonly description: string;
  readonly #watchList: boolean;
  readonly #items = new Map<string, T>();
  readonly #watchers = new Set<FakeWatcher<T>>();
  readonly #requests: FakeSourceRequest[] = [];
  #changes: WatchItem<T>[] = [];
  #lastVersion = 0;
  #isShutDown = false;

  constructor(options: FakeControllerSourceOptions = {}) {
    this.#watchList = options.watchList ?? false;
    this.description = options.description ?? "fake";
  }

  /** The resourceVersion of the last change; `"0"` before the first. */
  get resourceVersion(): string {
    return String(this.#lastVersion);
  }

  /** How many watches are open. */
  get openWatches(): number {
    return this.#watchers.size;
  }

  /** The lists and watches, oldest first. */
  get requests(): readonly FakeSourceRequest[] {
    return this.#requests;
  }

  /** Adds an object; returns it with its resourceVersion. */
  add(object: T): T {
    return this.#change("ADDED", object, true);
  }

  /** Replaces an object; returns it with its resourceVersion. */
  modify(object: T): T {
    return this.#change("MODIFIED", object, true);
  }

  /** Deletes an object; returns its last state, with the resourceVersion of the delete. */
  delete(lastState: T): T {
    return this.#change("DELETED", lastState, true);
  }

  /** Adds an object without an event. */
  addDropWatch(object: T): T {
    return this.#change("ADDED", object, false);
  }

  /** Replaces an object without an event. */
  modifyDropWatch(object: T): T {
    return this.#change("MODIFIED", object, false);
  }

  /** Deletes an object without an event. */
  deleteDropWatch(lastState: T): T {
    return this.#change("DELETED", lastState, false);
  }

  /**
   * Ends every watch and drops the history: a watch from an older version than the present one is now
   * expired.
   */
  resetWatch(): void {
    this.#changes = [];
    for (const watcher of this.#watchers) watcher.stop();
  }

  /** Ends every watch, with or without an error, and keeps the history. */
  closeWatches(error?: unknown): void {
    for (const watcher of this.#watchers) {
      if (error === undefined) watcher.stop();
      else watcher.fail(error);
    }
  }

  /** Ends every watch; later lists and watches are refused. */
  shutdown(): void {
    this.#isShutDown = true;
    this.closeWatches();
  }

  /** A list of all objects, by namespace and name. */
  list(options: ListOptions, context: ListWatchContext): Promise<ListPage<T>> {
    return this.#answer("list", options, context, () => {
      if (this.listError !== undefined) throw this.listError;
      const items = this.#sorted().map((object) => structuredClone(object));
      return { metadata: { resourceVersion: this.resourceVersion }, items };
    });
  }

  /**
   * A watch that begins with the changes after `resourceVersion`.
   *
   * Rejects with a `StatusError` 410 if the history no longer has them, with 422 for `sendInitialEvents`
   * unless that is served, and with an `Error` if the version is not a number or in the future.
   */
  watch(options: ListOptions, context: ListWatchContext): Promise<WatchStream<T>> {
    return this.#answer("watch", options, context, () => {
      if (this.watchError !== undefined) throw this.watchError;
      const missed = options.sendInitialEvents ? this.#initialEvents(options) : this.#changesAfter(options);
      let letGo = () => {};
      const watcher = new FakeWatcher<T>({
        onClose: () => {
          this.#watchers.delete(watcher);
          letGo();
        },
      });
      this.#watchers.add(watcher);
      for (const item of missed) watcher.send(structuredClone(item));
      letGo = onAbort(context.signal, () => watcher.fail(context.signal.reason));
      return watcher;
    });
  }

  #change(type: "ADDED" | "MODIFIED" | "DELETED", object: T, isSent: boolean): T {
    if (this.#isShutDown) throw new Error("Cannot change a FakeControllerSource after its shutdown");
    const resourceVersion = String(++this.#lastVersion);
    const copy: T = structuredClone(object);
    const stored: T = { ...copy, metadata: { ...copy.metadata, resourceVersion } };
    const key = metaNamespaceKey(stored);
    if (type === "DELETED") this.#items.delete(key);
    else this.#items.set(key, stored);
    const change: WatchItem<T> = { type, object: stored };
    this.#changes.push(change);
    if (isSent) { for (const watcher of this.#watchers) watcher.send(structuredClone(change)); }
    return structuredClone(stored);
  }

  #sorted(): T[] {
    const keys = Array.from(this.#items.keys()).sort();
    return keys.map((key) => this.#items.get(key)!);
  }

  #initialEvents(options: ListOptions): WatchItem<T>[] {
    if (!this.#watchList) throw initialEventsUnsupported();
    const items: WatchItem<T>[] = this.#sorted().map((object) => ({ type: "ADDED", object }));
    if (options.allowWatchBookmarks) {
      const annotations = { [INITIAL_EVENTS_END_ANNOTATION]: "true" };
      items.push({
        type: "BOOKMARK",
        object: { metadata: { resourceVersion: this.resourceVersion, annotations } },
      });
    }
    return items;
  }

  #changesAfter({ resourceVersion = "" }: ListOptions): WatchItem<T>[] {
    if (!/^[0-9]+$/.test(resourceVersion)) {
      throw new Error(
        `Cannot watch from resourceVersion ${JSON.stringify(resourceVersion)}: it is not a number`,
      );
    }
    const version = Number(resourceVersion);
    const oldest = this.#lastVersion - this.#changes.length; // the history begins after it
    if (version > this.#lastVersion) {
      throw new Error(`Cannot watch from resourceVersion ${version}: the fake is at ${this.#lastVersion}`);
    }
    if (version < oldest) {
      throw new StatusError(watchTooOld(resourceVersion, String(oldest)));
    }
    return this.#changes.slice(version - oldest);
  }

  // Answers in a later turn, like a server.
  async #answer<R>(
    verb: FakeSourceRequest["verb"],
    options: ListOptions,
    { signal }: ListWatchContext,
    answer: () => R,
  ): Promise<R> {
    signal.throwIfAborted();
    this.#requests.push({ verb, options });
    await Promise.resolve();
    signal.throwIfAborted();
    if (this.#isShutDown) throw new Error(`Cannot ${verb} a FakeControllerSource after its shutdown`);
    return answer();
  }
}
