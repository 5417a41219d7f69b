/** Lists that come in pages: put together, read item by item, and the request of one page. */

import type { ListOptions, ListPage, Quarantined } from "../meta/list_watch.ts";
import type { ListMeta } from "../meta/object.ts";
import { NetworkError } from "../meta/request.ts";
import { isResourceExpired } from "../meta/status.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import { abortable, linkedAbort } from "../util/abort.ts";
import { type Deferred, deferred } from "../util/deferred.ts";
import { Deque } from "../util/collections.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import type { ReflectorSettings } from "./reflector_options.ts";
import type { ListAttempt, ReflectorState } from "./state.ts";
import { inTime, Watchdog } from "./timers.ts";

/**
 * A list put together from its pages.
 *
 * @category Reflector
 */
export interface PagedList<T> {
  readonly items: T[];
  /** The metadata of the first page: its resourceVersion is that of the whole list. */
  readonly metadata: ListMeta;
  /** Items that were not accepted. */
  readonly quarantined: readonly Quarantined[];
  /** Whether there was more than one page. */
  readonly paginated: boolean;
}

/**
 * Options of {@linkcode listAllPages}.
 *
 * @category Reflector
 */
export interface PagerOptions<T> extends ListWatchContext {
  /**
   * Called after each page, with the number of items so far and how many are still to come, where the server
   * says.
   */
  readonly onPage?: (items: number, remaining: number | undefined) => void;
  /** Looks at each page before its items are taken; throws to refuse the list. */
  readonly checkPage?: (page: ListPage<T>) => void;
  /** Whether a continue token that ran out is answered by one list without a limit; true by default. */
  readonly fullListIfExpired?: boolean;
}

/**
 * Lists page by page: `options.limit` is the page size, 0 or absent for one page.
 *
 * The pages after the first name no resourceVersion: their continue token holds it. When a token has run out,
 * the pages so far are dropped and everything is listed once more in one page.
 *
 * Mirrors client-go's [`ListPager.List`](https://github.com/kubernetes/client-go/blob/master/tools/pager/pager.go).
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { listAllPages } from "@listwatch/cache/reflector";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const { fetch } = new InMemoryApiServer();
 * const pods = newCluster({ server: "http://in-memory", fetch }).resource<KubernetesObject>("v1/pods");
 * const { items } = await listAllPages(pods, { limit: 500 }, { signal: AbortSignal.timeout(10_000) });
 * console.log(items.length); // 0
 * ```
 *
 * @throws Whatever the source throws.
 *
 * @category Reflector
 */
export async function listAllPages<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions,
  pager: PagerOptions<T>,
): Promise<PagedList<T>> {
  const { signal, onPage, checkPage, fullListIfExpired = true } = pager;
  const request = async (page: ListOptions, itemsBefore = 0): Promise<ListPage<T>> => {
    const answer = await source.list(page, { signal });
    checkPage?.(answer);
    onPage?.(itemsBefore + answer.items.length, answer.metadata.remainingItemCount);
    return answer;
  };
  const whole = ({ items, metadata, quarantined = [] }: ListPage<T>, paginated: boolean): PagedList<T> => ({
    items,
    metadata,
    quarantined,
    paginated,
  });
  const first = await request(options);
  if (!first.metadata.continue) return whole(first, false);
  const items = first.items.slice();
  const quarantined = [...(first.quarantined ?? [])];
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options;
  for (let token: string | undefined = first.metadata.continue; token;) {
    let page: ListPage<T>;
    try {
      page = await request({ ...rest, continue: token }, items.length);
    } catch (error) {
      if (!fullListIfExpired || !isResourceExpired(error)) throw error;
      const { limit: ___, ...unlimited } = options;
      return whole(await request(unlimited), true);
    }
    for (const item of page.items) items.push(item);
    for (const one of page.quarantined ?? []) quarantined.push(one);
    token = page.metadata.continue;
  }
  return { items, metadata: first.metadata, quarantined, paginated: true };
}

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

/** How many times longer than its longest silence a page may take as a whole. */
const LONGEST_LIST = 10;

/**
 * Requests one page of a list. It may take long as long as it makes progress: bytes or items that arrive.
 *
 * @throws {NetworkError} The page made no progress, or did not come to its end.
 * @throws Whatever the source throws.
 */
export async function requestList<T>(
  source: ListerWatcher<T>,
  request: ListOptions & { readonly signal: AbortSignal },
  settings: Pick<ReflectorSettings, "name" | "clock" | "listTimeoutMs" | "intake" | "holdText">,
  onBytes?: (bytes: number) => void,
): Promise<ListPage<T>> {
  const { name, clock, listTimeoutMs, intake, holdText } = settings;
  const { signal, ...listOptions } = request;
  const link = linkedAbort(signal);
  let bytes = 0;
  const silence = new Watchdog(clock, listTimeoutMs, () => {
    const what = bytes > 0 ? `nothing more than ${bytes} bytes of a page came for` : "no whole page within";
    link.abort(new NetworkError("Unreachable", `Cannot list ${name}: ${what} ${listTimeoutMs} ms`));
  });
  const context: ListWatchContext = {
    signal: link.signal,
    onBytes: (more) => {
      bytes += more;
      if (more > 0) silence.feed();
      onBytes?.(more);
    },
    ...(holdText && { holdText }),
    ...(intake && {
      intake: (item) => {
        if (bytes === 0) silence.feed(); // a source that does not count bytes
        return intake(item);
      },
    }),
  };
  const longestMs = listTimeoutMs * LONGEST_LIST;
  try {
    return await inTime(() => source.list(listOptions, context), {
      ms: longestMs,
      late: () => `Cannot list ${name}: no whole page within ${longestMs} ms`,
      clock,
      link,
    });
  } finally {
    silence.stop();
    link.unlink();
  }
}

/**
 * What a cycle's list asks for: the last resourceVersion as a floor, `"0"` (anything the server's cache
 * holds) at first, and the most recent data when that floor is unavailable. A floor is requested without a
 * limit, so that the server's cache can answer; unless a page size was set.
 *
 * To a server, a limit makes a version an exact one. Where a list in pages only brought what was known, and
 * has to be repeated, the next one says that it wants a floor: or else it would bring the same again, the
 * watch from there would fail again, and so on. The same where a watch ended at a frame that could not be
 * decoded.
 */
export function listAttempt(state: ReflectorState, pageSize: number): ListAttempt {
  const requestedResourceVersion = state.isResourceVersionUnavailable
    ? ""
    : state.position.resourceVersion || "0";
  const isFloor = requestedResourceVersion !== "" && requestedResourceVersion !== "0";
  const limit = pageSize || (isFloor && !state.paginatedResult ? 0 : DEFAULT_PAGE_SIZE);
  return limit > 0 && state.exactResourceVersion === requestedResourceVersion
    ? { requestedResourceVersion, limit, resourceVersionMatch: "NotOlderThan" }
    : { requestedResourceVersion, limit };
}

/** What an attempt asks for; `again`: the most recent data instead. */
export function listOptions(attempt: ListAttempt, { again }: { readonly again: boolean }): ListOptions {
  const { limit, requestedResourceVersion, resourceVersionMatch } = attempt;
  if (again) return { resourceVersion: "", limit };
  return {
    resourceVersion: requestedResourceVersion,
    limit,
    ...(resourceVersionMatch === undefined ? {} : { resourceVersionMatch }),
  };
}
