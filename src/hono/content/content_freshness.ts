/**
 * How fresh the content of a resource is, whether one informer holds it or several.
 * @module
 */

import { type KubernetesObject, layoutOf } from "../../meta/object.ts";
import { PartwiseVersionWaiters, type VersionWaitOptions } from "../../meta/version_waiters.ts";
import {
  type FollowedContent,
  type FreshnessOutcome,
  FreshReads,
  type FreshReadsOptions,
} from "./fresh_reads.ts";
import { type NamedInformer, type ServedInformer, sourcesOf } from "./served_informer.ts";
import type { EventLog } from "./event_log.ts";

/** A source that a read cannot be proven fresh of. */
export interface StaleSource {
  /** Empty if there is only one. */
  readonly name: string;
  readonly why: Exclude<FreshnessOutcome, "fresh">;
}

/** One of the sources, its content, and its questions to its server; without them it is taken as it is. */
interface Followed extends NamedInformer {
  readonly content: FollowedContent;
  readonly fresh: FreshReads | undefined;
}

/** Compares the content with the servers of all sources, and waits for what they have. */
export class ContentFreshness {
  readonly #log: EventLog<KubernetesObject>;
  readonly #informer: ServedInformer;
  readonly #sources: readonly Followed[];
  readonly #unobserve: (() => void)[] = [];

  constructor(log: EventLog<KubernetesObject>, informer: ServedInformer, options: FreshReadsOptions) {
    this.#log = log;
    this.#informer = informer;
    this.#sources = sourcesOf(informer).map((each) => {
      const content = each.informer === informer ? log : this.#follow(each.informer, options);
      const source = each.informer.metadata?.();
      const fresh = source && new FreshReads(content, { informer: each.informer, source }, options);
      return { ...each, content, fresh };
    });
  }

  /** Stops all questions. */
  close(): void {
    for (const { fresh } of this.#sources) fresh?.close();
    for (const unobserve of this.#unobserve) unobserve();
  }

  /** The sources without content, which may have objects of a name; of any name if it is empty. */
  missing(name: string): readonly string[] {
    return this.#mayHave(name)
      .filter(({ informer }) => !informer.hasSynced() && informer.isRestored?.() !== true)
      .map(({ name }) => name);
  }

  /**
   * Waits until the content is as fresh as the servers are now; those with content of which it cannot be
   * proven. Never rejects.
   */
  async catchUp(
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

  /**
   * Whether the content reaches a resourceVersion within a time; asks for proof of it. `"foreign"`: it is
   * none of this content, and never will be.
   */
  async reaches(
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
   * FreshReads.isLost}.
   */
  async isLost(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    const [{ fresh }] = this.#sources;
    return this.#sources.length === 1 && await fresh?.isLost(resourceVersion, signal) === true;
  }

  #partsOf(resourceVersion: string): readonly string[] | undefined {
    if (this.#informer.partsOf !== undefined) return this.#informer.partsOf(resourceVersion);
    return layoutOf(resourceVersion) === layoutOf(this.#log.resourceVersion) ? [resourceVersion] : undefined;
  }

  #mayHave(name: string): readonly Followed[] {
    const only = name === "" ? undefined : this.#informer.sourceOf?.(name);
    return only === undefined ? this.#sources : this.#sources.filter(({ name }) => name === only.name);
  }

  /** The content of one of several informers. */
  #follow(informer: ServedInformer, options: FreshReadsOptions): FollowedContent {
    const version = () => informer.indexer.lastStoreSyncResourceVersion();
    const waiters = new PartwiseVersionWaiters(version, options);
    const moved = () => waiters.moved();
    this.#unobserve.push(informer.observeHeld?.(moved) ?? informer.observe(moved), () => waiters.stop());
    return {
      get resourceVersion() {
        return version();
      },
      reaches: async (wanted, wait) => await waiters.wait(wanted, wait) === "reached",
    };
  }
}
