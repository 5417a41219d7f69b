/** Hashes of content, which show whether two lists are the same. */

import { type KubernetesObject, metaOf } from "../../meta/object.ts";
import { TextSetHash } from "../../util/hash.ts";
import type { Pacer } from "../../util/turns.ts";
import type { EventLog } from "./event_log.ts";
import type { ContentStates } from "./states.ts";

/** The version of the content of a namespace. */
export interface ContentVersion {
  /**
   * Two copies of one source have the same hash if their objects are the same: by name, uid and
   * resourceVersion.
   */
  readonly hash: string;
  /** How often the content has changed in a way that resourceVersions do not show. */
  readonly rewrites: number;
  /** A watch may start here, and from any later list with the same hash; it misses nothing. */
  readonly since: string;
}

interface Scope {
  readonly hash: TextSetHash;
  since: string;
}

const ALL = "";

/**
 * Keeps a hash of the objects of each namespace, and of all. It reads the entries of the log when a hash is
 * requested, so that a change costs nothing while there are no lists. The first request costs a walk over all
 * objects, and so does one before which the entries since the last one were dropped.
 */
export class ContentHashes<T extends KubernetesObject> {
  readonly #log: EventLog<T>;
  readonly #states: ContentStates<T>;
  /** The namespaces with objects, and all together. */
  #scopes = new Map<string, Scope>();
  /** Each of the others. */
  #empty: Scope = { hash: new TextSetHash(), since: "" };
  /** The next entry to read; `undefined` before the first request. */
  #next: number | undefined;
  #rewrites = 0;
  #reading: Promise<void> | undefined;

  /** Reads nothing yet. */
  constructor(log: EventLog<T>, states: ContentStates<T>) {
    this.#log = log;
    this.#states = states;
  }

  /** The version of the objects of a namespace; of all objects where it is empty. */
  versionOf(namespace: string): ContentVersion {
    this.#catchUp();
    const scope = this.#scopes.get(namespace) ?? this.#empty;
    // Otherwise readers of this version, whose watches are refused, would receive 304 again and again.
    if (this.#log.resume(scope.since) === undefined) scope.since = this.#log.window.resourceVersion;
    const hash = scope.hash.text;
    return { hash, rewrites: this.#rewrites, since: scope.since };
  }

  /** Whether all objects must be read for the next version. */
  get isBehind(): boolean {
    return this.#next === undefined || this.#next < this.#log.window.tail ||
      this.#rewrites !== this.#log.window.rewrites;
  }

  /** Reads all objects, where it must, and gives others turns meanwhile. */
  async catchUp(pacer: Pacer): Promise<void> {
    for (let tries = 0; this.isBehind && tries < MOST_TRIES; tries++) {
      this.#reading ??= this.#readInTurns(pacer).finally(() => this.#reading = undefined);
      await this.#reading;
    }
  }

  async #readInTurns(pacer: Pacer): Promise<void> {
    const steps = this.#readAll();
    while (!steps.next().done) if (pacer.spend(STEP * OBJECT_UNITS)) await pacer.rest();
  }

  #catchUp(): void {
    const { tail, entries } = this.#log.window;
    if (this.isBehind) { for (const _ of this.#readAll()); }
    for (let i = this.#next! - tail; i < entries.length; i++) {
      const { type, key, object, oldObject, position } = entries.at(i)!;
      if (type === "BOOKMARK") continue;
      for (const name of scopesOf(key)) {
        const { hash } = scopeOf(this.#scopes, name, position);
        if (type !== "ADDED") hash.delete(nameOf(key, oldObject));
        if (type !== "DELETED") hash.add(nameOf(key, object));
        if (hash.size === 0) this.#scopes.delete(name);
      }
    }
    this.#next = tail + entries.length;
  }

  /** Reads what is there when it begins, in steps. */
  *#readAll(): Generator<undefined, void> {
    const { oldestResourceVersion, head: next, window: { rewrites } } = this.#log;
    const now = this.#states.snapshot();
    const scopes = new Map<string, Scope>();
    for (let i = 0; i < now.length; i++) {
      const key = now.key(i);
      for (const name of scopesOf(key)) {
        scopeOf(scopes, name, oldestResourceVersion).hash.add(nameOf(key, now.object(i)));
      }
      if (i % STEP === STEP - 1) yield;
    }
    // As if it had read them one by one: so copies of one source that began at the same time agree.
    const { tail, entries } = this.#log.window;
    for (let i = 0; i < next - tail; i++) {
      const { type, key, position } = entries.at(i)!;
      if (type === "BOOKMARK") continue;
      for (const name of scopesOf(key)) if (scopes.has(name)) scopeOf(scopes, name, position);
    }
    this.#scopes = scopes;
    this.#empty.since = oldestResourceVersion;
    this.#next = next;
    this.#rewrites = rewrites;
  }
}

// Objects that are read in one step, and what one takes: a hash for its namespace and one for all.
const STEP = 128;
const OBJECT_UNITS = 80;
// After that, content that changes as fast as it is read is read in one turn.
const MOST_TRIES = 3;

function scopeOf(scopes: Map<string, Scope>, name: string, since: string): Scope {
  let scope = scopes.get(name);
  if (scope === undefined) scopes.set(name, scope = { hash: new TextSetHash(), since });
  scope.since = since;
  return scope;
}

function scopesOf(key: string): readonly string[] {
  const slash = key.indexOf("/");
  return slash < 0 ? [ALL] : [ALL, key.slice(0, slash)];
}

function nameOf(key: string, held: unknown): string {
  const { uid = "", resourceVersion = "" } = metaOf(held) ?? {};
  return `${key} ${uid} ${resourceVersion}`;
}
