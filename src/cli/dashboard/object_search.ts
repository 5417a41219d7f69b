/** Finds objects by words in their names. */

import { type Pacer, STEP_OBJECTS } from "../../util/turns.ts";
import type { FoundObject, SearchResult } from "./dashboard_message.ts";
import type { ReflectedResource } from "../cluster/reflect.ts";

/** More is cut off a query. */
const LONGEST_QUERY = 200;
const MOST_WORDS = 10;
/** More are counted, but not shown. */
const MAX_FOUND = 100;
/**
 * More at a time are refused, of one client and of all. A page has one, and leaves it when its reader types
 * on.
 */
const MAX_PER_CLIENT = 4;
const MAX_RUNNING = 20;

// What it costs to look at a key, and for each word in it: see Pacer.
const KEY_UNITS = 3;
const WORD_UNITS = 3;

export interface SearchOptions {
  /** Who searches, if it is known: all who are not are one. */
  readonly client: string | undefined;
  readonly pacer: Pacer;
  readonly signal: AbortSignal;
}

export class ObjectSearch {
  readonly #resources: readonly ReflectedResource[];
  readonly #byClient = new Map<string, number>();
  readonly #keys = new Map<ReflectedResource, readonly string[]>();
  #keysUses = 0;
  #running = 0;

  constructor(resources: readonly ReflectedResource[]) {
    this.#resources = resources;
  }

  /** As {@linkcode findObjects}; `undefined` if there are too many searches. */
  async find(query: string, options: SearchOptions): Promise<SearchResult | undefined> {
    const { client = "" } = options;
    const count = this.#byClient.get(client) ?? 0;
    if (count >= MAX_PER_CLIENT || this.#running >= MAX_RUNNING) return undefined;
    this.#running++;
    this.#byClient.set(client, count + 1);
    try {
      if (this.#keysUses++ === MAX_RUNNING) this.#forgetKeys();
      const keysOf = (resource: ReflectedResource) => this.#keysOf(resource);
      return await findObjects(this.#resources, query, { ...options, limit: MAX_FOUND, keysOf });
    } finally {
      if (--this.#running === 0) this.#forgetKeys();
      const left = (this.#byClient.get(client) ?? 1) - 1;
      if (left > 0) this.#byClient.set(client, left);
      else this.#byClient.delete(client);
    }
  }

  /** The keys, for all searches that run together: a large resource's take much memory. */
  #keysOf(resource: ReflectedResource): readonly string[] {
    let keys = this.#keys.get(resource);
    if (keys === undefined) this.#keys.set(resource, keys = keysIn(resource));
    return keys;
  }

  #forgetKeys(): void {
    this.#keys.clear();
    this.#keysUses = 0;
  }
}

function keysIn({ informer }: ReflectedResource): readonly string[] {
  return informer.indexer.listKeys();
}

/**
 * Finds objects by a query of words. An object is found if each word is part of its namespace or name, or
 * names its resource as kubectl does. Words with `=` are requirements on labels. The cost is proportional to
 * the number of objects; none of them is opened.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function findObjects(
  resources: readonly ReflectedResource[],
  query: string,
  { limit, pacer, signal, keysOf = keysIn }: Pick<SearchOptions, "pacer" | "signal"> & {
    readonly limit: number;
    readonly keysOf?: (resource: ReflectedResource) => readonly string[];
  },
): Promise<SearchResult> {
  const all = query.slice(0, LONGEST_QUERY).split(/\s+/).filter((word) => word !== "").slice(0, MOST_WORDS);
  const words = all.filter((word) => !word.includes("=")).map((word) => word.toLowerCase());
  const requirements = all.filter((word) => word.includes("="));
  if (requirements.length > 0) {
    return { objects: [], total: 0, byLabels: searchByLabels(resources, words, requirements) };
  }
  if (words.length === 0) return { objects: [], total: 0 };
  const best = new BestMatches(limit);
  for (const resource of resources) {
    const rest = otherWords(resource, words);
    const units = KEY_UNITS + WORD_UNITS * rest.length;
    // The keys of a large resource are worth a turn of their own.
    await pacer.rest();
    signal.throwIfAborted();
    const keys = keysOf(resource);
    for (let i = 0; i < keys.length; i++) {
      const rank = rankOf(keys[i], rest);
      if (rank !== undefined) best.add(rank, resource, keys[i]);
      if ((i + 1) % STEP_OBJECTS > 0 || !pacer.spend(STEP_OBJECTS * units)) continue;
      await pacer.rest();
      signal.throwIfAborted();
    }
  }
  return { objects: best.sorted().map(foundObject), total: best.total };
}

/** Which lists a page reads to find objects by labels. */
function searchByLabels(
  resources: readonly ReflectedResource[],
  words: readonly string[],
  requirements: readonly string[],
): SearchResult["byLabels"] {
  const chosen = resources.map((resource) => ({ resource, rest: otherWords(resource, words) }));
  const named = chosen.filter(({ rest }) => rest.length < words.length);
  const lists = (named.length > 0 ? named : chosen).map(({ resource, rest }) => ({
    resource: resource.name,
    path: listPath(resource),
    words: rest,
  }));
  return { labelSelector: requirements.join(","), lists };
}

export function listPath(
  { resource: { group, version, resource } }: Pick<ReflectedResource, "resource">,
): string {
  return group === "" ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`;
}

/** The words that do not name the resource. */
function otherWords({ resource, name }: ReflectedResource, words: readonly string[]): readonly string[] {
  const names = [name, resource.kind.toLowerCase(), ...resource.shortNames ?? []];
  return words.filter((word) => !names.includes(word) && word !== resource.resource);
}

/** The lower the better; `undefined` if a word is missing. */
function rankOf(key: string, words: readonly string[]): number | undefined {
  // No text of the name is made, of which there would be one for each object.
  const start = key.indexOf("/") + 1;
  let rank = 0;
  for (const word of words) {
    const at = key.indexOf(word, start);
    if (at < 0 && !key.includes(word)) return undefined;
    // The whole name, its beginning, within it, in the namespace.
    rank += at < 0 ? 3 : at > start ? 2 : key.length - start > word.length ? 1 : 0;
  }
  return rank;
}

interface Match {
  readonly resource: ReflectedResource;
  readonly key: string;
}

class BestMatches {
  readonly #limit: number;
  readonly #byRank: Match[][] = [];
  total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(rank: number, resource: ReflectedResource, key: string): void {
    this.total++;
    const same = this.#byRank[rank] ??= [];
    if (same.length < this.#limit) same.push({ resource, key });
  }

  sorted(): Match[] {
    return this.#byRank.flat().slice(0, this.#limit);
  }
}

function foundObject({ resource, key }: Match): FoundObject {
  const slash = key.indexOf("/");
  return {
    resource: resource.name,
    path: listPath(resource),
    ...(slash >= 0 && { namespace: key.slice(0, slash) }),
    name: key.slice(slash + 1),
  };
}
