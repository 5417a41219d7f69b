/**
 * Readers of the program under test over HTTP, as any Kubernetes client: a list in pages, then a watch.
 * @module
 */

import type { SharedIndexInformer } from "@listwatch/cache";
import { CountedReadApi } from "../nothing_left.ts";
import { keyOfObject, type SimObject, stateOf } from "./cluster_model.ts";
import { type IndexName, SELECTORS } from "./indices.ts";
import { isSameValue } from "./views.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a reader is like. */
export interface ReaderConfig {
  /** `""` for all. */
  readonly namespace: string;
  /** The index in `SELECTORS` that the reader uses; -1 for none. */
  readonly selector: number;
  /** How many objects a page may have; 0 for a list without pages. */
  readonly limit: number;
  /** Between two pages, in milliseconds. */
  readonly pauseMs: number;
  /** Whether the list comes as a watch. */
  readonly streams: boolean;
  /** Between two reads of a watch, in milliseconds; 0 for reads as fast as something comes. */
  readonly readMs: number;
  /**
   * How long it stays on one watch before it continues with
   * another from its version; 0 for as long as it lasts.
   */
  readonly hopMs: number;
}

/** What readers need of their program. */
export interface ServedReaderOptions {
  readonly name: string;
  readonly fetch: (path: string) => Promise<Response>;
  readonly informer: SharedIndexInformer<SimObject, IndexName>;
  /** Whether the server was restored: deletes may come without an add. */
  readonly wasRestored: () => boolean;
  /** Whether the informer's store is of a lost history, until it lists. */
  readonly isInDoubt: () => boolean;
  readonly time: VirtualTime;
  readonly signal: AbortSignal;
  readonly violate: (text: string) => void;
}

/** Serves an informer, for readers in the same process. */
export function serve(
  informer: SharedIndexInformer<SimObject, IndexName>,
  options: {
    readonly resource: string;
    readonly eventWindow: number;
    /** How many bytes a slow reader may leave waiting. */
    readonly watchBufferBytes: number;
    readonly time: VirtualTime;
    readonly random: () => number;
    readonly signal: AbortSignal;
  },
): CountedReadApi {
  const { resource, eventWindow, watchBufferBytes, time, random, signal } = options;
  return new CountedReadApi({
    resources: [{ informer, resource: `v1/${resource}` }],
    allowAnonymous: true,
    // A reader's list must equal the store; a question to the server would let time pass in between.
    freshness: "as-is",
    eventWindow,
    watchBufferBytes,
    clock: time,
    random,
    signal,
  });
}

interface Line {
  readonly type: string;
  readonly object: SimObject;
}

const RETRY_MS = 1_000;
// Enough for a world that lasts hours.
const MOST_HOPS = 12;
const decoder = new TextDecoder();

/** Folds what it reads, which must equal the informer's store at that moment. */
export class ServedReader {
  readonly #options: ServedReaderOptions;
  readonly #config: ReaderConfig;
  readonly #path: string;
  readonly #matches: (object: SimObject) => boolean;
  readonly #violate: (text: string) => void;
  #known = new Map<string, string>();
  #resourceVersion = "";
  /** The version at which its watch started; -1 if it started with the current objects. */
  #from = -1;
  #isFollowing = false;
  /** Whether the reader reads nothing: what it knows may be old. */
  #isPausing = false;
  #hops = 0;

  constructor(config: ReaderConfig, resource: string, options: ServedReaderOptions) {
    this.#config = config;
    this.#options = options;
    this.#violate = (text) => options.violate(`${options.name}: ${text}`);
    const [text, matches] = SELECTORS[config.selector] ?? ["", () => true];
    const { namespace } = config;
    const within = namespace === "" ? "" : `/namespaces/${namespace}`;
    this.#path = `/api/v1${within}/${resource}?labelSelector=${encodeURIComponent(text)}`;
    this.#matches = ({ metadata }) =>
      (namespace === "" || metadata.namespace === namespace) && matches(metadata.labels ?? {});
  }

  /** Reads until the signal is aborted. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      this.#isFollowing = false;
      this.#known = new Map();
      if (this.#config.streams || await this.#list()) {
        let query = this.#config.streams
          ? "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
          : `&resourceVersion=${this.#resourceVersion}`;
        while (await this.#watch(query)) query = `&resourceVersion=${this.#resourceVersion}`;
      }
      if (!signal.aborted) await this.#pause(RETRY_MS);
    }
    this.#isFollowing = false;
  }

  /** Compares what it has read with the informer's store. */
  difference(): string | undefined {
    return this.#isFollowing ? this.#differenceTo(this.#stored()) : "it does not follow";
  }

  /** The invariants while no bytes are in flight. */
  check(): void {
    if (!this.#isFollowing || this.#isPausing) return;
    const found = this.#differenceTo(this.#stored());
    if (found !== undefined) this.#violate(found);
  }

  /** Lists; false if it must list again. */
  async #list(): Promise<boolean> {
    const { limit, pauseMs } = this.#config;
    let wanted: ReadonlyMap<string, string> | undefined;
    let token = "";
    let last = "";
    do {
      const page = `${limit > 0 ? `&limit=${limit}` : ""}${token && `&continue=${token}`}`;
      const response = await this.#options.fetch(this.#path + page);
      if (response.status !== 200) {
        if (response.status !== 503 && response.status !== 410) {
          this.#violate(`a list receives ${response.status}`);
        }
        await response.body?.cancel();
        return false;
      }
      const { metadata, items } = await response.json() as {
        metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
        items: SimObject[];
      };
      if (wanted === undefined) {
        this.#resourceVersion = metadata.resourceVersion;
        wanted = this.#stored();
      } else if (metadata.resourceVersion !== this.#resourceVersion) {
        this.#violate(
          `a page is at ${metadata.resourceVersion}, the first one at ${this.#resourceVersion}`,
        );
      }
      for (const object of items) {
        const key = keyOfObject(object);
        if (key <= last) this.#violate(`a list has ${key} after ${last}`);
        last = key;
        this.#take(object);
      }
      if (limit > 0 && items.length > limit) {
        this.#violate(`a page has ${items.length} objects, not ${limit}`);
      }
      token = metadata.continue ?? "";
      if (token !== "" && pauseMs > 0) await this.#pause(pauseMs);
    } while (token !== "" && !this.#options.signal.aborted);
    const found = this.#differenceTo(wanted);
    if (token === "" && found !== undefined) this.#violate(`its list at ${this.#resourceVersion}: ${found}`);
    return token === "";
  }

  /** Watches; returns whether it may continue from its version. */
  async #watch(query: string): Promise<boolean> {
    const { time, signal } = this.#options;
    const response = await this.#options.fetch(`${this.#path}&watch=true&allowWatchBookmarks=true${query}`);
    if (response.status !== 200) {
      if (response.status !== 503) this.#violate(`a watch receives ${response.status}`);
      await response.body?.cancel();
      return false;
    }
    const reader = response.body!.getReader();
    let hops = false;
    const { hopMs } = this.#config;
    const timer = hopMs === 0 || this.#hops++ >= MOST_HOPS ? undefined : time.schedule(() => {
      hops = true;
      reader.cancel();
    }, hopMs);
    this.#isFollowing = !query.includes("sendInitialEvents");
    this.#from = this.#isFollowing ? Number(this.#resourceVersion) : -1;
    let text = "";
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        if (this.#apply(JSON.parse(line))) continue;
        this.#isFollowing = false;
        reader.cancel();
      }
      await this.#rest();
    }
    time.clearTimeout(timer);
    const goesOn = hops && this.#isFollowing && !signal.aborted;
    this.#isFollowing = false;
    return goesOn;
  }

  /** Applies one event; false if the watch is over with it. */
  #apply({ type, object }: Line): boolean {
    const { resourceVersion } = object.metadata;
    if (type === "ERROR") {
      const { code } = object as unknown as { code: number };
      if (code !== 410) this.#violate(`a watch ends with ${code}`);
      return false;
    }
    this.#resourceVersion = resourceVersion;
    if (type === "BOOKMARK") {
      if (object.metadata.annotations?.["k8s.io/initial-events-end"] === "true") this.#isFollowing = true;
      return true;
    }
    const key = keyOfObject(object);
    const known = this.#known.get(key);
    const neverCame = type === "DELETED" && known === undefined && this.#options.wasRestored();
    // An event that was late, at the reader's version, may come a second time.
    const isAgain = Number(resourceVersion) <= this.#from;
    if ((type === "ADDED") === (known !== undefined) && !neverCame && !isAgain) {
      this.#violate(`${type} of ${key} ${stateOf(object)}, which it knows as ${known}`);
    }
    if (type === "DELETED") this.#known.delete(key);
    else this.#take(object);
    return true;
  }

  #take(object: SimObject): void {
    const key = keyOfObject(object);
    this.#known.set(key, stateOf(object));
    const stored = this.#options.informer.indexer.getByKey(key);
    if (stored === undefined || stateOf(stored) !== stateOf(object)) return; // it has changed since
    // The items of a list have no apiVersion and kind.
    const { kind, apiVersion } = stored;
    if (!isSameValue({ kind, apiVersion, ...object }, stored)) {
      this.#violate(`${key} ${stateOf(object)} is ${JSON.stringify(object)}, not ${JSON.stringify(stored)}`);
    }
  }

  #stored(): Map<string, string> {
    const stored = new Map<string, string>();
    for (const object of this.#options.informer.indexer.list()) {
      if (this.#matches(object)) stored.set(keyOfObject(object), stateOf(object));
    }
    return stored;
  }

  #differenceTo(wanted: ReadonlyMap<string, string>): string | undefined {
    if (this.#options.isInDoubt()) return undefined;
    for (const [key, state] of wanted) {
      if (this.#known.get(key) !== state) return `it reads ${key} as ${this.#known.get(key)}, not ${state}`;
    }
    for (const key of this.#known.keys()) if (!wanted.has(key)) return `it reads ${key}, which is not stored`;
    return undefined;
  }

  async #rest(): Promise<void> {
    const { readMs } = this.#config;
    if (readMs === 0 || !this.#isFollowing || this.#options.signal.aborted) return;
    this.#isPausing = true;
    await this.#pause(readMs);
    this.#isPausing = false;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#options.time.schedule(resolve, ms));
  }
}
