import type { StoreChange } from "../../informer/events.ts";
import {
  compareResourceVersions,
  type KubernetesObject,
  metaOf,
  resourceVersionOf,
} from "../../meta/object.ts";
import type { Held } from "../../store/holding.ts";
import type { Source } from "./source.ts";

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

  /** What a change of a source is to readers of all: nothing, a change, or an end and a beginning. */
  changed(source: Source, change: Change): readonly Change[] {
    const shown = source.shownChange(change);
    if (source.isCluster) return [shown];
    return change.type === "deleted" ? this.#deleted(source, shown) : this.#written(source, shown);
  }

  /** What a source shows from now on because it has come far enough. */
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
    // What the others have was over before this one began.
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

/** One object takes the place of another: a new one of the name, or the same from another source. */
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
