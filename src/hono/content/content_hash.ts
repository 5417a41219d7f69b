/**
 * Hashes of the content of a log, and of each namespace of it.
 * @module
 */

import { metaOf } from "../../meta/object.ts";
import { TextSetHash } from "../../util/text_set_hash.ts";
import type { LogWindow } from "../watches/log_window.ts";
import type { Snapshot } from "./snapshot.ts";

/** A log, as the hashes of its content see it. */
export interface HashedLog<T> {
  readonly window: LogWindow<T>;
  readonly rewrites: number;
  readonly resourceVersion: string;
  readonly oldestResourceVersion: string;
  /** `undefined` if a watch may not start there. */
  resume(resourceVersion: string): number | undefined;
  readonly states: { snapshot(): Snapshot<T> };
}

/** The version of the content of a namespace. */
export interface ContentVersion {
  /** Two copies of one source have the same hash if their objects are the same: by name, uid and resourceVersion. */
  readonly hash: string;
  /** A watch may start here, and from any later list with the same hash; it misses nothing. */
  readonly since: string;
}

interface Scope {
  readonly hash: TextSetHash;
  since: string;
}

const ALL = "";

/**
 * Keeps a hash of the objects of each namespace, and of all. It reads the entries of the log when a hash is requested, so that a
 * change costs nothing while there are no lists. The first request costs a walk over all objects, and so does one
 * before which the entries since the last one were dropped.
 */
export class ContentHashes<T> {
  readonly #log: HashedLog<T>;
  /** The namespaces with objects, and all together. */
  #scopes = new Map<string, Scope>();
  /** Each of the others. */
  #empty: Scope = { hash: new TextSetHash(), since: "" };
  /** The next entry to read; `undefined` before the first request. */
  #next: number | undefined;
  #rewrites = 0;

  /** @param log Whose content it is. */
  constructor(log: HashedLog<T>) {
    this.#log = log;
  }

  /** The version of the objects of a namespace; of all objects where it is empty. */
  versionOf(namespace: string): ContentVersion {
    this.#catchUp();
    const scope = this.#scopes.get(namespace) ?? this.#empty;
    // Otherwise readers of this version, whose watches are refused, would receive 304 again and again.
    if (this.#log.resume(scope.since) === undefined) scope.since = this.#log.resourceVersion;
    return { hash: scope.hash.text, since: scope.since };
  }

  #catchUp(): void {
    const { tail, entries } = this.#log.window;
    const head = tail + entries.length;
    if (this.#next === undefined || this.#next < tail || this.#rewrites !== this.#log.rewrites) {
      this.#readAll();
    } else {
      for (let i = this.#next - tail; i < entries.length; i++) {
        const { type, key, object, oldObject, position } = entries.at(i)!;
        if (type === "BOOKMARK") continue;
        for (const name of scopesOf(key)) {
          const { hash } = this.#scope(name, position);
          if (type !== "ADDED") hash.delete(nameOf(key, oldObject));
          if (type !== "DELETED") hash.add(nameOf(key, object));
          if (hash.size === 0) this.#scopes.delete(name);
        }
      }
    }
    this.#next = head;
    this.#rewrites = this.#log.rewrites;
  }

  #readAll(): void {
    const { oldestResourceVersion, states, window } = this.#log;
    const now = states.snapshot();
    this.#scopes = new Map();
    this.#empty.since = oldestResourceVersion;
    for (let i = 0; i < now.length; i++) {
      const key = now.key(i);
      for (const name of scopesOf(key)) {
        this.#scope(name, oldestResourceVersion).hash.add(nameOf(key, now.object(i)));
      }
    }
    // As if it had read them one by one: so copies of one source that began at the same time agree.
    const { entries } = window;
    for (let i = 0; i < entries.length; i++) {
      const { type, key, position } = entries.at(i)!;
      if (type === "BOOKMARK") continue;
      for (const name of scopesOf(key)) if (this.#scopes.has(name)) this.#scope(name, position);
    }
  }

  #scope(name: string, since: string): Scope {
    let scope = this.#scopes.get(name);
    if (scope === undefined) this.#scopes.set(name, scope = { hash: new TextSetHash(), since });
    scope.since = since;
    return scope;
  }
}

function scopesOf(key: string): readonly string[] {
  const slash = key.indexOf("/");
  return slash < 0 ? [ALL] : [ALL, key.slice(0, slash)];
}

function nameOf(key: string, held: unknown): string {
  const { uid = "", resourceVersion = "" } = metaOf(held) ?? {};
  return `${key} ${uid} ${resourceVersion}`;
}
