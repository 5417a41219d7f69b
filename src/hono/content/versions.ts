/**
 * Versions of content, which show whether two lists are the same: hashes, and the `ETag`s that are made of
 * them.
 * @module
 */

import { type KubernetesObject, metaOf } from "../../meta/object.ts";
import { opaqueTags } from "../../protocol/if_none_match.ts";
import type { Held } from "../../store/holding.ts";
import { textHash, TextSetHash } from "../../util/hash.ts";
import type { Pacer } from "../../util/turns.ts";
import type { LogWindow } from "./log_window.ts";
import type { Snapshot } from "./states.ts";

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
export class ContentHashes<T> {
  readonly #log: HashedLog<T>;
  /** The namespaces with objects, and all together. */
  #scopes = new Map<string, Scope>();
  /** Each of the others. */
  #empty: Scope = { hash: new TextSetHash(), since: "" };
  /** The next entry to read; `undefined` before the first request. */
  #next: number | undefined;
  #rewrites = 0;
  #reading: Promise<void> | undefined;

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
    const hash = scope.hash.text;
    return { hash, rewrites: this.#rewrites, since: scope.since };
  }

  /** Whether all objects must be read for the next version. */
  get isBehind(): boolean {
    return this.#next === undefined || this.#next < this.#log.window.tail ||
      this.#rewrites !== this.#log.rewrites;
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
    const { oldestResourceVersion, states, window, rewrites } = this.#log;
    const now = states.snapshot();
    const next = window.tail + window.entries.length;
    const scopes = new Map<string, Scope>();
    for (let i = 0; i < now.length; i++) {
      const key = now.key(i);
      for (const name of scopesOf(key)) {
        scopeOf(scopes, name, oldestResourceVersion).hash.add(nameOf(key, now.object(i)));
      }
      if (i % STEP === STEP - 1) yield;
    }
    // As if it had read them one by one: so copies of one source that began at the same time agree.
    const { tail, entries } = window;
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

/** A log, as the tags of its content see it. */
type TaggedLog = Pick<HashedLog<unknown>, "rewrites" | "resume">;

/** The tag of a list. */
export interface ListTag {
  readonly text: string;
  /** The tag of an `If-None-Match` by which the client has the list; `undefined` if there is none. */
  matching(ifNoneMatch: string | undefined): string | undefined;
}

/**
 * Makes the tags of one adapter. They are weak: a body and its compressed form have the same one.
 *
 * A tag names the states of objects by their uids and resourceVersions. An API server can send two states
 * under one resourceVersion, for one when it was restored from a backup. So a tag also has an epoch, in which
 * there are no two such states: this process's own, and another one after each such rewrite.
 */
export class EntityTags {
  readonly #random: () => number;
  #instance: string | undefined;

  /** @param random Distinguishes this process from others. */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * Of the present list of a form and selection. It is the same while only the list's resourceVersion moves:
   * the body that a reader has says an earlier version of the same content, from which it can watch. So does
   * every tag of the same content that is not older than the log's history: copies of one source have come to
   * the content at different versions.
   */
  ofList(log: TaggedLog, { hash, rewrites, since }: ContentVersion, name: string): ListTag {
    const opaque = `${this.#epochOf(rewrites)}-${hash}-${textHash(name)}-`;
    const text = `W/"${opaque}${since}"`;
    return {
      text,
      matching(ifNoneMatch) {
        for (const given of opaqueTags(ifNoneMatch)) {
          if (given === "*") return text;
          if (!given.startsWith(opaque)) continue;
          const from = given.slice(opaque.length);
          if (VERSION.test(from) && log.resume(from) !== undefined) return `W/"${given}"`;
        }
        return undefined;
      },
    };
  }

  /** Of an object in a form; `undefined` if its version is not known. */
  ofObject(
    log: TaggedLog,
    held: Held<KubernetesObject>,
    name: string,
  ): string | undefined {
    const { uid = "", resourceVersion } = metaOf(held) ?? {};
    if (!resourceVersion) return undefined;
    const version = `${encodeURIComponent(resourceVersion)}-${textHash(`${uid} ${name}`)}`;
    return `W/"${this.#epochOf(log.rewrites)}-${version}"`;
  }

  #epochOf(rewrites: number): string {
    // Not when the adapter is made: Workers have no random numbers while modules are loaded.
    this.#instance ??= Math.floor(this.#random() * 2 ** 48).toString(36);
    return `${this.#instance}.${rewrites}`;
  }
}

/** The resourceVersion in a tag. */
const VERSION = /^(?:0|[1-9][0-9]{0,99})?$/;
