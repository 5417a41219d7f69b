/** A list that is read item by item while its next pages are on their way. */

import type { ListOptions, ListPage, Quarantined } from "../meta/list_watch.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import { abortable, linkedAbort } from "../util/abort.ts";
import { type Deferred, deferred } from "../util/deferred.ts";
import { Deque } from "../util/collections.ts";
import type { ListerWatcher } from "./lister_watcher.ts";

/**
 * Options of {@linkcode eachListItem}. All may be left out.
 *
 * @category Reflector
 */
export interface EachListItemOptions extends Partial<ListWatchContext> {
  /** How many pages may wait to be read; 5 by default, 1 for as little memory as can be. */
  readonly pageBufferSize?: number;
  /** Receives each item that was not accepted, when its page is read; they are dropped by default. */
  readonly onQuarantined?: (quarantined: Quarantined) => void;
}

const DEFAULT_PAGE_SIZE = 500;
const DEFAULT_PAGE_BUFFER_SIZE = 5;

/**
 * The items of a list, one after the other, without ever holding the whole list: pages of `options.limit`
 * items (500 by default) are requested while those before them are read, and at most `pageBufferSize` wait.
 * Leaving the loop ends the request in flight.
 *
 * The pages after the first name no resourceVersion: their continue token holds it. A token that has run out
 * is an error here (410): items were handed out already, and a list from the beginning would bring them
 * again.
 *
 * Mirrors client-go's `ListPager.EachListItem`, which sends the resourceVersion with every page.
 *
 * @throws {RangeError} `pageBufferSize` is not a whole number from 1.
 * @throws {StatusError} The server refused a page.
 * @throws {NetworkError} No answer came.
 * @throws The signal's reason, once it is aborted.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { eachListItem } from "@listwatch/cache/reflector";
 * const page = { kind: "PodList", apiVersion: "v1", metadata: {}, items: [{ metadata: { name: "web-1" } }] };
 * const cluster = newCluster({ server: "http://127.0.0.1:8001", fetch: () => Response.json(page) });
 * for await (const pod of eachListItem(cluster.resource<KubernetesObject>("v1/pods"), { limit: 100 })) {
 *   console.log(pod.metadata?.name); // web-1
 * }
 * ```
 *
 * @category Reflector
 */
export async function* eachListItem<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions = {},
  reading: EachListItemOptions = {},
): AsyncGenerator<T, void, undefined> {
  const { pageBufferSize = DEFAULT_PAGE_BUFFER_SIZE, onQuarantined, signal } = reading;
  if (!Number.isInteger(pageBufferSize) || pageBufferSize < 1) {
    throw new RangeError(
      `Cannot list with a pageBufferSize of ${pageBufferSize}: it must be a whole number from 1`,
    );
  }
  const link = linkedAbort(signal);
  const pages = new PageBuffer<T>(pageBufferSize);
  const filling = fill(source, { ...options, limit: options.limit || DEFAULT_PAGE_SIZE }, pages, link.signal);
  try {
    for (let page = await pages.shift(); page !== undefined; page = await pages.shift()) {
      for (const quarantined of page.quarantined ?? []) onQuarantined?.(quarantined);
      yield* page.items;
    }
  } finally {
    link.unlink();
    link.abort(new DOMException("the list is no longer read", "AbortError"));
    pages.close();
    await filling;
  }
}

async function fill<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions,
  pages: PageBuffer<T>,
  signal: AbortSignal,
): Promise<void> {
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options;
  let next: ListOptions | undefined = options;
  try {
    while (next !== undefined && !pages.isClosed) {
      const page: ListPage<T> = await abortable(source.list(next, { signal }), signal);
      const token = page.metadata.continue;
      next = token ? { ...rest, continue: token } : undefined;
      await pages.push(page);
    }
    pages.end();
  } catch (error) {
    pages.end({ error });
  }
}

/** Pages between their requests and their reader. */
class PageBuffer<T> {
  readonly #size: number;
  readonly #pages = new Deque<ListPage<T>>();
  #end: { readonly error?: unknown } | undefined;
  #closed = false;
  #reader: Deferred<void> | undefined;
  #room: Deferred<void> | undefined;

  constructor(size: number) {
    this.#size = size;
  }

  /** Whether the reader has left. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Adds a page, and resolves when there is room for another. */
  async push(page: ListPage<T>): Promise<void> {
    this.#pages.push(page);
    this.#reader?.resolve();
    while (this.#pages.length >= this.#size && !this.#closed) {
      this.#room = deferred();
      await this.#room.promise;
    }
  }

  /** No page will follow: it was the last one, or a request failed. */
  end(end: { readonly error?: unknown } = {}): void {
    this.#end = end;
    this.#reader?.resolve();
  }

  /** The next page; `undefined` at the end. */
  async shift(): Promise<ListPage<T> | undefined> {
    for (;;) {
      const page = this.#pages.shift();
      if (page !== undefined) {
        this.#room?.resolve();
        return page;
      }
      if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return undefined;
      }
      this.#reader = deferred();
      await this.#reader.promise;
    }
  }

  /** The reader has left. */
  close(): void {
    this.#closed = true;
    this.#room?.resolve();
  }
}
