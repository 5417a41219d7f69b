/** A set of namespaces that may change while informers follow it. */

import { MOST_SHARDS } from "../../meta/merged_version.ts";
import type { ListPage, NamespaceNames } from "../../meta/list_watch.ts";
import { compareResourceVersions } from "../../meta/object.ts";
import { callGuarded, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { FollowedNamespaces, type WholeInformer } from "./namespace_part.ts";

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * The namespaces that a resource is read in: `namespaces` of `cluster.resource`. Several resources may share
 * one, so that a program has one place where it says what it looks at.
 *
 * {@linkcode NamespaceSet.set} exchanges it at any time. An informer that runs lists the namespaces that have
 * come, and adds their objects; it deletes the objects of those that have left, as tombstones. Nothing else
 * is listed again.
 *
 * @example
 * ```ts
 * import { NamespaceSet, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const teams = new NamespaceSet(["shop", "blog"]);
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods", { namespaces: teams }));
 * teams.set(["shop", "wiki"]); // pods of "blog" leave the store, those of "wiki" come
 * console.log(pods.name, teams.names); // pods in 2 namespaces [ "shop", "wiki" ]
 * ```
 *
 * @category Cluster
 */
export class NamespaceSet implements NamespaceNames {
  readonly #listeners = new Set<() => void>();
  readonly #logger: Logger;
  #names: readonly string[];

  /**
   * @param options `logger` logs what listeners throw; the console by default.
   * @throws {TypeError} As {@linkcode NamespaceSet.set}.
   */
  constructor(names: readonly string[], options: { readonly logger?: Logger } = {}) {
    this.#names = checked(names);
    this.#logger = guardedLogger(options.logger);
  }

  /** The namespaces, each once. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Whether a namespace is in it. */
  has(name: string): boolean {
    return this.#names.includes(name);
  }

  /**
   * Exchanges the namespaces; those that stay are left alone.
   * @throws {TypeError} A name is not one of a namespace, or there are more than 999.
   */
  set(names: readonly string[]): void {
    const next = checked(names);
    if (next.length === this.#names.length && next.every((name) => this.has(name))) return;
    this.#names = next;
    const hasThrown = (error: unknown) => {
      const message = `a listener of ${next.length} namespaces threw: ${errorMessage(error)}`;
      this.#logger.error(message, { error });
    };
    for (const listener of [...this.#listeners]) {
      if (this.#listeners.has(listener)) callGuarded(listener, hasThrown);
    }
  }

  /** Calls a listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @internal */
  async listEach<T>(list: (namespace: string) => Promise<ListPage<T>>): Promise<ListPage<T>> {
    const all = await Promise.all(this.#names.map(list));
    // The lists are of different moments of one server: the earliest has what all have.
    const versions = all.map(({ metadata }) => metadata.resourceVersion ?? "").sort(compareResourceVersions);
    return {
      ...all[0],
      metadata: { resourceVersion: versions[0] ?? "" },
      items: all.flatMap(({ items }) => items),
      quarantined: all.flatMap(({ quarantined = [] }) => quarantined),
      ageMs: Math.max(0, ...all.map(({ ageMs = 0 }) => ageMs)),
    };
  }

  /**
   * Makes an informer's loops and parts for these namespaces. The set makes them, so that a program without a
   * set is bundled without them.
   * @internal
   */
  follow<T>(whole: WholeInformer<T>): FollowedNamespaces<T> {
    const { informer: { name }, options: { snapshot, queue } } = whole;
    if (snapshot || queue) {
      const what = snapshot ? "a snapshot" : "a queue of your own";
      const why = "its source lists namespaces one by one";
      throw new TypeError(`Cannot make an informer of ${name} with ${what}: ${why}; leave it out`);
    }
    return new FollowedNamespaces<T>(this, whole);
  }
}

function checked(names: readonly string[]): readonly string[] {
  const wrong = names.find((name) => !NAME.test(name));
  if (wrong !== undefined) {
    const how = "a name has up to 63 lower-case letters, digits and hyphens";
    throw new TypeError(`Cannot use the namespace ${JSON.stringify(wrong)}: ${how}`);
  }
  const unique = [...new Set(names)];
  if (unique.length > MOST_SHARDS) {
    throw new TypeError(
      `Cannot read ${unique.length} namespaces one by one: give at most ${MOST_SHARDS}, or read all at once`,
    );
  }
  return unique;
}
