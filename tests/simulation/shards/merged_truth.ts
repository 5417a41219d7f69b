/**
 * What shards or clusters have together at versions of each.
 * @module
 */

import { decodeMergedVersion } from "../../../src/meta/merged_version.ts";
import { shardIndexOf, ShardSelector } from "../../../src/meta/shard_hash.ts";
import type { ClusterModel, Revision, SimObject } from "../cluster_model.ts";
import { RESOURCE } from "../tree/origin.ts";
import type { ShardsSetting } from "./simulate_shards.ts";

/** The versions of objects, by key. */
export type Content = ReadonlyMap<string, string>;

/** Knows the history of each cluster, and which source has which object. */
export class MergedTruth {
  readonly #clusters: readonly ClusterModel[];
  readonly #setting: ShardsSetting;
  readonly #shards: readonly ShardSelector[];

  constructor(clusters: readonly ClusterModel[], setting: ShardsSetting) {
    this.#clusters = clusters;
    this.#setting = setting;
    const { sources } = setting;
    this.#shards = Array.from({ length: sources }, (_, i) => ShardSelector.range("uid", i, sources));
  }

  /** The names of the sources. */
  get names(): string[] {
    return Array.from({ length: this.#setting.sources }, (_, i) => `c${i}`);
  }

  /** The present versions of the sources. */
  get versions(): string[] {
    return this.names.map((_, i) => String(this.#clusterOf(i).revision));
  }

  /** What all have at a merged version; nothing of a source at 0. */
  contentAt(resourceVersion: string): Content | undefined {
    const parts = decodeMergedVersion(resourceVersion)?.parts;
    return parts && this.contentOf(parts);
  }

  /** The content at versions of the sources. A key in several shards has the state that is not over. */
  contentOf(parts: readonly string[]): Content {
    const content = new Map<string, string>();
    for (const [i, part] of parts.entries()) {
      if (part === "0") continue;
      for (const [key, object] of this.#clusterOf(i).stateAt(RESOURCE, Number(part))) {
        if (this.#setting.by === "cluster") {
          const [namespace, name] = key.split("/");
          content.set(`${namespace}/c${i}.${name}`, object.metadata.resourceVersion);
        } else if (this.#shardOf(key, object) === i && !this.#isOver(key, { part, parts })) {
          content.set(key, object.metadata.resourceVersion);
        }
      }
    }
    return content;
  }

  /** Whether another shard has seen what came of a key after a version. */
  #isOver(
    key: string,
    { part, parts }: { readonly part: string; readonly parts: readonly string[] },
  ): boolean {
    const [cluster] = this.#clusters;
    for (let revision = Number(part) + 1; revision <= cluster.revision; revision++) {
      const one: Revision = cluster.at(revision);
      if (one.resource !== RESOURCE || one.key !== key) continue;
      if (revision <= Number(parts[this.#shardOf(key, one.object)])) return true;
    }
    return false;
  }

  #shardOf(key: string, object: SimObject): number {
    const { by, sources } = this.#setting;
    if (by === "name") return shardIndexOf(key, sources);
    return this.#shards.findIndex((shard) => shard.matches(object));
  }

  #clusterOf(source: number): ClusterModel {
    return this.#clusters[source % this.#clusters.length];
  }
}

/** How two contents differ. */
export function differenceOf(actual: Content, expected: Content): string | undefined {
  for (const [key, version] of expected) {
    if (actual.get(key) !== version) return `${key} is ${actual.get(key)}, not ${version}`;
  }
  for (const key of actual.keys()) if (!expected.has(key)) return `${key} is there, and should not be`;
  return undefined;
}
