/**
 * A watch that a test feeds.
 * @module
 */

import type { BookmarkObject, WatchItem } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import { type Deferred, deferred } from "../util/deferred.ts";

/**
 * An open watch that a test feeds: what `watch` of a `ListerWatcher` returns in a test.
 *
 * Events wait without limit until they are read; the waiting events are read as one batch. It has one reader.
 * After its end, events are dropped.
 *
 * Mirrors `FakeWatcher` of apimachinery's `watch`, without its blocking.
 *
 * @example
 * ```ts
 * import { FakeWatcher, pod } from "@listwatch/cache/testing";
 * const watcher = new FakeWatcher();
 * watcher.add(pod("web-1", { resourceVersion: "1" }));
 * watcher.stop();
 * for await (const batch of watcher) console.log(batch[0].type); // ADDED
 * ```
 *
 * @category Testing
 */
export class FakeWatcher<T extends KubernetesObject = KubernetesObject>
  implements AsyncIterable<readonly WatchItem<T>[]> {
  #waiting: WatchItem<T>[] = [];
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: Deferred<void> | undefined;
  #onClose: (() => void) | undefined;
  #isClosedByReader = false;

  /** Makes an open watch; `onClose` is called once, at its end or when its reader leaves. */
  constructor(options: { readonly onClose?: () => void } = {}) {
    this.#onClose = options.onClose;
  }

  /** Whether it has ended: stopped, failed, or left by its reader. */
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
          this.#wake = deferred();
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
