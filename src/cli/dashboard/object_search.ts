/**
 * Finds objects by words in their names.
 * @module
 */

import type { FoundObject, SearchResult } from "./dashboard_message.ts";
import type { ReflectedResource } from "./reflected_resource.ts";

/** Longer queries are cut. */
const LONGEST_QUERY = 500;

/**
 * Finds objects by a query of words. An object is found if each word is part of its namespace or name, or names its
 * resource as kubectl does. Words with `=` are requirements on labels. The cost is proportional to the number of objects; none of
 * them is opened.
 */
export function findObjects(
  resources: readonly ReflectedResource[],
  query: string,
  { limit }: { readonly limit: number },
): SearchResult {
  const all = query.slice(0, LONGEST_QUERY).trim().split(/\s+/).filter((word) => word !== "");
  const words = all.filter((word) => !word.includes("=")).map((word) => word.toLowerCase());
  const requirements = all.filter((word) => word.includes("="));
  if (requirements.length > 0) {
    const chosen = resources.map((resource) => ({ resource, rest: otherWords(resource, words) }));
    const named = chosen.filter(({ rest }) => rest.length < words.length);
    const lists = (named.length > 0 ? named : chosen).map(({ resource, rest }) => ({
      resource: resource.name,
      path: listPath(resource),
      words: rest,
    }));
    return { objects: [], total: 0, byLabels: { labelSelector: requirements.join(","), lists } };
  }
  if (words.length === 0) return { objects: [], total: 0 };
  const best = new BestMatches(limit);
  for (const resource of resources) {
    const rest = otherWords(resource, words);
    for (const key of resource.informer.indexer.listKeys()) {
      const rank = rankOf(key, rest);
      if (rank !== undefined) best.add({ rank, resource, key });
    }
  }
  return { objects: best.sorted().map(foundObject), total: best.total };
}

/** The path of a resource's list. */
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
  const slash = key.indexOf("/");
  const name = key.slice(slash + 1);
  let rank = 0;
  for (const word of words) {
    const at = name.indexOf(word);
    if (at < 0 && !key.includes(word)) return undefined;
    // The whole name, its beginning, within it, in the namespace.
    rank += at < 0 ? 3 : at > 0 ? 2 : name.length > word.length ? 1 : 0;
  }
  return rank;
}

interface Match {
  readonly rank: number;
  readonly resource: ReflectedResource;
  readonly key: string;
}

/** Keeps as many as are wanted for each rank. */
class BestMatches {
  readonly #limit: number;
  readonly #byRank: Match[][] = [];
  total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(match: Match): void {
    this.total++;
    const same = this.#byRank[match.rank] ??= [];
    if (same.length < this.#limit) same.push(match);
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
