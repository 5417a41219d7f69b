/** A source: one of several informers that are served as one; its objects may be named after its cluster. */

import type { StoreChange, StoreEvent } from "../../informer/events.ts";
import {
  compareResourceVersions,
  HeldObject,
  isComparableResourceVersion,
  type KubernetesObject,
  metaOf,
  resourceVersionOf,
} from "../../meta/object.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import type { FieldCut } from "../../text/field_cut.ts";
import { afterSpace, CLOSE_BRACE, OPEN_BRACE, QUOTE, textMember } from "../../text/json_walk.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";

export class Source {
  readonly name: string;
  readonly informer: ServedInformer;
  /** Whether its objects are named after it. */
  readonly isCluster: boolean;
  /** Whether its content is a part of the whole. */
  isIn = false;
  /** Whether a proof by state is further than its events. */
  mayLackEvents = false;
  /** The version that its part of the whole has; never back but by a list. */
  position = "0";
  readonly holding: Holding<KubernetesObject>;
  readonly store: ServedStore<Held<KubernetesObject>>;

  constructor(name: string, informer: ServedInformer, isCluster: boolean) {
    this.name = name;
    this.informer = informer;
    this.isCluster = isCluster;
    const { holding, held } = heldStoreOf<KubernetesObject, ServedStore<Held<KubernetesObject>>>(
      informer.indexer,
    );
    this.holding = holding;
    this.store = held;
    holding.keepTexts(); // readers receive what the API server sent
  }

  /** Whether the source has content: its first list, or a snapshot. */
  get hasContent(): boolean {
    return this.informer.hasSynced() || this.informer.isRestored?.() === true;
  }

  get storeVersion(): string {
    return this.informer.indexer.lastStoreSyncResourceVersion();
  }

  /** Moves the source's part of the merged version; versions that are no numbers do not move it. */
  moveTo(version: string): void {
    if (isComparableResourceVersion(version)) this.position = version;
  }

  observe(observer: (event: StoreEvent<Held<KubernetesObject>>) => void): () => void {
    return this.informer.observeHeld?.(observer) ?? this.informer.observe(observer);
  }

  keys(): string[] {
    const keys = this.store.listKeys();
    return this.isCluster ? keys.map((key) => shownKey(this.name, key)) : keys;
  }

  shown(key: string): SourceObject | undefined {
    const held = this.store.getByKey(this.isCluster ? ownKey(key) : key);
    return held && new SourceObject(this, key, held);
  }

  shownChange(change: StoreChange<Held<KubernetesObject>>): StoreChange<SourceObject> {
    const { type } = change;
    const key = this.isCluster ? shownKey(this.name, change.key) : change.key;
    const object = new SourceObject(this, key, change.object);
    if (type === "added") return { type, key, object };
    const oldObject = change.oldObject && new SourceObject(this, key, change.oldObject);
    return { type, key, object, oldObject } as StoreChange<SourceObject>;
  }
}

/** An object of a source, in the form in which its store holds it. */
export class SourceObject extends HeldObject {
  readonly source: Source;
  readonly key: string;
  readonly held: Held<KubernetesObject>;

  constructor(source: Source, key: string, held: Held<KubernetesObject>) {
    super();
    this.source = source;
    this.key = key;
    this.held = held;
  }

  get metadata(): HeldObject["metadata"] {
    return metaOf(this.held) as HeldObject["metadata"];
  }

  opened(how: "open" | "peek"): KubernetesObject {
    const { holding, isCluster, name } = this.source;
    const object = holding[how](this.held);
    return isCluster ? shownObject(name, object) : object;
  }

  /** The object's JSON text as it is shown, or cut to some fields, if that costs less than the object. */
  json(fields?: FieldCut): string | undefined {
    const { holding, isCluster, name } = this.source;
    if (!isCluster) return holding.json(this.held, fields);
    const json = holding.json(this.held);
    const shown = json === undefined ? undefined : shownText(name, json);
    return shown === undefined || fields === undefined ? shown : fields.text(shown);
  }

  /** A new object of some of its fields, if its text is there. */
  cut(fields: FieldCut): object | undefined {
    const { holding, isCluster } = this.source;
    if (!isCluster) return holding.cut(this.held, fields);
    return fields.objectOf({ json: this.json(), members: undefined });
  }
}

/** The annotation of objects that are shown among those of other clusters. */
export const CLUSTER_ANNOTATION = "listwatch.dev/cluster";

export function shownKey(cluster: string, key: string): string {
  const slash = key.indexOf("/") + 1;
  return `${key.slice(0, slash)}${cluster}.${key.slice(slash)}`;
}

/** The key that it has in its cluster: names of clusters have no dots. */
export function ownKey(shown: string): string {
  const slash = shown.indexOf("/") + 1;
  return shown.slice(0, slash) + shown.slice(shown.indexOf(".", slash) + 1);
}

export function shownObject<T extends KubernetesObject>(cluster: string, object: T): T {
  const { metadata } = object;
  if (metadata?.name === undefined) return object;
  const annotations = { ...metadata.annotations, [CLUSTER_ANNOTATION]: cluster };
  return { ...object, metadata: { ...metadata, name: `${cluster}.${metadata.name}`, annotations } };
}

/** The JSON text of an object under its shown name; everything else stays, digit for digit. */
export function shownText(cluster: string, json: string): string | undefined {
  const metadata = textMember(json, 0, "metadata");
  const name = metadata && textMember(json, metadata.start, "name");
  if (name === undefined || json.charCodeAt(name.start) !== QUOTE) return undefined;
  const annotations = textMember(json, metadata!.start, "annotations");
  const annotation = `${JSON.stringify(CLUSTER_ANNOTATION)}:${JSON.stringify(cluster)}`;
  // Clusters' names need no escapes.
  const prefix = { at: name.start + 1, text: `${cluster}.` };
  if (annotations === undefined) {
    return inserted(json, [{ at: metadata!.start + 1, text: `"annotations":{${annotation}},` }, prefix]);
  }
  if (json.charCodeAt(annotations.start) !== OPEN_BRACE) return undefined;
  if (textMember(json, annotations.start, CLUSTER_ANNOTATION) !== undefined) return undefined;
  const isEmpty = json.charCodeAt(afterSpace(json, annotations.start + 1)) === CLOSE_BRACE;
  const first = { at: annotations.start + 1, text: isEmpty ? annotation : `${annotation},` };
  return inserted(json, first.at < prefix.at ? [first, prefix] : [prefix, first]);
}

function inserted(json: string, parts: readonly { readonly at: number; readonly text: string }[]): string {
  let result = "";
  let from = 0;
  for (const { at, text } of parts) {
    result += json.slice(from, at) + text;
    from = at;
  }
  return result + json.slice(from);
}

type Change = StoreChange<Held<KubernetesObject>>;

/** A source that has a key which it does not show. */
interface Hidden {
  readonly source: Source;
  /** No source shows the key; this one will, if it still has it once it has come to this version. */
  readonly until: string | undefined;
}

/**
 * Keeps the source that shows each key, and makes one history of each key of the changes of all sources.
 *
 * Shards of one cluster have a key twice for a moment: its object was deleted and created again, or has moved
 * from one shard to another, and one shard is ahead of the other. The later version is the object as it is;
 * what the other one has is over. If the later one is deleted, what the other one has is shown again only
 * when that has come as far and still has it. Clusters never have the same key.
 */
export class KeyOwners {
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #hasClusters: boolean;
  readonly #shown = new Map<string, Source>();
  readonly #hidden = new Map<string, readonly Hidden[]>();
  /** The keys that no source shows although some have them. */
  readonly #buried = new Set<string>();

  constructor(sources: readonly Source[]) {
    this.#sources = new Map(sources.map((source) => [source.name, source]));
    this.#hasClusters = sources.some(({ isCluster }) => isCluster);
  }

  keys(): string[] {
    if (!this.#hasClusters) return Array.from(this.#shown.keys());
    return Array.from(this.#sources.values()).flatMap((source) => source.isIn ? source.keys() : []);
  }

  ownerOf(key: string): Source | undefined {
    if (!this.#hasClusters) return this.#shown.get(key);
    const source = this.#sources.get(key.slice(key.indexOf("/") + 1).split(".", 1)[0]);
    return source?.isIn ? source : undefined;
  }

  clear(): void {
    this.#shown.clear();
    this.#hidden.clear();
    this.#buried.clear();
  }

  /** How readers of all sources see a change of one: as nothing, as a change, or as a delete and an add. */
  changed(source: Source, change: Change): readonly Change[] {
    const shown = source.shownChange(change);
    if (source.isCluster) return [shown];
    return change.type === "deleted" ? this.#deleted(source, shown) : this.#written(source, shown);
  }

  /** The changes that a source shows from now on because it has come far enough. */
  moved(source: Source): readonly Change[] {
    if (this.#buried.size === 0) return [];
    return Array.from(this.#buried).flatMap((key) => {
      const found = this.#hidden.get(key)?.find((hidden) => hidden.source === source && hasCome(hidden));
      const object = found && source.shown(key);
      return object === undefined ? [] : this.#show(source, { type: "added", key, object });
    });
  }

  #written(source: Source, change: Change): readonly Change[] {
    const { key, object } = change;
    const owner = this.#shown.get(key);
    if (owner === source) return [change];
    const mine = this.#hidden.get(key)?.find((hidden) => hidden.source === source);
    if (owner === undefined) {
      const isDue = mine === undefined || hasCome(mine);
      return isDue ? this.#show(source, { type: "added", key, object }) : [];
    }
    const shown = owner.shown(key)!;
    if (compareResourceVersions(versionOf(object), versionOf(shown)) <= 0) {
      if (mine === undefined) this.#hide(key, { source, until: undefined });
      return [];
    }
    this.#show(source, change);
    this.#hide(key, { source: owner, until: undefined });
    return exchanged(key, shown, object);
  }

  #deleted(source: Source, change: Change): readonly Change[] {
    const { key, object } = change;
    if (this.#shown.get(key) !== source) {
      this.#unhide(key, source);
      return [];
    }
    this.#shown.delete(key);
    const hidden = this.#hidden.get(key) ?? [];
    if (hidden.length === 0) return [change];
    // Other sources may show their object once they have reached the version of this delete.
    const until = versionOf(object);
    const others = hidden.map((each) => ({ ...each, until }));
    this.#hidden.set(key, others);
    const next = others.filter(hasCome).map((each) => each.source)
      .sort((a, b) => compareResourceVersions(versionOf(b.shown(key)), versionOf(a.shown(key))))[0];
    if (next === undefined) {
      this.#buried.add(key);
      return [change];
    }
    const shown = next.shown(key)!;
    this.#show(next, { type: "added", key, object: shown });
    return exchanged(key, object, shown);
  }

  #show(source: Source, change: Change): readonly Change[] {
    this.#shown.set(change.key, source);
    this.#buried.delete(change.key);
    this.#unhide(change.key, source);
    return [change];
  }

  #hide(key: string, hidden: Hidden): void {
    this.#hidden.set(key, [...(this.#hidden.get(key) ?? []), hidden]);
  }

  #unhide(key: string, source: Source): void {
    const others = this.#hidden.get(key)?.filter((hidden) => hidden.source !== source);
    if (others === undefined) return;
    if (others.length > 0) this.#hidden.set(key, others);
    else {
      this.#hidden.delete(key);
      this.#buried.delete(key);
    }
  }
}

/** The changes by which an object replaces another: a new one of the name, or one of another source. */
function exchanged(
  key: string,
  oldObject: Held<KubernetesObject>,
  object: Held<KubernetesObject>,
): readonly Change[] {
  if (metaOf(oldObject)?.uid === metaOf(object)?.uid) return [{ type: "updated", key, object, oldObject }];
  return [{ type: "deleted", key, object: oldObject, oldObject }, { type: "added", key, object }];
}

function hasCome({ source, until }: Hidden): boolean {
  return until !== undefined && compareResourceVersions(source.position, until) >= 0;
}

function versionOf(object: unknown): string {
  return resourceVersionOf(object) ?? "";
}
