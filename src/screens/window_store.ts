import { retryAfterMs } from "../meta/request.ts";
import { newStatus, type Status, StatusError } from "../meta/status.ts";
import { LineCutter } from "../text/line_cutter.ts";
import { type BackoffParameters, newReflectorBackoff } from "../util/backoff.ts";
import { type Clock, monotonicNow, realClock, type TimerHandle } from "../util/clock.ts";
import { abortable, sleepUnlessAborted } from "../util/abort.ts";
import { callGuarded, errorMessage } from "../util/errors.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import { AGE_ANNOTATION } from "../meta/list_watch.ts";
import { recordOf } from "../util/json.ts";

/** The query of a window; see `docs/screens.md` for the syntax of each part. */
export interface WindowQuery {
  /** The sort keys, such as `status.startTime:desc` or `column(Restarts)`: at least one. */
  readonly sortBy?: string | readonly string[];
  /** How many rows there are at most, up to 1,000. */
  readonly limit?: number;
  /** How many rows come before the first one; 0 by default. */
  readonly offset?: number;
  /** The object in whose middle the window is, as `namespace/name`; in place of `offset`. */
  readonly around?: string;
  /** The fields that objects have, those of a Table's rows too; all by default, and where it is empty. */
  readonly fields?: readonly string[];
  /** A filter, such as `status.phase=Running,metadata.name~web`: only objects that fulfil it count. */
  readonly filter?: string;
  /** A label selector, as in Kubernetes. */
  readonly labelSelector?: string;
  /** A field selector, as in Kubernetes. */
  readonly fieldSelector?: string;
  /** The fields by whose values objects are counted; the rows are groups then, without order and limit. */
  readonly groupBy?: readonly string[];
  /** The fields whose values are added up in each group. */
  readonly sum?: readonly string[];
}

/** Options of {@linkcode openWindow}. */
export interface OpenWindowOptions extends WindowQuery {
  /** The collection, such as `https://cache.example.com/api/v1/namespaces/shop/pods`. */
  readonly url: string | URL;
  /** Whether rows are those of the resource's Table (`cells`), in place of objects; `false` by default. */
  readonly table?: boolean;
  /** Sends the requests, with a credential for instance; `globalThis.fetch` by default. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /**
   * After how many milliseconds without contact a window is stale: its own, or that of the server with the
   * API server; 90,000 by default. The server says every 30 s that it is there.
   */
  readonly staleAfterMs?: number;
  /** Logs what listeners throw; the console by default. */
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * The state of a window. It never changes: a new one takes its place.
 *
 * - `connecting`: there are no rows yet.
 * - `live`: the rows are those of the server, which is in contact with the API server.
 * - `stale`: they are the last ones that are known; it tries again.
 * - `refused`: the server does not answer this query, and `error` says why; it does not try again by itself.
 * - `closed`: {@linkcode WindowStore.close} was called.
 */
export interface WindowSnapshot<Row> extends WindowRows<Row> {
  readonly state: "connecting" | "live" | "stale" | "refused" | "closed";
  /** Why it is refused, or stale. */
  readonly error: Error | undefined;
}

// A frame of a thousand objects; more is no frame.
const MAX_FRAME_BYTES = 256 * 1024 * 1024;
// A stream that was open for so long and ends in good order is opened again at once: rows are live all the
// while.
const REOPEN_MS = 2_000;
// Shorter than a reflector's at last, as people wait: the longest pause is just under ten seconds.
const BACKOFF: BackoffParameters = { durationMs: 800, factor: 2, capMs: 5_000, jitter: 1 };
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/**
 * A window that keeps itself up to date: React's `useSyncExternalStore` takes `subscribe` and `getSnapshot`,
 * and stores of other frameworks can be made of them. Made by `openWindow`.
 *
 * @example
 * ```ts
 * import { openWindow, type WindowStore } from "@listwatch/cache/screens";
 * const url = "https://cache.example.com/api/v1/nodes";
 * const nodes: WindowStore<unknown> = openWindow({ url, sortBy: "metadata.name", limit: 20 });
 * nodes.show({ sortBy: "metadata.name:desc" });
 * console.log(nodes.getSnapshot().rows.length); // 0
 * nodes.close();
 * ```
 */
export class WindowStore<Row> {
  readonly #options: OpenWindowOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #staleAfterMs: number;
  readonly #listeners = new Set<() => void>();
  readonly #check: (query: WindowQuery) => void;
  #query: WindowQuery;
  #snapshot: WindowSnapshot<Row> = {
    state: "connecting",
    rows: [],
    total: 0,
    offset: 0,
    resourceVersion: "",
    columns: [],
    error: undefined,
  };
  #shown: WindowRows<Row> | undefined;
  /** Whether rows were ever shown. */
  #hasRows = false;
  #stop = new AbortController();
  #silence: TimerHandle;
  #reopening: TimerHandle;

  /** @param check Throws where a query is none of such a window. */
  constructor(options: OpenWindowOptions, check: (query: WindowQuery) => void) {
    const { url, table: _, fetch: __, random: ___, logger, ...others } = options;
    const { clock = realClock, staleAfterMs = 90_000, ...query } = others;
    check(query);
    requireNumbers("open a window", { staleAfterMs }, { least: 1 });
    const base = globalThis.location?.href;
    if (!URL.canParse(String(url), base)) { // an error now, not later
      const hint = base === undefined ? ": outside of a page it is absolute" : "";
      throw new TypeError(`Cannot open the window of ${JSON.stringify(String(url))}: it is no URL${hint}`);
    }
    this.#options = options;
    this.#clock = clock;
    this.#logger = guardedLogger(logger);
    this.#staleAfterMs = staleAfterMs;
    this.#check = check;
    this.#query = query;
    this.#run();
  }

  /** The present state: the same object until something has changed. */
  readonly getSnapshot = (): WindowSnapshot<Row> => this.#snapshot;

  /** Calls back after each change of the snapshot; returns a function that ends it. Errors are logged. */
  readonly subscribe = (listener: () => void): () => void => {
    const own = () => listener(); // the same function may be given twice, and each is ended on its own
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  };

  /**
   * Shows something else: another place, order or filter; absent parts stay. The rows stay until the others
   * are there.
   *
   * @throws {TypeError} There would be no order, number of rows or `groupBy` left; nothing changes.
   */
  show(query: WindowQuery): void {
    if (this.#snapshot.state === "closed") return;
    const { offset, around, ...rest } = this.#query;
    const isPlaced = "offset" in query || "around" in query;
    const next = { ...rest, ...(!isPlaced && { offset, around }), ...query };
    this.#check(next);
    this.#query = next;
    this.#end();
    this.#stop = new AbortController();
    this.#run();
    if (this.#snapshot.state === "refused") this.#becomeStale(undefined);
  }

  /** Ends the window. The rows stay, and change no more. */
  close(): void {
    if (this.#snapshot.state === "closed") return;
    this.#end();
    this.#become({ state: "closed", error: undefined });
    this.#listeners.clear();
  }

  #end(): void {
    this.#stop.abort();
    this.#clock.clearTimeout(this.#silence);
    this.#clock.clearTimeout(this.#reopening);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { random = Math.random } = this.#options;
    const clock = this.#clock;
    const backoff = newReflectorBackoff({ clock, random, backoff: BACKOFF });
    // Where the rows of this query were shown last, and whether the object that they are around was deleted.
    let place: number | undefined;
    let isDeleted = false;
    for (;;) {
      this.#shown = undefined;
      const startMs = monotonicNow(clock);
      let error: Error | undefined;
      try {
        await this.#read(signal, isDeleted ? place : undefined);
      } catch (reason) {
        error = reason instanceof Error ? reason : new Error(String(reason));
      }
      if (signal.aborted) return; // the timers are those of what is shown now
      clock.clearTimeout(this.#silence);
      const isShown = this.#shown !== undefined;
      place = (this.#shown as WindowRows<Row> | undefined)?.offset ?? place;
      // An open window stays where its object was: one that opens again does, too.
      isDeleted = !isDeleted && place !== undefined && this.#query.around !== undefined && isNotFound(error);
      if (isDeleted) continue;
      const wasOpen = isShown && monotonicNow(clock) - startMs >= REOPEN_MS;
      if (wasOpen) backoff.reset();
      if (error instanceof StatusError && isFinal(error)) {
        clock.clearTimeout(this.#reopening);
        return this.#become({ state: "refused", error });
      }
      if (isShown && (error === undefined || isExpired(error))) {
        const reopened = new Error("the window is opened again");
        this.#reopening = clock.setTimeout(() => this.#becomeStale(reopened), REOPEN_MS);
        if (wasOpen) continue;
      } else this.#becomeStale(error ?? new Error("the window ended before it showed anything"));
      const leastMs = error instanceof StatusError ? error.retryAfterMs ?? 0 : 0;
      if (!await sleepUnlessAborted(Math.max(leastMs, backoff.nextDelayMs()), { clock, signal })) return;
    }
  }

  async #read(signal: AbortSignal, place: number | undefined): Promise<void> {
    const silence = new AbortController();
    const either = AbortSignal.any([signal, silence.signal]);
    const error = new Error(`the server has said nothing for ${this.#staleAfterMs} ms`);
    const onSilence = () => silence.abort(error);
    const received = () => {
      this.#clock.clearTimeout(this.#silence);
      this.#silence = this.#clock.setTimeout(onSilence, this.#staleAfterMs);
    };
    received();
    const { fetch = (request: Request) => globalThis.fetch(request), table } = this.#options;
    const accept = table ? TABLE : "application/json";
    const request = new Request(this.#url(place), {
      headers: { Accept: accept },
      cache: "no-store",
      signal: either,
    });
    // A function of the page may ignore the signal, as long as it waits for a token for instance.
    const answer = (async () => await fetch(request))();
    answer.then(({ body }) => either.aborted ? body?.cancel() : undefined).catch(() => {});
    const response = await abortable(answer, either);
    if (!response.ok || response.body === null) {
      throw await abortable(refusalOf(response, this.#clock), either);
    }
    const openedAgeMs = 1_000 * Number(response.headers.get("Age") ?? 0);
    const cutter = new LineCutter<never>(MAX_FRAME_BYTES, {
      lineEnd: 0,
      buffer: (length) => new Uint8Array(length),
    });
    const reader = response.body.getReader();
    try {
      for (;;) {
        const { done, value } = await abortable(reader.read(), either);
        if (done || either.aborted) return;
        received();
        for (let line = cutter.feed(value); line !== undefined; line = cutter.next()) {
          const isFirst = this.#shown === undefined;
          const frame = afterFrame(this.#shown, line, this.#snapshot.rows);
          const { shown, ageMs = isFirst ? openedAgeMs : undefined } = frame;
          if (either.aborted) return;
          this.#shown = shown;
          this.#show(shown, ageMs);
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /** @param place The first row, in place of the object that the query names. */
  #url(place: number | undefined): URL {
    const url = new URL(this.#options.url, globalThis.location?.href);
    const { table } = this.#options;
    url.searchParams.set("watch", "true");
    if (table) url.searchParams.set("includeObject", "Metadata");
    const query = place === undefined ? this.#query : { ...this.#query, around: undefined, offset: place };
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || Array.isArray(value) && value.length === 0) continue;
      url.searchParams.set(name, String(value)); // of a list: its members, with commas between them
    }
    return url;
  }

  #show(shown: WindowRows<Row>, ageMs: number | undefined): void {
    this.#clock.clearTimeout(this.#reopening);
    const { error } = this.#snapshot;
    this.#hasRows = true;
    const isStale = ageMs === undefined ? error instanceof StaleServerError : ageMs > this.#staleAfterMs;
    this.#become({
      ...shown,
      state: isStale ? "stale" : "live",
      error: isStale ? error instanceof StaleServerError ? error : new StaleServerError() : undefined,
    });
  }

  #becomeStale(error: Error | undefined): void {
    this.#clock.clearTimeout(this.#reopening);
    this.#become({ state: this.#hasRows ? "stale" : "connecting", error });
  }

  readonly #hasThrown = (error: unknown): void => {
    const message = `window of ${this.#options.url}: a listener threw: ${errorMessage(error)}`;
    this.#logger.error(message, { error });
  };

  #become(change: Partial<WindowSnapshot<Row>>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    for (const listener of Array.from(this.#listeners)) {
      if (this.#listeners.has(listener)) callGuarded(listener, this.#hasThrown);
    }
  }
}

/** The server is there, and its API server is not. */
class StaleServerError extends Error {
  constructor() {
    super("the server has lost contact with the API server; this is the last state that it knows");
  }
}

function isFinal({ httpStatus }: StatusError): boolean {
  return httpStatus >= 400 && httpStatus < 500 && ![408, 410, 425, 429].includes(httpStatus);
}

function isNotFound(error: Error | undefined): boolean {
  return error instanceof StatusError && error.httpStatus === 404;
}

function isExpired(error: Error): boolean {
  return error instanceof StatusError && error.httpStatus === 410;
}

/** Why the server did not answer as it was asked: in its words, or in those of what is before it. */
export async function refusalOf(response: Response, clock: Clock = realClock): Promise<StatusError> {
  const text = await response.text().catch(() => "");
  let status: Status = newStatus(response.status, "", text.slice(0, 1_000) || response.statusText);
  try {
    const said = JSON.parse(text);
    if (said?.kind === "Status") status = { ...said, code: response.status };
  } catch {
    // the text is the message
  }
  const why = status.message || status.reason;
  const message = `the server answered ${response.status}${why ? `: ${why}` : ""}`;
  return new StatusError(status, { message, retryAfterMs: retryAfterMs(response.headers, clock) });
}

/** A column of a Table. */
export interface WindowColumn {
  /** The heading: `Restarts`. */
  readonly name: string;
  /** `string`, `integer`, `number`, `boolean` or `date`. */
  readonly type: string;
  /** `name` for the column of names; mostly empty. */
  readonly format: string;
  /** The meaning of the column, in a sentence. */
  readonly description: string;
  /** 0 if it is always shown, more if only where there is much room. */
  readonly priority: number;
}

/** The rows that a window shows, in one state. */
export interface WindowRows<Row> {
  /** The rows, in order. A row that has not changed is the same object as in the state before. */
  readonly rows: readonly Row[];
  /** How many rows there are in all, shown or not. */
  readonly total: number;
  /** How many rows come before the first one that is shown. */
  readonly offset: number;
  /** The state of the resource that the rows are of. */
  readonly resourceVersion: string;
  /** The columns of `cells`, where the rows are those of a Table. */
  readonly columns: readonly WindowColumn[];
}

export interface FrameResult<Row> {
  readonly shown: WindowRows<Row>;
  /** How long ago the server had its last contact with its own, if it says so, in milliseconds. */
  readonly ageMs: number | undefined;
}

type Members = Readonly<Record<string, unknown>>;

/**
 * The rows after a frame.
 * @param before What is on the screen, perhaps of another stream or query.
 * @throws {TypeError} The frame is malformed: the rows would be wrong from here on.
 */
export function afterFrame<Row>(
  shown: WindowRows<Row> | undefined,
  line: string,
  before: readonly Row[],
): FrameResult<Row> {
  const { type, object } = JSON.parse(line) as { readonly type?: unknown; readonly object?: Members };
  if (type === "ERROR") throw new StatusError(object as unknown as Status);
  const { resourceVersion = "", annotations } = recordOf(object?.metadata) as {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  if (type === "ROWS") {
    const rows = object?.items ?? object?.rows;
    if (!Array.isArray(rows)) throw new TypeError("a window begins without rows");
    const columns = (object?.columnDefinitions ?? []) as readonly WindowColumn[];
    return {
      shown: { rows: withEarlier(before, rows), ...placeOf(object), resourceVersion, columns },
      ageMs: undefined,
    };
  }
  if (shown === undefined) {
    // A server that does not know the parameters sends a plain watch.
    if (type === "ADDED") {
      throw new TypeError("the server has no windows: is it an API server, and no cache?");
    }
    throw new TypeError(`a window begins with ${JSON.stringify(type)}`);
  }
  if (type === "BOOKMARK") {
    const age = annotations?.[AGE_ANNOTATION];
    return { shown: { ...shown, resourceVersion }, ageMs: age === undefined ? 0 : Number(age) };
  }
  if (type !== "CHANGES" || !Array.isArray(object?.changes)) {
    throw new TypeError(`a window continues with ${JSON.stringify(type)}`);
  }
  const rows = changed(shown.rows, object.changes as readonly Members[]);
  return { shown: { ...shown, rows, ...placeOf(object), resourceVersion }, ageMs: undefined };
}

function placeOf(object: Members | undefined): { readonly total: number; readonly offset: number } {
  const { total, offset } = recordOf(object?.window);
  if (typeof total !== "number" || typeof offset !== "number") throw new TypeError("a frame has no place");
  return { total, offset };
}

/** Rows, with the objects of before for those that are the same. */
function withEarlier<Row>(before: readonly Row[], rows: readonly Row[]): readonly Row[] {
  const earlier = new Map(before.map((row) => [JSON.stringify(row), row]));
  return earlier.size === 0 ? rows : rows.map((row) => earlier.get(JSON.stringify(row)) ?? row);
}

function changed<Row>(before: readonly Row[], changes: readonly Members[]): readonly Row[] {
  if (changes.length === 0) return before;
  const rows = [...before];
  for (const { op, at, from, to, item } of changes) {
    if (op === "move") {
      rows.splice(indexIn(to, rows.length), 0, ...rows.splice(indexIn(from, rows.length), 1));
    } else if (op === "insert") rows.splice(indexIn(at, rows.length + 1), 0, item as Row);
    else if (op === "remove") rows.splice(indexIn(at, rows.length), 1);
    else if (op === "update") rows[indexIn(at, rows.length)] = item as Row;
    else throw new TypeError(`there is no change ${JSON.stringify(op)}`);
  }
  return rows;
}

function indexIn(index: unknown, length: number): number {
  if (typeof index === "number" && Number.isInteger(index) && index >= 0 && index < length) return index;
  throw new TypeError(`${JSON.stringify(index)} is no place among ${length} rows`);
}
