/**
 * The indices of the program under test, and what must be true of them.
 * @module
 */

import { type Indexer, type Indexers, labelIndexFunc, metaNamespaceIndex, newLister } from "@listwatch/cache";
import { parseLabelSelector } from "@listwatch/cache/selectors";
import { keyOfObject, type SimObject } from "./cluster_model.ts";

/** The indices of every informer. */
export type IndexName = "namespace" | "byNode" | "byParity" | "labels";

// An informer may leave the field out: then all objects are under one value.
const VALUES: Readonly<Record<IndexName, (object: SimObject) => string[]>> = {
  namespace: ({ metadata }) => [metadata.namespace],
  byNode: ({ spec }) => [spec?.node ?? "none"],
  byParity: ({ spec }) => [(spec?.value ?? 0) % 2 === 0 ? "even" : "odd", "any"],
  labels: ({ metadata }) =>
    Object.entries<string>(metadata.labels ?? {}).flatMap(([key, value]) => [key, `${key}=${value}`]),
};

/** Selectors for listers and readers: each kind of requirement, with and without an index. */
export const SELECTORS:
  readonly (readonly [string, (labels: Readonly<Record<string, string>>) => boolean])[] = [
    ["app=web", ({ app }) => app === "web"],
    ["app in (web,api)", ({ app }) => app === "web" || app === "api"],
    ["app!=web", ({ app }) => app !== "web"],
    ["tier", ({ tier }) => tier !== undefined],
    ["!tier", ({ tier }) => tier === undefined],
    ["app in (db,web),tier=front", ({ app, tier }) => (app === "db" || app === "web") && tier === "front"],
    ["tier in (front,back),app=db", ({ app, tier }) => app === "db" && tier !== undefined],
  ];

/** Makes them; `refuses` makes one of them throw. */
export function newIndexers(refuses?: (object: SimObject) => boolean): Indexers<SimObject, IndexName> {
  return {
    namespace: metaNamespaceIndex,
    byNode: (object) => {
      if (refuses?.(object)) throw new Error("an index function that throws");
      return VALUES.byNode(object);
    },
    byParity: VALUES.byParity,
    labels: labelIndexFunc(),
  };
}

/**
 * Checks the indices, and the results of listers, against the store.
 * @param isShared Whether two reads return one object: of short texts, only those that were read lately.
 */
export function checkIndices(
  indexer: Indexer<SimObject, IndexName>,
  { isShared, violate }: { readonly isShared: boolean; readonly violate: (text: string) => void },
): void {
  const stored = indexer.list();
  for (const name of Object.keys(VALUES) as IndexName[]) {
    const wanted = new Map<string, Set<SimObject>>();
    for (const object of stored) {
      for (const value of VALUES[name](object)) {
        let set = wanted.get(value);
        if (set === undefined) wanted.set(value, set = new Set());
        set.add(object);
      }
    }
    const values = indexer.listIndexFuncValues(name).sort();
    const wantedValues = [...wanted.keys()].sort();
    if (values.join() !== wantedValues.join()) {
      violate(`index ${name} has the values ${values.join()}, not ${wantedValues.join()}`);
    }
    for (const [value, objects] of wanted) {
      const found = indexer.byIndex(name, value);
      const texts = isShared ? undefined : new Set([...objects].map((object) => JSON.stringify(object)));
      const isIn = (object: SimObject) => texts?.has(JSON.stringify(object)) ?? objects.has(object);
      if (found.length !== objects.size || !found.every(isIn)) {
        violate(`index ${name} has ${found.length} objects for ${value}, not ${objects.size}, or others`);
      }
      const keys = indexer.indexKeys(name, value).join();
      const wantedKeys = [...objects].map(keyOfObject).sort().join();
      if (keys !== wantedKeys) violate(`index ${name} has the keys ${keys} for ${value}, not ${wantedKeys}`);
      if (indexer.countByIndex(name, value) !== objects.size) {
        violate(
          `index ${name} counts ${indexer.countByIndex(name, value)} for ${value}, not ${objects.size}`,
        );
      }
    }
  }
  checkListers(indexer, stored, violate);
}

function checkListers(
  indexer: Indexer<SimObject, IndexName>,
  stored: readonly SimObject[],
  violate: (text: string) => void,
): void {
  const lister = newLister(indexer, "v1/pods");
  for (const [text, matches] of SELECTORS) {
    const selector = parseLabelSelector(text);
    for (const namespace of ["", "a"]) {
      const wanted = stored.filter(({ metadata }) =>
        matches(metadata.labels ?? {}) && (namespace === "" || metadata.namespace === namespace)
      ).map(keyOfObject).sort().join();
      const found = lister.byNamespace(namespace).list(selector).map(keyOfObject).sort().join();
      if (found !== wanted) violate(`a lister finds ${found} for ${text} in "${namespace}", not ${wanted}`);
    }
  }
}
