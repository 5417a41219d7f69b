/**
 * An API server: a watch cache that follows the cluster with some
 * lag, and the list and watch calls it answers.
 *
 * It answers resourceVersions as kube-apiserver's table says: `""` is read from etcd, `"0"` is
 * whatever the cache holds, anything else waits until the cache is that new; a page at a given
 * version is exactly that version; a watch from before the cache's window, and a page or a
 * version from before the compaction, are expired.
 *
 * @module
 */

import type { Status } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { TimerHandle } from "@listwatch/cache/reflector";
import {
  type ClusterModel,
  isWithin,
  keyOfObject,
  RESOURCES,
  type Revision,
  type Scope,
  type SimObject,
} from "./cluster_model.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** A regular bookmark, the one that ends the initial events, or an ERROR that refuses the resourceVersion. */
export type Mark = "bookmark" | "end" | "unavailable";

/** One line of a watch, and its meaning for the network's observer. */
export interface Frame {
  readonly bytes: Uint8Array;
  readonly mark?: Mark;
}

/** Receives a response. */
export interface Answer {
  /** Answers as a whole. */
  whole(status: number, body: string, headers?: Readonly<Record<string, string>>): void;
  /** Begins a stream. */
  stream(): Stream;
}

/** An open stream, seen from the server. */
export interface Stream {
  send(frames: readonly Frame[]): void;
  /** Ends it as a server does. */
  end(): void;
  /** Breaks it. */
  reset(): void;
  /** Called once when the stream has ended, at either side. */
  onClosed: () => void;
  /** The side that closed it; absent while it is open. */
  readonly closed: string | undefined;
}

/** The properties of a cluster's servers, and their present faults. */
export interface ServerSettings {
  /** The response to `sendInitialEvents`; `slow`: their end comes late, `endless`: it never does. */
  initialEvents: "sent" | "ignored" | "rejected" | "slow" | "endless";
  /** Whether it supports watches: a server that does not answers with its list, on one line. */
  knowsWatch: boolean;
  /** Whether bookmarks are sent; a proxy may drop them. */
  bookmarks: boolean;
  /** Whether lists are answered from the cache at all. */
  listsFromCache: boolean;
  /** Whether every continue token has run out. */
  tokensExpire: boolean;
  /** Whether a watch that is too old is refused by HTTP or by an ERROR event. */
  refusesByHttp: boolean;
  /** How many revisions a cache can go back. */
  windowRevisions: number;
  /** Whether programs may read what identifies the cluster. */
  identifiesCluster: boolean;
  /** Whether it supports metadata-only requests; otherwise it sends whole objects. */
  servesMetadata: boolean;
}

/** The parameters of a request, as text. */
export type Parameters = URLSearchParams;

interface Watcher {
  readonly scope: Scope;
  readonly stream: Stream;
  readonly bookmarks: boolean;
  /** The last revision that was considered for it. */
  revision: number;
  bookmarkTimer: TimerHandle;
  endTimer: TimerHandle;
  initialEndTimer: TimerHandle;
}

const WAIT_FOR_REVISION_MS = 3_000;
const BOOKMARK_PERIOD_MS = 60_000;
const LAST_BOOKMARK_MS = 2_000;
const SLOW_END_MS = 8_000;
const encoder = new TextEncoder();

/** One line of a watch. */
export function newFrame(type: string, object: unknown, mark?: Mark): Frame {
  const bytes = encoder.encode(JSON.stringify({ type, object }) + "\n");
  return mark === undefined ? { bytes } : { bytes, mark };
}

function newErrorFrame(status: Status): Frame {
  return newFrame("ERROR", status, status.code === 410 || status.code === 504 ? "unavailable" : undefined);
}

/** One API server. */
export class ServerModel {
  readonly name: string;
  readonly #cluster: ClusterModel;
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #settings: ServerSettings;
  readonly #watchers = new Set<Watcher>();
  #waiting: { readonly revision: number; readonly go: () => void }[] = [];
  #windowStart: number;
  #applied: number;
  #lagMs = 5;
  #lastDueMs = 0;
  #frozen = false;
  #starting = false;
  #restarts = 0;
  /** Whether watches from a revision that is not reached again receive nothing up to it. */
  #filters = true;
  #restoredRevision = 0;
  /** Whether it listens. */
  isUp = true;

  constructor(
    name: string,
    world: {
      readonly cluster: ClusterModel;
      readonly time: VirtualTime;
      readonly random: SeededRandom;
      readonly settings: ServerSettings;
    },
  ) {
    this.name = name;
    this.#cluster = world.cluster;
    this.#time = world.time;
    this.#random = world.random;
    this.#settings = world.settings;
    this.#applied = this.#windowStart = world.cluster.revision;
  }

  /** A revision was written: the cache receives it later. */
  follow({ revision }: Revision): void {
    const dueMs = Math.max(this.#lastDueMs, this.#time.worldNow() + this.#lagMs);
    this.#lastDueMs = dueMs;
    this.#time.schedule(() => this.#advance(revision), dueMs - this.#time.worldNow());
  }

  /** Sets the lag of the cache. */
  lag(ms: number): void {
    this.#lagMs = ms;
  }

  /** Stops following the cluster, or continues. */
  freeze(frozen: boolean): void {
    this.#frozen = frozen;
    if (!frozen) this.#advance(this.#cluster.revision);
  }

  /** Restarts: every stream ends, and the cache starts empty after `downMs`. */
  restart(downMs: number, startingMs: number, { graceful }: { readonly graceful: boolean }): void {
    this.isUp = false;
    for (const { stream } of [...this.#watchers]) graceful ? stream.end() : stream.reset();
    this.#waiting = [];
    const restarts = ++this.#restarts;
    this.#time.schedule(() => {
      if (restarts < this.#restarts) return; // it was restarted again meanwhile
      this.isUp = true;
      this.#starting = startingMs > 0;
      this.#frozen = false;
      this.#applied = this.#windowStart = this.#cluster.revision;
      this.#time.schedule(() => {
        if (restarts === this.#restarts) this.#starting = false;
      }, startingMs);
    }, downMs);
  }

  /** The cluster was restored: its cache starts empty. Open watches stay open. */
  restored({ filters }: { readonly filters: boolean }): void {
    this.#filters = filters;
    this.#restoredRevision = this.#cluster.revision;
    this.#applied = this.#windowStart = this.#cluster.revision;
    if (filters) return;
    for (const watcher of this.#watchers) {
      watcher.revision = Math.min(watcher.revision, this.#cluster.revision);
    }
  }

  /** Ends a watch as it does one that is too old. */
  expire(stream: Stream): void {
    for (const watcher of [...this.#watchers]) {
      if (watcher.stream !== stream) continue;
      stream.send([newErrorFrame(newStatus(410, "Expired", "too old resource version"))]);
      stream.end();
    }
  }

  /** Drops the events of its cache. */
  forget(): void {
    this.#windowStart = this.#applied;
  }

  /** Sends a bookmark to every watch. */
  bookmarkAll(): void {
    if (!this.#settings.bookmarks) return;
    for (const watcher of this.#watchers) {
      if (!watcher.bookmarks || this.#applied < watcher.revision) continue;
      watcher.stream.send([this.#bookmark(watcher.scope, this.#applied, "bookmark")]);
    }
  }

  /** Ends some watches with an ERROR event. */
  failWatches(status: Status, probability: number): void {
    for (const { stream } of [...this.#watchers]) {
      if (!this.#random.chance(probability)) continue;
      stream.send([newErrorFrame(status)]);
      stream.end();
    }
  }

  /** Answers with the namespace that identifies the cluster. */
  namespace(answer: Answer): void {
    if (this.#refusesWhileStarting(answer)) return;
    if (!this.#settings.identifiesCluster) {
      return refuse(answer, newStatus(403, "Forbidden", "namespaces is forbidden"));
    }
    const metadata = { name: "kube-system", uid: this.#cluster.uid };
    answer.whole(200, JSON.stringify({ kind: "Namespace", apiVersion: "v1", metadata }));
  }

  /** Answers a list. */
  list(scope: Scope, query: Parameters, answer: Answer): void {
    if (this.#refusesWhileStarting(answer)) return;
    const limit = Number(query.get("limit") ?? 0);
    const token = query.get("continue") ?? "";
    const version = query.get("resourceVersion") ?? "";
    if (token !== "") {
      if (version === "" || version === "0") return this.#continueList(scope, token, limit, answer);
      const message = "specifying resource version is not allowed when using continue";
      return refuse(answer, newStatus(400, "BadRequest", message));
    }
    const consistent = version === "" || (version === "0" && !this.#settings.listsFromCache);
    if (consistent) {
      return this.#page(scope, { revision: this.#cluster.revision, after: "", limit }, answer);
    }
    if (version === "0") {
      return this.#page(scope, { revision: this.#applied, after: "", limit: 0 }, answer);
    }
    const revision = Number(version);
    if (limit > 0) {
      // What kube-apiserver calls legacy: a limit alone makes the version an exact one. Pages come from etcd.
      const isExact = query.get("resourceVersionMatch") !== "NotOlderThan";
      if (!isExact && revision > this.#cluster.revision) {
        return refuse(answer, tooLarge(revision, this.#cluster.revision));
      }
      return this.#page(
        scope,
        { revision: isExact ? revision : this.#cluster.revision, after: "", limit },
        answer,
      );
    }
    this.#whenApplied(
      revision,
      () => this.#page(scope, { revision: this.#applied, after: "", limit: 0 }, answer),
      () => refuse(answer, tooLarge(revision, this.#applied)),
    );
  }

  /** Answers a watch. */
  watch(scope: Scope, query: Parameters, answer: Answer): void {
    if (this.#refusesWhileStarting(answer)) return;
    if (!this.#settings.knowsWatch) {
      const { whole } = answer;
      return this.list(scope, query, {
        ...answer,
        whole: (code, body, head) => whole(code, `${body}\n`, head),
      });
    }
    const version = query.get("resourceVersion") ?? "";
    const asks = query.get("sendInitialEvents") === "true";
    if (asks && this.#settings.initialEvents === "rejected") {
      const message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch";
      return refuse(answer, newStatus(422, "Invalid", message));
    }
    if (asks && this.#settings.initialEvents !== "ignored") {
      const revision = version === "" ? this.#cluster.revision : Number(version);
      return this.#whenApplied(
        revision,
        () => this.#open(scope, query, answer, { revision: this.#applied, initial: true, isStream: true }),
        () => this.#refuseWatch(answer, tooLarge(revision, this.#applied)),
      );
    }
    if (version === "" || version === "0") {
      return this.#open(scope, query, answer, { revision: this.#applied, initial: true, isStream: false });
    }
    const asked = Number(version);
    const isFromFuture = !this.#filters && asked > this.#cluster.revision;
    const revision = isFromFuture ? this.#restoredRevision : asked;
    if (revision < this.#windowStart) {
      const message = `too old resource version: ${revision} (${this.#windowStart})`;
      return this.#refuseWatch(answer, newStatus(410, "Expired", message));
    }
    this.#open(scope, query, answer, { revision, initial: false, isStream: false });
  }

  #refusesWhileStarting(answer: Answer): boolean {
    if (!this.#starting) return false;
    refuse(answer, newStatus(429, "TooManyRequests", "storage is (re)initializing"), { "Retry-After": "1" });
    return true;
  }

  #refuseWatch(answer: Answer, status: Status): void {
    if (this.#settings.refusesByHttp) return refuse(answer, status);
    const stream = answer.stream();
    stream.send([newErrorFrame(status)]);
    stream.end();
  }

  #open(
    scope: Scope,
    query: Parameters,
    answer: Answer,
    from: { readonly revision: number; readonly initial: boolean; readonly isStream: boolean },
  ): void {
    const stream = answer.stream();
    if (stream.closed !== undefined) return; // the client did not wait
    const frames: Frame[] = [];
    if (from.initial) {
      const state = [...this.#cluster.stateAt(scope.resource, from.revision).values()];
      if (!from.isStream) state.reverse(); // older servers send them unordered
      for (const object of state) {
        if (isWithin(scope, object)) frames.push(newFrame("ADDED", seenBy(scope, object)));
      }
      if (from.isStream && this.#settings.bookmarks && this.#settings.initialEvents === "sent") {
        frames.push(this.#bookmark(scope, from.revision, "end"));
      }
    }
    const watcher: Watcher = {
      scope,
      stream,
      bookmarks: query.get("allowWatchBookmarks") === "true",
      revision: from.revision,
      bookmarkTimer: undefined,
      endTimer: undefined,
      initialEndTimer: undefined,
    };
    this.#watchers.add(watcher);
    stream.onClosed = () => {
      this.#watchers.delete(watcher);
      this.#time.clearTimeout(watcher.bookmarkTimer);
      this.#time.clearTimeout(watcher.endTimer);
      this.#time.clearTimeout(watcher.initialEndTimer);
    };
    for (let next = from.revision + 1; next <= this.#applied; next++) {
      const frame = this.#frameFor(watcher, this.#cluster.at(next));
      if (frame !== undefined) frames.push(frame);
    }
    if (frames.length > 0) stream.send(frames);
    const seconds = Number(query.get("timeoutSeconds")) || this.#random.int(1_800, 3_600);
    watcher.endTimer = this.#time.schedule(() => stream.end(), seconds * 1_000);
    if (watcher.bookmarks) this.#scheduleBookmark(watcher, seconds * 1_000);
    if (!from.isStream || this.#settings.initialEvents !== "slow") return;
    watcher.initialEndTimer = this.#time.schedule(() => {
      if (this.#settings.bookmarks) stream.send([this.#bookmark(scope, this.#applied, "end")]);
    }, SLOW_END_MS);
  }

  /** One each minute, and one 2 s before the timeout, within a second, as kube-apiserver does. */
  #scheduleBookmark(watcher: Watcher, leftMs: number): void {
    let periodMs = BOOKMARK_PERIOD_MS + this.#random.int(0, 1_250);
    if (leftMs < periodMs) {
      if (leftMs <= LAST_BOOKMARK_MS) return;
      periodMs = leftMs - LAST_BOOKMARK_MS + (periodMs % 1_000);
    }
    watcher.bookmarkTimer = this.#time.schedule(() => {
      if (this.#settings.bookmarks && this.#applied >= watcher.revision) {
        watcher.stream.send([this.#bookmark(watcher.scope, this.#applied, "bookmark")]);
      }
      this.#scheduleBookmark(watcher, leftMs - periodMs);
    }, periodMs);
  }

  #bookmark({ resource }: Scope, revision: number, mark: "bookmark" | "end"): Frame {
    const annotations = mark === "end" ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
    const metadata = { resourceVersion: String(revision), ...annotations };
    return newFrame("BOOKMARK", { kind: RESOURCES[resource], apiVersion: "v1", metadata }, mark);
  }

  /** The cache receives everything up to a revision. */
  #advance(revision: number): void {
    if (!this.isUp || this.#frozen) return;
    const last = Math.min(revision, this.#cluster.revision);
    for (let next = this.#applied + 1; next <= last; next++) {
      this.#applied = next;
      for (const watcher of [...this.#watchers]) {
        const frame = this.#frameFor(watcher, this.#cluster.at(next));
        if (frame !== undefined) watcher.stream.send([frame]);
      }
    }
    this.#windowStart = Math.max(this.#windowStart, this.#applied - this.#settings.windowRevisions);
    const ready = this.#waiting.filter((one) => one.revision <= this.#applied);
    if (ready.length === 0) return;
    this.#waiting = this.#waiting.filter((one) => one.revision > this.#applied);
    for (const { go } of ready) go();
  }

  /**
   * The event that a revision is for a watcher; an object that
   * enters or leaves its scope is added or deleted.
   */
  #frameFor(watcher: Watcher, one: Revision): Frame | undefined {
    const { scope } = watcher;
    if (one.revision <= watcher.revision) return undefined;
    watcher.revision = one.revision;
    if (one.resource !== scope.resource) return undefined;
    const before = one.previous !== undefined && isWithin(scope, one.previous);
    const after = one.kind !== "delete" && isWithin(scope, one.object);
    if (!before && !after) return undefined;
    const type = before && after ? "MODIFIED" : after ? "ADDED" : "DELETED";
    const cached = scope.metadataOnly ? `${type} metadata` : type;
    let bytes = one.frames.get(cached);
    if (bytes === undefined) {
      bytes = newFrame(type, seenBy(scope, type === "DELETED" ? lastState(one) : one.object)).bytes;
      one.frames.set(cached, bytes);
    }
    return { bytes };
  }

  #whenApplied(revision: number, go: () => void, tooLate: () => void): void {
    if (revision <= this.#applied) return go();
    const waiting = { revision, go };
    this.#waiting.push(waiting);
    this.#time.schedule(() => {
      const at = this.#waiting.indexOf(waiting);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      tooLate();
    }, WAIT_FOR_REVISION_MS);
  }

  #continueList(scope: Scope, token: string, limit: number, answer: Answer): void {
    const [revision, after, epoch] = JSON.parse(atob(token)) as [number, string, number];
    if (this.#settings.tokensExpire || epoch !== this.#cluster.epoch) {
      const message = "The provided continue parameter is too old to display a consistent list result.";
      return refuse(answer, newStatus(410, "Expired", message));
    }
    this.#page(scope, { revision, after, limit }, answer);
  }

  #page(
    scope: Scope,
    { revision, after, limit }: { readonly revision: number; readonly after: string; readonly limit: number },
    answer: Answer,
  ): void {
    if (revision < this.#cluster.compactedRevision) {
      const message = `The resourceVersion for the provided list is too old: ${revision}`;
      return refuse(answer, newStatus(410, "Expired", message));
    }
    if (revision > this.#cluster.revision) return refuse(answer, tooLarge(revision, this.#cluster.revision));
    const rest: SimObject[] = [];
    for (const [key, object] of this.#cluster.stateAt(scope.resource, revision)) {
      if (key > after && isWithin(scope, object)) rest.push(object);
    }
    const items = limit > 0 ? rest.slice(0, limit) : rest;
    const remaining = rest.length - items.length;
    const metadata = {
      resourceVersion: String(revision),
      ...(remaining > 0 && {
        continue: btoa(
          JSON.stringify([revision, keyOfObject(items[items.length - 1]), this.#cluster.epoch]),
        ),
        remainingItemCount: remaining,
      }),
    };
    const type = scope.metadataOnly
      ? { kind: "PartialObjectMetadataList", apiVersion: PARTIAL_TYPE.apiVersion }
      : { kind: `${RESOURCES[scope.resource]}List`, apiVersion: "v1" };
    // The items of a list have no kind or apiVersion: the list has them.
    const bare = items.map(({ metadata, spec }) => scope.metadataOnly ? { metadata } : { metadata, spec });
    answer.whole(200, JSON.stringify({ ...type, metadata, items: bare }));
  }
}

const PARTIAL_TYPE = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };

/** An object as it is sent for a scope. */
function seenBy(scope: Scope, object: SimObject): unknown {
  return scope.metadataOnly ? { ...PARTIAL_TYPE, metadata: object.metadata } : object;
}

/** The object of a DELETED event: the last state in the scope, at the version of the write that ended it. */
function lastState(one: Revision): SimObject {
  if (one.kind === "delete") return one.object;
  const resourceVersion = String(one.revision);
  return { ...one.previous!, metadata: { ...one.previous!.metadata, resourceVersion } };
}

/** Answers with a Status. */
export function refuse(
  answer: Answer,
  status: Status,
  headers: Readonly<Record<string, string>> = {},
): void {
  answer.whole(status.code ?? 500, JSON.stringify(status), headers);
}

function tooLarge(revision: number, applied: number): Status {
  return newStatus(504, "Timeout", `Too large resource version: ${revision}, current: ${applied}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}
