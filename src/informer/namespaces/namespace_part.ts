import type { NamespaceNames, VersionProof } from "../../meta/list_watch.ts";
import { decodeMergedVersion, type MergedVersion } from "../../meta/merged_version.ts";
import { compareResourceVersions, type KubernetesObject, metaOf } from "../../meta/object.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { Reflector } from "../../reflector/reflector.ts";
import type { FailedTry } from "../../reflector/failures.ts";
import { IDLE, type ReflectorStatus } from "../../reflector/state.ts";
import { abortable } from "../../util/abort.ts";
import type { Moment } from "../../util/clock.ts";
import type { StoreEvent } from "../events.ts";
import { type NamedOptions, NamespaceLoops } from "./namespace_loops.ts";

/** The informer of all namespaces, and its source. */
export interface WholeInformer<T> {
  readonly informer: {
    readonly name: string;
    readonly indexer: NamespacePart<T>["indexer"];
    observeHeld(observer: (event: StoreEvent<unknown>) => void): () => void;
  };
  readonly source: ListerWatcher<T>;
  /** The informer's options; neither of these two is possible. */
  readonly options: { readonly snapshot?: unknown; readonly queue?: unknown };
}

/**
 * One namespace of an informer: its objects, its version, its state. Reads that must be fresh are proven
 * namespace by namespace.
 * @internal
 */
export class NamespacePart<T> {
  readonly name: string;
  /** The stored objects of the namespace. */
  readonly indexer: {
    lastStoreSyncResourceVersion(): string;
    listKeys(): string[];
    getByKey(key: string): T | undefined;
  };
  /** The fields that the source leaves out of the objects, if that is known. */
  readonly projection: ListerWatcher<T>["projection"];
  readonly #whole: WholeInformer<T>;
  readonly #loops: () => NamespaceLoops<unknown> | undefined;
  #decoded: { readonly text: string; readonly version: MergedVersion | undefined } | undefined;

  /** @param loops `undefined` before the informer runs. */
  constructor(name: string, whole: WholeInformer<T>, loops: () => NamespaceLoops<unknown> | undefined) {
    this.name = name;
    this.#whole = whole;
    this.#loops = loops;
    this.projection = whole.source.projection;
    const isHere = (object: unknown) => metaOf(object)?.namespace === name;
    this.indexer = {
      lastStoreSyncResourceVersion: () => this.#version(),
      listKeys: () =>
        whole.informer.indexer.listKeys().filter((key) => isHere(whole.informer.indexer.getByKey(key))),
      getByKey: (key) => {
        const object = whole.informer.indexer.getByKey(key);
        return isHere(object) ? object : undefined;
      },
    };
  }

  hasSynced(): boolean {
    return this.#loops()?.hasListed(this.name) === true && this.#version() !== "";
  }

  failure(): FailedTry | undefined {
    return this.#loop?.failure();
  }

  status(): ReflectorStatus {
    return this.#loop?.status() ?? IDLE;
  }

  lagMs(): number | undefined {
    return this.#loop?.lagMs();
  }

  consistentMs(): number | undefined {
    return this.#loop?.consistentMs();
  }

  proven(proof: VersionProof): boolean {
    return this.#loop?.proven(proof) ?? false;
  }

  overdue(since: Moment): void {
    this.#loop?.overdue(since);
  }

  metadata(): ListerWatcher<KubernetesObject> | undefined {
    return this.#whole.source.inNamespace?.(this.name).metadata?.();
  }

  /** Calls an observer with what happens in the whole store. */
  observe(observer: (event: StoreEvent<never>) => void): () => void {
    return this.#whole.informer.observeHeld(observer as (event: StoreEvent<unknown>) => void);
  }

  /** Whether the store has everything of this namespace up to a version of the server. */
  hasReached(resourceVersion: string): boolean {
    const reached = this.#version();
    return reached !== "" && compareResourceVersions(reached, resourceVersion) >= 0;
  }

  /** Resolves when {@linkcode NamespacePart.hasReached} is true; rejects with the signal's reason. */
  async waitForVersion(
    resourceVersion: string,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted();
    if (this.hasReached(resourceVersion)) return;
    const reached = Promise.withResolvers<void>();
    const unobserve = this.observe(() => {
      if (this.hasReached(resourceVersion)) reached.resolve();
    });
    try {
      await abortable(reached.promise, signal);
    } finally {
      unobserve();
    }
  }

  get #loop(): Reflector<unknown> | undefined {
    return this.#loops()?.loopOf(this.name);
  }

  /** The version of what is stored. */
  #version(): string {
    const text = this.#whole.informer.indexer.lastStoreSyncResourceVersion();
    if (this.#decoded?.text !== text) this.#decoded = { text, version: decodeMergedVersion(text) };
    const { version } = this.#decoded;
    return version === undefined ? "" : this.#loops()?.partOf(this.name, version) ?? "";
  }
}

/** The namespaces of an informer that has a set of them: a loop and a part for each. */
export class FollowedNamespaces<T> {
  readonly #namespaces: NamespaceNames;
  readonly #whole: WholeInformer<T>;
  #parts: readonly NamespacePart<T>[] = [];
  #loops: NamespaceLoops<unknown> | undefined;

  constructor(namespaces: NamespaceNames, whole: WholeInformer<T>) {
    this.#namespaces = namespaces;
    this.#whole = whole;
  }

  /** Makes the loops that fill the queue; called when the informer starts. */
  begin<H>(source: ListerWatcher<H>, reflector: NamedOptions): NamespaceLoops<H> {
    const loops = new NamespaceLoops<H>(source, this.#namespaces, reflector);
    this.#loops = loops as NamespaceLoops<unknown>;
    return loops;
  }

  /** The parts of the namespaces that are in the set now: one of a name as long as it is in the set. */
  get all(): readonly NamespacePart<T>[] {
    const { names } = this.#namespaces;
    const isSame = names.length === this.#parts.length &&
      names.every((name, i) => this.#parts[i].name === name);
    if (!isSame) {
      const before = new Map(this.#parts.map((part) => [part.name, part]));
      const loops = () => this.#loops;
      this.#parts = names.map((name) => before.get(name) ?? new NamespacePart<T>(name, this.#whole, loops));
    }
    return this.#parts;
  }

  get sources(): readonly { readonly name: string; readonly informer: NamespacePart<T> }[] {
    return this.all.map((informer) => ({ name: informer.name, informer }));
  }

  /** The version of each part that a resourceVersion stands for; `undefined` if it is none of theirs. */
  readonly partsOf = (resourceVersion: string): readonly string[] | undefined => {
    const version = decodeMergedVersion(resourceVersion);
    // All namespaces have the versions of one server: each of them can come to it.
    if (version === undefined) return this.all.map(() => resourceVersion);
    const loops = this.#loops;
    if (loops === undefined || !loops.isLayout(version.layout)) return undefined;
    return this.all.map(({ name }) => loops.partOf(name, version) || "0");
  };

  /** Whether the store has everything up to a version: a server's, or a merged one. */
  readonly hasReached = (resourceVersion: string): boolean => {
    const wanted = this.partsOf(resourceVersion);
    return wanted !== undefined &&
      this.all.every((part, i) => wanted[i] === "0" || part.hasReached(wanted[i]));
  };
}
