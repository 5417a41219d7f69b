/**
 * The content of one resource: the objects of its informer, earlier states, the changes since, its versions,
 * and how fresh it is.
 */

import { compareResourceVersions, type KubernetesObject, layoutOf } from "../../meta/object.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { newPartwiseWaiters, type VersionWaitOptions } from "../../meta/version_waiters.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { decodeContinue, LATEST } from "../../protocol/continue_token.ts";
import type { ListQuery } from "../../protocol/request_url.ts";
import { isStatus, resourceDetails, tooLargeResourceVersion } from "../../protocol/statuses.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import { EventLog, type EventLogOptions } from "./event_log.ts";
import {
  type FollowedContent,
  type FreshnessOutcome,
  FreshReads,
  type FreshReadsOptions,
} from "./fresh_reads.ts";
import { type NamedInformer, type ServedInformer, type ServedStore, sourcesOf } from "./served_informer.ts";
import { ContentStates } from "./states.ts";

export class Content<T extends KubernetesObject> {
  readonly #informer: ServedInformer<T>;
  readonly #held: ServedStore<Held<T>>;

  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  readonly log: EventLog<T>;
  readonly states: ContentStates<T>;
  readonly versions: ContentVersions;

  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    const store = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = store.holding;
    this.#held = store.held;
    store.holding.keepTexts(); // readers receive what the API server sent
    this.log = new EventLog(informer, store, options);
    this.states = new ContentStates(this.log, store.held, options.clock);
    this.versions = new ContentVersions(this.log);
  }

  /** How many milliseconds ago the informer had the last contact with its server; 0 if it does not say. */
  get ageMs(): number {
    const lagMs = this.#informer.lagMs?.() ?? 0;
    return Number.isFinite(lagMs) ? lagMs : 0;
  }

  held(key: string): Held<T> | undefined {
    return this.#held.getByKey(key);
  }
}

export interface ContentVersion {
  /** The entry of the log behind its last change: lists with the same have the same objects. */
  readonly changes: number;
  /** How many times the content has changed in a way that resourceVersions do not show. */
  readonly rewrites: number;
  /** A version at which a watch may start, or at any later list of the same version; it misses nothing. */
  readonly since: string;
}

interface LastChange {
  readonly changes: number;
  since: string;
}

/**
 * Finds the version of each namespace, and of all together. It reads the entries of the log when a version is
 * requested, so that a change costs nothing while there are no lists. After entries were dropped unread, all
 * count as changed.
 */
export class ContentVersions {
  readonly #log: Pick<EventLog<KubernetesObject>, "window" | "resume">;
  /** The last changes of namespaces, the latest one at the end. */
  readonly #namespaces = new Map<string, LastChange>();
  #others: LastChange = { changes: 0, since: "" };
  #next = -1;
  #rewrites = 0;

  constructor(log: Pick<EventLog<KubernetesObject>, "window" | "resume">) {
    this.#log = log;
  }

  /** The version of a namespace's objects; of all objects if the namespace is empty. */
  versionOf(namespace: string): ContentVersion {
    this.#catchUp();
    const last = this.#namespaces.get(namespace) ?? this.#others;
    const { resourceVersion: now } = this.#log.window;
    // Without this, readers of this version, whose watches are refused, would receive 304 again and again.
    if (last.since !== now && this.#log.resume(last.since) === undefined) last.since = now;
    return { ...last, rewrites: this.#rewrites };
  }

  #catchUp(): void {
    const { tail, entries, rewrites, resourceVersion } = this.#log.window;
    const head = tail + entries.length;
    if (this.#next < tail || this.#rewrites !== rewrites) {
      this.#namespaces.clear();
      this.#others = { changes: head, since: resourceVersion };
      this.#next = head;
      this.#rewrites = rewrites;
    }
    for (; this.#next < head; this.#next++) {
      const { type, key, position } = entries.at(this.#next - tail)!;
      if (type === "BOOKMARK") continue;
      const slash = key.indexOf("/");
      for (const namespace of slash < 0 ? [""] : ["", key.slice(0, slash)]) {
        this.#namespaces.delete(namespace);
        this.#namespaces.set(namespace, { changes: this.#next + 1, since: position });
      }
    }
    for (const [namespace, last] of this.#namespaces) {
      if (this.#namespaces.size <= MOST_NAMESPACES) return;
      this.#namespaces.delete(namespace);
      this.#others = last;
    }
  }
}

// Namespaces whose changes are kept, among them some that were deleted long ago.
const MOST_NAMESPACES = 4_096;

/** A source that a read cannot be proven fresh of. */
export interface StaleSource {
  readonly name: string;
  readonly why: Exclude<FreshnessOutcome, "fresh">;
}

/** A source, its content, and its questions to its server; without them its content counts as fresh. */
interface Followed extends NamedInformer {
  readonly content: FollowedContent;
  readonly fresh: FreshReads | undefined;
  readonly close: () => void;
}

interface ContentFreshnessOptions extends FreshReadsOptions {
  readonly freshness?: "consistent" | "stale-if-error" | "as-is" | undefined;
}

/** Compares the content with the servers of all sources, and waits for what they have. */
export class ContentFreshness {
  readonly #log: EventLog<KubernetesObject>;
  readonly #informer: ServedInformer;
  readonly #options: ContentFreshnessOptions;
  #followed: readonly Followed[] = [];
  #isClosed = false;
  /** Whether the informer is made of others, which may lack content one by one. */
  readonly isMerged: boolean;

  constructor(log: EventLog<KubernetesObject>, informer: ServedInformer, options: ContentFreshnessOptions) {
    this.#log = log;
    this.#informer = informer;
    this.#options = options;
    this.isMerged = informer.sources !== undefined;
  }

  close(): void {
    // The sources stay: without one, each read would be fresh.
    for (const { close } of this.#sources) close();
    this.#isClosed = true;
  }

  /** The sources that there are now: an informer's set of namespaces may change. */
  get #sources(): readonly Followed[] {
    const now = sourcesOf(this.#informer);
    const before = this.#followed;
    if (this.#isClosed) return before;
    if (now.length === before.length && now.every(({ informer }, i) => informer === before[i].informer)) {
      return before;
    }
    for (const { informer, close } of before) {
      if (!now.some((each) => each.informer === informer)) close();
    }
    return this.#followed = now.map((each) =>
      before.find(({ informer }) => informer === each.informer) ?? this.#newFollowed(each)
    );
  }

  /**
   * The sources without content that may have objects of a name; of any name if the name is empty. A source
   * that is not merged has content once its log is ready.
   */
  missing(name: string): readonly string[] {
    return this.#mayHave(name)
      .filter(({ informer }) => !informer.hasSynced() && informer.isRestored?.() !== true)
      .map(({ name }) => name);
  }

  /**
   * Waits until the content is as fresh as a query demands: the sources of which the last known state must
   * do, or the Status of a read that is not answered.
   */
  async catchUp(
    query: ListQuery,
    { resource, name, isPartial, refusesStale, wait }: {
      readonly resource: ApiResource;
      /** The name of the only object that is read; empty otherwise. */
      readonly name: string;
      readonly isPartial: boolean;
      /** Whether its reader wants no answer rather than a last known state. */
      readonly refusesStale: boolean;
      readonly wait: VersionWaitOptions;
    },
  ): Promise<readonly StaleSource[] | Status> {
    const { freshness } = this.#options;
    const { resourceVersion, continue: continued } = query.options;
    const token = continued === undefined ? undefined : decodeContinue(continued);
    if (token !== undefined) {
      if (isStatus(token)) return [];
      if (token.resourceVersion !== LATEST) {
        // The API server may have written it, or another cache of it, which has come further.
        if (compareResourceVersions(token.resourceVersion, this.#log.resourceVersion) > 0) {
          const outcome = await this.#reaches(token.resourceVersion, wait);
          // A content that was rewritten since does not come to the state again.
          const isRewritten = token.epoch !== undefined &&
            !token.epoch.endsWith(`.${this.#log.window.rewrites}`);
          if (outcome === "behind" && !isRewritten) {
            return tooLargeResourceVersion(token.resourceVersion, this.#log.resourceVersion);
          }
        }
        return [];
      }
      // The read continues with the present state, as a list without a version shows it.
    } else if (resourceVersion !== undefined) {
      const outcome = await this.#reaches(resourceVersion, wait);
      if (outcome === "reached") return [];
      return outcome === "foreign"
        ? anotherLayout(resourceVersion)
        : tooLargeResourceVersion(resourceVersion, this.#log.resourceVersion);
    }
    if (freshness === "as-is") return [];
    const staleIfError = isPartial || (freshness === "stale-if-error" && !refusesStale);
    const stale = await this.#stale(wait, { name, staleIfError });
    return stale.length === 0 || staleIfError ? stale : notFresh(resource, stale);
  }

  /** Waits until the content is as fresh as the servers are now; those that cannot be proven fresh. */
  async #stale(
    wait: VersionWaitOptions,
    { name, staleIfError }: { readonly name: string; readonly staleIfError: boolean },
  ): Promise<readonly StaleSource[]> {
    const missing = this.missing(name);
    const sources = this.#mayHave(name).filter(({ name }) => !missing.includes(name));
    const outcomes = await Promise.all(
      sources.map(({ fresh }) => fresh?.catchUp(wait, { staleIfError }) ?? "fresh"),
    );
    return sources.flatMap(({ name }, i) => outcomes[i] === "fresh" ? [] : [{ name, why: outcomes[i] }]);
  }

  /** Whether the content reaches a resourceVersion within a time; asks for proof of it. */
  async #reaches(
    resourceVersion: string,
    wait: VersionWaitOptions,
  ): Promise<"reached" | "behind" | "foreign"> {
    const parts = this.#partsOf(resourceVersion);
    if (parts === undefined) return "foreign";
    const reached = await Promise.all(
      this.#sources.map(({ fresh, content }, i) =>
        parts[i] === "0" || (fresh ?? content).reaches(parts[i], wait)
      ),
    );
    return reached.includes(false) ? "behind" : "reached";
  }

  /**
   * Whether a resourceVersion that the content has not reached is of a lost history; see {@linkcode
   * FreshReads.isLost}. No watch waits for a merged one: {@linkcode EventLog.resume} has no place for it.
   */
  async isLost(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    return await this.#sources[0]?.fresh?.isLost(resourceVersion, signal) === true;
  }

  #partsOf(resourceVersion: string): readonly string[] | undefined {
    if (this.#informer.partsOf !== undefined) return this.#informer.partsOf(resourceVersion);
    return layoutOf(resourceVersion) === this.#log.window.layout ? [resourceVersion] : undefined;
  }

  #mayHave(name: string): readonly Followed[] {
    const only = name === "" ? undefined : this.#informer.sourceOf?.(name);
    return only === undefined ? this.#sources : this.#sources.filter(({ name }) => name === only.name);
  }

  #newFollowed(each: NamedInformer): Followed {
    const { informer } = each;
    const closes: (() => void)[] = [];
    const content = informer === this.#informer ? this.#log : this.#follow(informer, closes);
    const source = informer.metadata?.();
    const fresh = source && new FreshReads(content, { informer, source }, this.#options);
    const close = () => {
      fresh?.close();
      closes.forEach((each) => each());
    };
    return { ...each, content, fresh, close };
  }

  #follow(informer: ServedInformer, closes: (() => void)[]): FollowedContent {
    const version = () => informer.indexer.lastStoreSyncResourceVersion();
    const waiters = newPartwiseWaiters(version, this.#options);
    const moved = () => waiters.moved();
    closes.push(informer.observeHeld?.(moved) ?? informer.observe(moved), () => waiters.stop());
    return {
      get resourceVersion() {
        return version();
      },
      reaches: async (wanted, wait) => await waiters.wait(wanted, wait) === "reached",
    };
  }
}

/** 504: a read without a resourceVersion cannot be proven as fresh as the API server's own. */
function notFresh(resource: ApiResource, stale: readonly StaleSource[]): Status {
  const names = stale.map(({ name }) => name).filter((name) => name !== "").join(", ");
  const of = names && ` of ${names}`;
  const what = formatGroupResource(resource);
  const reason = stale.some(({ why }) => why === "behind")
    ? `the cache of ${what}${of} has not reached the API server's resourceVersion in time`
    : `the API server${of} did not say in time how far it is`;
  const instead = names === "" ? "resourceVersion=0" : "partial=true or resourceVersion=0";
  const message =
    `Timeout: the read cannot be proven fresh: ${reason}; ${instead} reads what the cache holds`;
  return newStatus(504, "Timeout", message, { ...resourceDetails(resource), retryAfterSeconds: 1 });
}

/** 503: nothing was read of some sources yet, and the answer would be incomplete without them. */
export function incomplete(resource: ApiResource, missing: readonly string[]): Status {
  const what = formatGroupResource(resource);
  const names = missing.map((name) => JSON.stringify(name)).join(", ");
  const why = `the cache has nothing of ${names} yet; partial=true reads the others`;
  const cause = { reason: "SourceUnavailable", message: "it has not synced" };
  return newStatus(503, "ServiceUnavailable", `${what} cannot be read completely: ${why}`, {
    ...resourceDetails(resource),
    causes: missing.map((field) => ({ ...cause, field })),
    retryAfterSeconds: 1,
  });
}

/** 410: a resourceVersion from before the sources were divided in another way, or of one of them. */
function anotherLayout(resourceVersion: string): Status {
  const shown = resourceVersion.length > 100 ? `${resourceVersion.slice(0, 100)}...` : resourceVersion;
  const why = "its sources were divided in another way, or it is that of a single object; list again";
  return newStatus(410, "Expired", `The resourceVersion ${shown} is none of this resource: ${why}`);
}

/** 503: the first list is not there yet. */
export function notSynced(resource: ApiResource): Status {
  const message = `the cache of ${formatGroupResource(resource)} has not synced yet; try again in a moment`;
  return newStatus(503, "ServiceUnavailable", message, {
    ...resourceDetails(resource),
    retryAfterSeconds: 1,
  });
}
