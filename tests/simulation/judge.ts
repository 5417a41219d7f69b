/**
 * Decides which objects a schema, a transform or an index
 * function does not accept, permanently or for a while.
 * @module
 */

import type { KubernetesObject, Metrics } from "@listwatch/cache";
import type { Schema } from "@listwatch/cache/client";
import { type SimObject, stateOf } from "./cluster_model.ts";

/**
 * The objects that are refused: `strict` refuses bad objects; `harsh` every second state as well; `lenient`
 * nothing; `once` the next object, whatever it is, and is `strict` from then on.
 */
export type Mood = "strict" | "harsh" | "lenient" | "once";

/** Decides, and records what it refused. */
export class Judge {
  readonly #turnedAway = new Map<string, "list" | "watch">();
  readonly #refusedUids = new Set<string | undefined>();
  #isListing = true;
  /** The version of the last list: it has brought every state up to that. */
  #listedRevision = 0;
  /** How many lists have come, and how many of them are stored: each may take many turns. */
  #lists = { come: 0, stored: 0 };
  /** Whether a list was requested after the last one that has come. */
  #isRequested = false;
  mood: Mood = "strict";

  /** A program begins: nothing is left of what one before was storing. */
  starting(): void {
    this.#lists = { come: 0, stored: 0 };
    this.listing();
  }

  /** A list begins: what comes until the next watch is of it. */
  listing(): void {
    this.#isListing = true;
    this.#isRequested = true;
  }

  /** The list has come, or was given up: what is requested next is a watch. */
  listed(): void {
    this.#isRequested = false;
  }

  /** The informer watches from this version, or has come to it. */
  watching(resourceVersion: string): void {
    if (!this.#isListing) return;
    this.#isListing = false;
    this.#listedRevision = Number(resourceVersion);
  }

  /** A list is stored, in the order in which they came; whether it is the last one that was requested. */
  stored(): boolean {
    const { come, stored } = this.#lists;
    this.#lists.stored++;
    return stored === come || (stored + 1 === come && !this.#isRequested); // it may be stored while it comes
  }

  /** The states that it refused; a list must bring those of the watch again. */
  get turnedAway(): ReadonlyMap<string, "list" | "watch"> {
    return this.#turnedAway;
  }

  /** Whether an object is refused. */
  refuses(object: SimObject): boolean {
    const mood = this.mood;
    if (mood === "lenient") return false;
    if (mood === "once") this.mood = "strict";
    const isBad = object.spec?.bad === true;
    const isRefused = isBad || mood === "once" ||
      (mood === "harsh" && Number(object.metadata.resourceVersion) % 2 === 0);
    if (!isRefused) return false;
    this.#turnedAway.set(stateOf(object), this.#isListed(object) ? "list" : "watch");
    this.#refusedUids.add(object.metadata.uid);
    return true;
  }

  /** Whether it refused any state of an object: what is stored under its name may be another object. */
  hasRefused({ metadata }: SimObject): boolean {
    return this.#refusedUids.has(metadata.uid);
  }

  /** Whether a list has brought it. That may be applied in many turns, the last of them while it watches. */
  #isListed({ metadata }: SimObject): boolean {
    return this.#isListing || Number(metadata.resourceVersion) <= this.#listedRevision;
  }

  /** The informer's measurements, which say that a list has come. */
  readonly metrics: Metrics = {
    count() {},
    gauge() {},
    observe: (name) => {
      if (name !== "reflector_items_per_list") return;
      this.#lists.come++;
      this.listed();
    },
  };

  /** A schema that refuses. */
  readonly schema: Schema<KubernetesObject> = {
    "~standard": {
      version: 1,
      vendor: "simulation",
      validate: (value) =>
        this.refuses(value as SimObject)
          ? { issues: [{ message: "must not be bad", path: ["spec", "bad"] }] }
          : { value },
    },
  };

  /** A transform that refuses. */
  readonly transform = (object: SimObject): SimObject => {
    if (this.refuses(object)) throw new Error("a transform that throws");
    return object;
  };
}
