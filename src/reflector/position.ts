/**
 * How far a reflector has come.
 * @module
 */

import { metaOf } from "../meta/object.ts";
import { compareResourceVersions, isComparableResourceVersion } from "../meta/resource_version.ts";
import type { DataEvent } from "./events.ts";

/** Options of {@linkcode Position}. */
export interface PositionOptions {
  /** Whether an event with an older resourceVersion was sent again, and moves nothing. */
  readonly neverGoesBack: boolean;
}

/**
 * The resourceVersion that a reflector has reached: by a list, then event by event. Where a watch began at no particular
 * version, its first ADDED events are the present objects in any order: their versions say nothing about how far it has
 * come.
 */
export class Position {
  readonly #neverGoesBack: boolean;
  #resourceVersion = "";
  /** The version of the last event, where that was sent again. */
  #repeatedVersion: string | undefined;
  #follows = false;
  /** The version of the last list or bookmark: everything up to it was there. */
  #completeVersion = "";

  constructor(options: PositionOptions) {
    this.#neverGoesBack = options.neverGoesBack;
  }

  /** Where the next watch begins; `""` before the first list. */
  get resourceVersion(): string {
    return this.#resourceVersion;
  }

  /** The version that came last: the same, but where that was sent again. */
  get lastSeen(): string {
    return this.#repeatedVersion ?? this.#resourceVersion;
  }

  /** Whether a list of this version continues what was reached: both versions are numbers, and it is the greater one. */
  isAdvance(resourceVersion: string): boolean {
    return isOlder(this.#resourceVersion, resourceVersion);
  }

  /** A list was stored. */
  listed(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
    this.#completeVersion = resourceVersion;
    this.#repeatedVersion = undefined;
  }

  /**
   * A bookmark came; whether it is older than what was there before: it is sent again, or the server has begun a new
   * history.
   */
  bookmarked(resourceVersion: string): boolean {
    const goesBack = isOlder(resourceVersion, this.#resourceVersion) ||
      isOlder(resourceVersion, this.#completeVersion);
    this.#completeVersion = resourceVersion;
    return goesBack;
  }

  /** A watch begins; `isFollowing`: after a streamed list, that is at its version, whatever the version. */
  watchBegins({ isFollowing }: { readonly isFollowing: boolean }): void {
    this.#follows = isFollowing || (this.#resourceVersion !== "" && this.#resourceVersion !== "0");
  }

  /** An event was stored. */
  passed(event: DataEvent<unknown>): void {
    if (event.type !== "ADDED") this.#follows = true;
    if (this.#follows) this.reached(metaOf(event.object)?.resourceVersion ?? "");
  }

  /** Everything up to this version was stored. */
  reached(resourceVersion: string): void {
    if (this.isRepeated(resourceVersion)) {
      this.#repeatedVersion = resourceVersion;
      return;
    }
    this.#repeatedVersion = undefined;
    this.#resourceVersion = resourceVersion;
  }

  /** Whether an event of this version was sent before. */
  isRepeated(resourceVersion: string | undefined): boolean {
    return this.#neverGoesBack && resourceVersion !== undefined &&
      isOlder(resourceVersion, this.#resourceVersion);
  }
}

/** Whether a resourceVersion is known to be older than another: both are numbers, and it is the lesser one. */
export function isOlder(version: string, than: string): boolean {
  return compareResourceVersions(version, than) < 0 && isComparableResourceVersion(version) &&
    isComparableResourceVersion(than);
}
