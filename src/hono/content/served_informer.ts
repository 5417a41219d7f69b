import type { VersionProof } from "../../meta/list_watch.ts";
import type { StoreEvent } from "../../informer/events.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import type { GroupVersionResource } from "../../meta/resource.ts";
import type { MetadataSource } from "../../informer/snapshot/progress.ts";
import type { Projection } from "../../text/field_tree.ts";
import type { Held } from "../../store/holding.ts";
import type { Moment } from "../../util/clock.ts";

/** The store of a served informer: the part of `Indexer` that is read. */
export interface ServedStore<T> {
  /** All keys, in any order. */
  listKeys(): string[];
  /** The object of a key. */
  getByKey(key: string): T | undefined;
  /** The resourceVersion that the content has reached; `""` before the first list. */
  lastStoreSyncResourceVersion(): string;
}

/**
 * The part of an informer that {@linkcode readApi} needs. A `SharedIndexInformer` with its default keys and
 * its default queue has it: a `DeltaFIFO` hides relists and the order of events, on which watches depend.
 */
export interface ServedInformer<T extends KubernetesObject = KubernetesObject> {
  /** The listed resource, if it is known: Secrets are recognised by it. */
  readonly resource?: GroupVersionResource | undefined;
  /** The fields left out of the objects, if that is known: Tables show it. */
  readonly projection?: Projection | undefined;
  /** The store that is read. */
  readonly indexer: ServedStore<T>;
  /** Whether the first list is in the store. */
  hasSynced(): boolean;
  /**
   * Whether there is content although the informer has not synced: that of a snapshot, which the API server
   * has not confirmed. It is served, and every answer says so.
   */
  isRestored?(): boolean;
  /**
   * Calls an observer with every write to the store, in order and in the same turn, until the returned
   * function is called.
   */
  observe(observer: (event: StoreEvent<T>) => void): () => void;
  /**
   * As `observe`, with the objects in the form in which the store holds them; if it is absent, they are held
   * as they are.
   *
   * @internal
   */
  observeHeld?(observer: (event: StoreEvent<Held<T>>) => void): () => void;
  /** Calls a listener whenever the reflector's phase changes, until the returned function is called. */
  onStatus?(listener: (status: { readonly phase: string }) => void): () => void;
  /** A source of the names and versions of what it lists: reads that must be fresh need it. */
  metadata?(): MetadataSource | undefined;
  /**
   * Moves the content's version forward to `through`, if every change up to `after` has arrived; whether it
   * is there.
   */
  proven?(proof: VersionProof): boolean;
  /**
   * The content still lacks what the server had at a time: a watch that has brought nothing since is dead.
   *
   * @internal
   */
  overdue?(since: Moment): void;
  /** The informers that it is made of, if it is not one itself. */
  readonly sources?: readonly NamedInformer[] | undefined;
  /**
   * The version of each of {@linkcode ServedInformer.sources} that a resourceVersion stands for; `undefined`
   * if it is none of theirs.
   */
  readonly partsOf?: ((resourceVersion: string) => readonly string[] | undefined) | undefined;
  /** The only one of its sources that may have an object of a name; `undefined` if all may. */
  sourceOf?(name: string): NamedInformer | undefined;
  /**
   * How many milliseconds ago the API server sent something; `undefined` before the first time. Without it,
   * `/readyz` does not look at that, and answers have no `Age`.
   */
  lagMs?(): number | undefined;
  /** The phase of the reflector. */
  status(): {
    readonly phase: string;
    /** The API server sends no bookmarks, so that a quiet resource has news each 5 to 10 minutes only. */
    readonly hasNoBookmarks?: boolean;
    readonly lastError?: { readonly message: string } | undefined;
  };
}

/** An informer and its name among several. */
export interface NamedInformer {
  readonly name: string;
  readonly informer: ServedInformer;
}

/** The informers that something served is made of: itself, under an empty name, if it is one. */
export function sourcesOf(informer: ServedInformer): readonly NamedInformer[] {
  return informer.sources ?? [{ name: "", informer }];
}
