/**
 * `ETag`s of lists and objects.
 * @module
 */

import type { KubernetesObject } from "../../meta/object.ts";
import { metaOf } from "../../meta/object.ts";
import type { Held } from "../../store/holding.ts";
import { textHash } from "../../util/text_hash.ts";
import type { EventLog } from "../watches/event_log.ts";

/**
 * Makes the tags of one adapter. They are weak: a body and its compressed form have the same one. A tag is valid for the process
 * that made it, as only the versions of its own store show that a body would be the same: an API server can send two
 * states under one resourceVersion, for one when it was restored from a backup.
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
   * reader has says an earlier version of the same content, from which it can watch.
   */
  ofList(log: EventLog<KubernetesObject>, name: string): string {
    return this.#tag(`${log.contentRevision.toString(36)}-${textHash(name)}`);
  }

  /** Of an object in a form; `undefined` if its version is not known. */
  ofObject(log: EventLog<KubernetesObject>, held: Held<KubernetesObject>, name: string): string | undefined {
    const { uid = "", resourceVersion } = metaOf(held) ?? {};
    if (!resourceVersion) return undefined;
    return this.#tag(`${log.rewrites}-${encodeURIComponent(resourceVersion)}-${textHash(`${uid} ${name}`)}`);
  }

  #tag(text: string): string {
    // Not when the adapter is made: Workers have no random numbers while modules are loaded.
    this.#instance ??= Math.floor(this.#random() * 2 ** 48).toString(36);
    return `W/"${this.#instance}-${text}"`;
  }
}
