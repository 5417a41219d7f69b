/**
 * `ETag`s of lists and objects.
 * @module
 */

import type { KubernetesObject } from "../../meta/object.ts";
import { metaOf } from "../../meta/object.ts";
import { opaqueTags } from "../../protocol/if_none_match.ts";
import type { Held } from "../../store/holding.ts";
import { textHash } from "../../util/text_hash.ts";
import type { EventLog } from "../watches/event_log.ts";

/** The tag of a list. */
export interface ListTag {
  readonly text: string;
  /** The tag of an `If-None-Match` by which the client has the list; `undefined` if there is none. */
  matching(ifNoneMatch: string | undefined): string | undefined;
}

/**
 * Makes the tags of one adapter. They are weak: a body and its compressed form have the same one.
 *
 * A tag names the states of objects by their uids and resourceVersions. An API server can send two states under one
 * resourceVersion, for one when it was restored from a backup. So a tag also has an epoch, in which there are no two such
 * states: this process's own, and another one after each such rewrite.
 */
export class EntityTags {
  readonly #random: () => number;
  #instance: string | undefined;

  /** @param random Distinguishes this process from others. */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * Of the present list of a form and selection. It is the same while only the list's resourceVersion moves: the body that a
   * reader has says an earlier version of the same content, from which it can watch. So does every tag of the same content that
   * is not older than the log's history: copies of one source have come to the content at different versions.
   */
  ofList(
    log: EventLog<KubernetesObject>,
    { namespace, name }: { readonly namespace: string; readonly name: string },
  ): ListTag {
    const { hash, since } = log.hashes.versionOf(namespace);
    const opaque = `${this.#epochOf(log)}-${hash}-${textHash(name)}-`;
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
    log: EventLog<KubernetesObject>,
    held: Held<KubernetesObject>,
    name: string,
  ): string | undefined {
    const { uid = "", resourceVersion } = metaOf(held) ?? {};
    if (!resourceVersion) return undefined;
    const version = `${encodeURIComponent(resourceVersion)}-${textHash(`${uid} ${name}`)}`;
    return `W/"${this.#epochOf(log)}-${version}"`;
  }

  #epochOf({ rewrites }: EventLog<KubernetesObject>): string {
    // Not when the adapter is made: Workers have no random numbers while modules are loaded.
    this.#instance ??= Math.floor(this.#random() * 2 ** 48).toString(36);
    return `${this.#instance}.${rewrites}`;
  }
}

/** The resourceVersion in a tag. */
const VERSION = /^(?:0|[1-9][0-9]{0,99})?$/;
