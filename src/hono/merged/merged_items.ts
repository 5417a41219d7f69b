/**
 * Merging the lists of shards.
 * @module
 */

import { encodeMergedVersion } from "../../meta/merged_version.ts";
import { KeyedHeap } from "../../util/heap.ts";
import { type ListPart, newShardList } from "./list_parts.ts";
import { acceptOf, type MergedRequest, paramsFor } from "./merged_request.ts";
import { SKIP_SEEN } from "./merged_token.ts";
import { askShard, type Merged, type Shard } from "./shards.ts";
import { shownItem } from "./shown_objects.ts";

/** The items of all shards, in the order of their keys. */
export class MergedItems {
  readonly parts: readonly ListPart[];
  /** Of the whole; known from `start` on. */
  resourceVersion = "";
  /** The shard that could not be read. */
  failed: Shard | undefined;
  readonly #merged: Merged;
  readonly #request: MergedRequest;
  readonly #isWhole: boolean;
  readonly #abort: AbortController;
  readonly #heads = new KeyedHeap<
    ListPart,
    { readonly key: string; readonly index: number; readonly json: string }
  >(
    (a, b) => a.key < b.key || (a.key === b.key && a.index < b.index),
  );
  #seen: string;

  constructor(
    merged: Merged,
    request: MergedRequest,
    { parts, isWhole, seen, abort }: {
      readonly parts: readonly ListPart[];
      readonly isWhole: boolean;
      readonly seen: string;
      readonly abort: AbortController;
    },
  ) {
    this.#merged = merged;
    this.#request = request;
    this.parts = parts;
    this.#isWhole = isWhole;
    this.#seen = seen;
    this.#abort = abort;
  }

  /** The last key that was taken. */
  get seen(): string {
    return this.#seen;
  }

  /** Reads the heads of the lists: the versions of all shards are known then. */
  async start(): Promise<void> {
    await Promise.all(this.parts.map(async (part) => {
      if (part.list === undefined || part.from === undefined) return;
      part.head = await this.#reads(part, () => part.list!.head());
      for (let skip = part.from.skip; skip > 0 && await part.list.hasItem(); skip--) this.#drop(part);
      while (
        await this.#push(part) && part.from.skip === SKIP_SEEN && this.#heads.get(part)!.key <= this.#seen
      ) {
        this.#heads.delete(part);
        this.#drop(part);
      }
    }));
    this.resourceVersion = encodeMergedVersion({
      layout: this.#request.layout,
      parts: this.parts.map(versionOf),
    });
  }

  /** The next item of all; `undefined` at the end, also of a shard's page that is not its last. */
  async take(): Promise<string | undefined> {
    const next = this.#heads.pop();
    if (next === undefined) return undefined;
    const part = this.parts[next.index];
    this.#seen = next.key;
    this.#drop(part);
    if (await this.#push(part)) return next.json;
    // What comes next in this shard is not known: nothing may come before it.
    if (!this.#isWhole && part.head?.metadata.continue) { while (this.#heads.pop() !== undefined); }
    return next.json;
  }

  /** Reads no further. */
  cancel(): void {
    for (const { list } of this.parts) list?.cancel();
  }

  #drop(part: ListPart): void {
    part.list!.take();
    part.taken++;
  }

  /** Reads the next item of a shard; `false` if there is none. */
  async #push(part: ListPart): Promise<boolean> {
    while (!await this.#reads(part, () => part.list!.hasItem())) {
      if (!this.#isWhole || !part.head?.metadata.continue) return false;
      await this.#reads(part, () => this.#nextPage(part, part.head!.metadata.continue!));
    }
    const { key, json } = shownItem(part.list!.item!, part.form);
    this.#heads.set(part, { key, json, index: part.index });
    return true;
  }

  /** A shard has given a page although none was requested. */
  async #nextPage(part: ListPart, token: string): Promise<void> {
    const { params, pathname } = this.#request;
    const own = paramsFor(this.#merged, part.shard, params);
    own.set("continue", token);
    own.delete("resourceVersionMatch");
    const outcome = await askShard(this.#merged, part.shard, {
      pathname,
      params: own,
      accept: acceptOf(this.#request),
      preferences: this.#request.preferences,
      signal: this.#abort.signal,
    });
    if (outcome.kind === "away") throw new Error(outcome.why);
    if (outcome.kind === "refused") throw new Error(outcome.status.message ?? "refused");
    const list = newShardList(this.#merged, this.#request, outcome.response.body!);
    const { resourceVersion } = part.head!.metadata;
    part.list = list;
    part.head = await list.head();
    if (part.head.metadata.resourceVersion !== resourceVersion) {
      throw new Error("the pages of its list are of different states");
    }
  }

  async #reads<T>({ shard }: ListPart, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      this.failed ??= shard;
      throw error;
    }
  }
}

/** The version of a shard's list. */
export function versionOf({ head, version }: ListPart): string {
  return head?.metadata.resourceVersion ?? version;
}
