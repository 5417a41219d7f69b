/**
 * A watch that a test holds the other end of.
 * @module
 */

import type { WatchItem } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import type { BookmarkObject } from "../meta/watch_event.ts";
import { type Deferred, deferred } from "../util/deferred.ts";

/**
 * An open watch, fed by hand: what a `ListerWatcher`'s `watch` returns in a test.
 *
 * Events wait without limit until they are read; those that wait are read as one batch. It has one reader. Once it is
 * over, what comes is dropped.
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
 */
export class FakeWatcher<T extends KubernetesObject = KubernetesObject>
  implements AsyncIterable<readonly WatchItem<T>[]> {
  #waiting: WatchItem<T>[] = [];
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: Deferred<void> | undefined;
  #onClose: (() => void) | undefined;
  #isClosedByReader = false;

  /** Makes an open watch; `onClose` is called once, when it is over or its reader has left. */
  constructor(options: { readonly onClose?: () => void } = {}) {
    this.#onClose = options.onClose;
  }

  /** Whether it is over: stopped, failed, or left by its reader. */
  get isStopped(): boolean {
    return this.#isOver;
  }

  /** Whether the reader left before the watch was over. */
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

  /** Sends BOOKMARK with a resourceVersion, and with annotations if there are any. */
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

  /** Ends the watch, as the server does at its timeout; what was sent is still read. */
  stop(): void {
    this.#end();
  }

  /** Breaks the watch off, as a lost connection does: what was sent is still read, and then this is thrown. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#failure = { error };
    this.#end();
  }

  /** Reads it; there may be one reader only. */
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
