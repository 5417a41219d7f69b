/**
 * Whole lists: in pages, which are put together or read item by item; and as a watch, which sends every
 * present object as ADDED.
 */

import { isTable, keyOf, type ListMeta } from "../meta/object.ts";
import {
  ageMsOf,
  type BookmarkObject,
  isInitialEventsEnd,
  type ListOptions,
  type ListPage,
  type Quarantined,
  type WatchItem,
} from "../meta/list_watch.ts";
import { DecodeError } from "../meta/request.ts";
import { isResourceExpired } from "../meta/status.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import { abortable, linkedAbort } from "../util/abort.ts";
import { ageMs, before, type Moment, momentOf, monotonicNow } from "../util/clock.ts";
import { Deque } from "../util/collections.ts";
import { Wakeup } from "../util/deferred.ts";
import { errorMessage } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import { requireNumbers } from "../util/require_number.ts";
import { StalledStreamError } from "./failures.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import { newTimeLimit, type OpenWatch, STALL_MS, Watchdog } from "./open_watch.ts";
import type { ReflectorSettings } from "./reflector_options.ts";
import type { ListAttempt, ReflectorState } from "./state.ts";
import { eventProblem } from "./store_writer.ts";

/** A list put together from its pages. */
export interface PagedList<T> {
  readonly items: T[];
  /** The metadata of the first page: its resourceVersion is that of the whole list. */
  readonly metadata: ListMeta;
  readonly quarantined: readonly Quarantined[];
  readonly paginated: boolean;
  /** As `ListPage.ageMs`, of the first page. */
  readonly ageMs?: number;
}

/** Options of {@linkcode listAllPages}. */
export interface PagerOptions extends ListWatchContext {
  /** Called after each page with the number of items so far, and to come, where the server says it. */
  readonly onPage?: ((items: number, remaining: number | undefined) => void) | undefined;
  /** Whether a continue token that ran out is answered by one list without a limit; true by default. */
  readonly fullListIfExpired?: boolean;
}

/**
 * Lists page by page: `options.limit` is the page size, 0 or absent for one page.
 *
 * The pages after the first name no resourceVersion: their continue token holds it. When a token has run out,
 * the pages so far are dropped and everything is listed once more in one page.
 *
 * Mirrors client-go's
 * [`ListPager.List`](https://github.com/kubernetes/client-go/blob/master/tools/pager/pager.go).
 * @throws {DecodeError} A page follows itself, at once or after others, or a thousand in a row are empty.
 * @throws The error of the source.
 */
export async function listAllPages<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions,
  pager: PagerOptions,
): Promise<PagedList<T>> {
  const { signal, onPage, fullListIfExpired = true } = pager;
  let count = 0;
  const request = async (page: ListOptions): Promise<ListPage<T>> => {
    const answer = await source.list(page, { signal });
    onPage?.(count += answer.items.length, answer.metadata.remainingItemCount);
    return answer;
  };
  const whole = (page: ListPage<T>, paginated: boolean): PagedList<T> => {
    return { ...page, quarantined: page.quarantined ?? [], paginated };
  };
  const nextPage = newPages();
  const first = await request(options);
  let next = nextPage(options, first);
  if (!next) return whole(first, false);
  const items = first.items.slice();
  const quarantined = first.quarantined?.slice() ?? [];
  while (next) {
    let page: ListPage<T>;
    try {
      page = await request(next);
    } catch (error) {
      if (!fullListIfExpired || !isResourceExpired(error)) throw error;
      const { limit: _, ...unlimited } = options;
      count = 0;
      return whole(await request(unlimited), true);
    }
    for (const item of page.items) items.push(item);
    for (const one of page.quarantined ?? []) quarantined.push(one);
    next = nextPage(next, page);
  }
  return whole({ ...first, items, quarantined }, true);
}

const MOST_EMPTY = 1_000;

/**
 * Makes a function that returns the request after a page, if there is one. A proxy that ignores the token
 * sends the same page for ever, and a proxy before several servers may repeat some pages in turn. To detect
 * it, each token is compared with the last one whose number is a power of two (Brent's algorithm). A server
 * that makes up new tokens, and has no items, would never end either.
 */
function newPages(): (request: ListOptions, page: ListPage<unknown>) => ListOptions | undefined {
  let known: string | undefined;
  let tokens = 0;
  let empty = 0;
  return (
    { resourceVersion: _, resourceVersionMatch: __, ...request },
    { items, quarantined = [], metadata: { continue: token } },
  ) => {
    if (!token) return undefined;
    empty = items.length + quarantined.length > 0 ? 0 : empty + 1;
    if (empty === MOST_EMPTY) throw new DecodeError(`Cannot list: ${empty} pages in a row are empty`);
    if (token === known || token === request.continue) {
      throw new DecodeError("Cannot list: a page follows itself");
    }
    if ((++tokens & (tokens - 1)) === 0) known = token;
    return { ...request, continue: token };
  };
}

/** Options of {@linkcode eachListItem}. All may be left out. */
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
 * again. Mirrors client-go's `ListPager.EachListItem`, which sends the resourceVersion with every page.
 * @throws {RangeError} `pageBufferSize` is not a whole number from 1.
 * @throws {StatusError} The server refused a page.
 * @throws {NetworkError} No answer came.
 * @throws {DecodeError} A page follows itself, at once or after others, or a thousand in a row are empty.
 * @throws The signal's reason, once it is aborted.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { eachListItem, listAllPages } from "@listwatch/cache/reflector";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 * const server = new InMemoryApiServer();
 * server.create("v1/pods", pod("web-1"));
 * const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
 * const pods = cluster.resource<KubernetesObject>("v1/pods");
 * for await (const pod of eachListItem(pods, { limit: 100 })) console.log(pod.metadata?.name); // web-1
 * const { items } = await listAllPages(pods, { limit: 500 }, { signal: AbortSignal.timeout(10_000) });
 * console.log(items.length); // 1
 * ```
 */
export async function* eachListItem<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions = {},
  reading: EachListItemOptions = {},
): AsyncGenerator<T, void, undefined> {
  const { pageBufferSize = DEFAULT_PAGE_BUFFER_SIZE, onQuarantined, signal } = reading;
  requireNumbers("list", { pageBufferSize }, { least: 1, isWhole: true });
  const link = linkedAbort(signal);
  const pages = new Deque<ListPage<T>>();
  const changed = new Wakeup();
  let end: { readonly error?: unknown } | undefined;
  const nextPage = newPages();
  const fill = async () => {
    const limit = options.limit || DEFAULT_PAGE_SIZE;
    for (let next: ListOptions | undefined = { ...options, limit }; next !== undefined;) {
      const page: ListPage<T> = await abortable(source.list(next, { signal: link.signal }), link.signal);
      next = nextPage(next, page);
      pages.push(page);
      changed.wakeAll();
      while (pages.length >= pageBufferSize) await changed.wait(link.signal);
    }
  };
  const filling = fill().then(() => end = {}, (error) => end = { error }).then(() => changed.wakeAll());
  try {
    for (;;) {
      const page = pages.shift();
      if (page !== undefined) {
        changed.wakeAll();
        for (const quarantined of page.quarantined ?? []) onQuarantined?.(quarantined);
        yield* page.items;
      } else if (end === undefined) {
        await changed.wait(undefined);
      } else {
        if ("error" in end) throw end.error;
        return;
      }
    }
  } finally {
    link.unlink();
    link.abort(new DOMException("the list is no longer read", "AbortError"));
    await filling;
  }
}

/** How many times longer than its longest silence a page may take as a whole. */
const LONGEST_LIST = 10;

/** Requests all of a list; `received`: when it came, earlier by as much as a cache says that it is old. */
export async function requestList<T>(
  source: ListerWatcher<T>,
  options: ListOptions,
  settings: PageSettings,
  { signal, onPage, onBytes }: PagerOptions,
): Promise<PagedList<T> & { readonly received: Moment }> {
  const { clock } = settings;
  let received: Moment | undefined;
  let last = momentOf(clock);
  const counted = (bytes: number) => {
    if (bytes > 0) {
      // Bytes after a long silence may have waited for a program that was suspended: they prove no later
      // contact than the one before.
      if (ageMs(last, clock) <= STALL_MS) last = momentOf(clock);
      received = last;
    }
    onBytes?.(bytes);
  };
  const pages = {
    list: async (page: ListOptions) => {
      const answer = await requestPage(source, { ...page, signal }, settings, counted);
      if (isTable(answer)) {
        throw new TypeError(
          "Cannot take a Table for a list: ask the server for objects (unsupported list gvk)",
        );
      }
      return answer;
    },
  };
  const list = await listAllPages(pages, options, { signal, onPage });
  return { ...list, received: before(received ?? momentOf(clock), list.ageMs ?? 0) };
}

type PageSettings = Pick<ReflectorSettings, "name" | "clock" | "listTimeoutMs" | "intake" | "holdText">;

async function requestPage<T>(
  source: ListerWatcher<T>,
  request: ListOptions & { readonly signal: AbortSignal },
  settings: PageSettings,
  onBytes: (bytes: number) => void,
): Promise<ListPage<T>> {
  const { name, clock, listTimeoutMs, intake, holdText } = settings;
  const { signal, ...listOptions } = request;
  const link = linkedAbort(signal);
  let bytes = 0;
  const newLimit = (ms: number, what: () => string) =>
    newTimeLimit(link, { clock, ms, late: () => `Cannot list ${name}: ${what()} ${ms} ms` });
  const noPage = () => "no whole page within";
  const silence = newLimit(
    listTimeoutMs,
    () => bytes > 0 ? `nothing more than ${bytes} bytes of a page came for` : noPage(),
  );
  const whole = newLimit(listTimeoutMs * LONGEST_LIST, noPage);
  const context: ListWatchContext = {
    signal: link.signal,
    onBytes: (more) => {
      bytes += more;
      if (more > 0) silence.feed();
      onBytes(more);
    },
    holdText,
    ...(intake && {
      intake: (item) => {
        if (bytes === 0) silence.feed(); // a source that does not count bytes
        return intake(item);
      },
    }),
  };
  try {
    return await abortable(source.list(listOptions, context), link.signal);
  } finally {
    silence.stop();
    whole.stop();
    link.unlink();
  }
}

/**
 * The request of a cycle's list: the last resourceVersion as a floor, `"0"` (anything the server's cache
 * holds) at first, and the most recent data when that floor is unavailable. A floor is requested without a
 * limit, so that the server's cache can answer; unless a page size was set. A limit makes the version an
 * exact one for a server: if such a list brought only what was known, or a watch from there ended at a frame
 * that could not be decoded, the next list says that it wants a floor.
 */
export function listAttempt(state: ReflectorState, pageSize: number): ListAttempt {
  const resourceVersion = state.isResourceVersionUnavailable ? "" : state.position.resourceVersion || "0";
  const isFloor = resourceVersion !== "" && resourceVersion !== "0";
  const limit = pageSize || (isFloor && !state.paginatedResult ? 0 : DEFAULT_PAGE_SIZE);
  return limit > 0 && isFloor && state.exactResourceVersion === resourceVersion
    ? { resourceVersion, limit, resourceVersionMatch: "NotOlderThan" }
    : { resourceVersion, limit };
}

type StreamSettings = Pick<
  ReflectorSettings,
  "clock" | "keyFunc" | "expectedKind" | "watchListSilenceMs" | "watchListEndMs" | "intake" | "quarantine"
>;

/** The content of a streamed list. */
interface InitialEvents<T> {
  readonly items: T[];
  readonly resourceVersion: string;
  /** When the end of the stream arrived; earlier by as much as a cache says that it is old. */
  readonly received: Moment;
  /** Quarantined objects of which `items` has no other state. */
  readonly quarantined: readonly Quarantined[];
}

/**
 * Reads a watch up to the end bookmark, leaving what comes after it unread. It has progressed when there is a
 * hundredth more: a server writes object by object, and to note a status costs as much as to read an object.
 */
export async function readInitialEvents<T>(
  watch: OpenWatch<T>,
  settings: StreamSettings,
  onProgress: (items: number) => void,
): Promise<InitialEvents<T> | undefined> {
  const { clock, watchListSilenceMs: silenceMs, watchListEndMs: endMs } = settings;
  const stalled = (text: string) => () => watch.end(new StalledStreamError(text));
  const silence = new Watchdog(
    clock,
    silenceMs,
    stalled(`no event for ${silenceMs} ms, and no end bookmark`),
    () => watch.received?.monotonicMs ?? 0, // a large object on a slow line is on its way
  );
  const end = new Watchdog(clock, endMs, stalled(`no end bookmark ${endMs} ms after the last initial event`));
  const deadline = new Watchdog(
    clock,
    watch.deadlineMs - monotonicNow(clock),
    stalled("no end bookmark by the watch's timeout"),
  );
  const gathered = new GatheredObjects<T>(watch, settings);
  let noted = 0;
  try {
    for (;;) {
      const batch = await watch.next();
      if (batch === undefined) return undefined;
      silence.feed();
      const known = gathered.size;
      for (let i = 0; i < batch.length; i++) {
        const bookmark = gathered.take(batch[i]);
        if (bookmark === undefined) continue;
        watch.unread(batch.slice(i + 1));
        const { resourceVersion = "" } = bookmark.metadata;
        const received = before(watch.received ?? momentOf(clock), ageMsOf(bookmark));
        return { ...gathered.result(), resourceVersion, received };
      }
      // Changes of what is there say nothing about the end, and neither does anything that comes after the
      // first of them.
      if (gathered.size > known && !gathered.hasChanges) end.feed();
      if (gathered.size >= noted * 1.01) onProgress(noted = gathered.size);
    }
  } finally {
    silence.stop();
    end.stop();
    deadline.stop();
  }
}

/** The objects of a streamed list by key: the last valid state, or the report of why there is none. */
class GatheredObjects<T> {
  readonly #watch: OpenWatch<T>;
  readonly #settings: StreamSettings;
  readonly #objects = new Map<string, T>();
  readonly #quarantinedByKey = new Map<string, Quarantined>();
  /** Whether something other than present objects came: servers send those first. */
  hasChanges = false;

  constructor(watch: OpenWatch<T>, settings: StreamSettings) {
    this.#watch = watch;
    this.#settings = settings;
  }

  get size(): number {
    return this.#objects.size + this.#quarantinedByKey.size;
  }

  result(): Pick<InitialEvents<T>, "items" | "quarantined"> {
    return { items: [...this.#objects.values()], quarantined: [...this.#quarantinedByKey.values()] };
  }

  /** Takes one item in; returns it if it was the end bookmark. */
  take(item: WatchItem<T>): BookmarkObject | undefined {
    const { quarantine, keyFunc, expectedKind, intake } = this.#settings;
    if (item.type === "ERROR") quarantine.refuse(item.object, this.#watch.receivedBytes);
    if (item.type === "QUARANTINED") {
      this.#quarantine(item.quarantined);
      return undefined;
    }
    const problem = eventProblem(item.object, expectedKind);
    if (problem !== undefined) {
      this.#quarantine({ reason: problem, path: "", eventType: item.type });
      return undefined;
    }
    if (item.type === "BOOKMARK") {
      return isInitialEventsEnd(item.object) ? item.object : undefined;
    }
    if (item.type !== "ADDED") this.hasChanges = true;
    let key: string | undefined;
    try {
      key = keyOf(keyFunc, item.object, "stream");
      if (item.type === "DELETED") this.#objects.delete(key);
      else this.#objects.set(key, (intake === undefined ? item.object : intake(item.object)) as T);
      this.#quarantinedByKey.delete(key);
    } catch (error) {
      this.#quarantine(defined({ reason: errorMessage(error), path: "", eventType: item.type, key }));
    }
    return undefined;
  }

  /** The last accepted state of a quarantined event's key stays; a delete needs no more than the key. */
  #quarantine(quarantined: Quarantined): void {
    const { key, eventType } = quarantined;
    this.#settings.quarantine.add(quarantined);
    if (eventType === "MODIFIED" || eventType === "DELETED") this.hasChanges = true;
    if (key === undefined) return;
    if (eventType === "DELETED") {
      this.#objects.delete(key);
      this.#quarantinedByKey.delete(key);
    } else if (!this.#objects.has(key)) {
      this.#quarantinedByKey.set(key, quarantined);
    }
  }
}
