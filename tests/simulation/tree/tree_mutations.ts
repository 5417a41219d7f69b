/**
 * Deliberate defects of caches that reflect each other; the simulated trees must catch each one.
 * @module
 */

import type { Mutation } from "../../mutant.ts";

/** One defect, for trees. */
export interface TreeMutation extends Mutation {
  readonly tree: true;
}

const LOG = "src/hono/content/event_log.ts";
const STATES = "src/hono/content/states.ts";
const EVENTS = "src/hono/send/event_feed.ts";
const CLIENT = "src/client/rest_resource.ts";
const KEEPER = "src/informer/snapshot/content.ts";

/** The defects. */
export const TREE_MUTATIONS: readonly TreeMutation[] = [
  {
    tree: true,
    name: "tree: a list has a later version than its objects",
    file: STATES,
    find: "const same = last?.revision === revision ? last : undefined;",
    replace: "const same = last;",
  },
  {
    tree: true,
    name: "tree: a watch that resumes misses the first event",
    file: LOG,
    find: "    return this.#firstUnseen(resourceVersion);",
    replace: "    return Math.min(this.#firstUnseen(resourceVersion) + 1, this.head);",
  },
  {
    tree: true,
    name: "tree: a watch from before a relist resumes",
    file: LOG,
    find: "    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };\n",
    replace: "    void sequence;\n",
  },
  {
    tree: true,
    name: "tree: a state from before a relist is made of what came after it",
    file: STATES,
    find:
      "if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;",
    replace: "",
  },
  {
    tree: true,
    name: "tree: a relist reaches a cache above as single events",
    file: CLIENT,
    find: "      ...(watch && STREAM_HEADERS),\n",
    replace: "",
  },
  {
    tree: true,
    name: "tree: a watch from the future continues over a relist",
    file: EVENTS,
    find: 'this.#requiresEachEvent || this.#skipThrough !== "";',
    replace: "this.#requiresEachEvent;",
  },
  {
    tree: true,
    name: "tree: a watch from the future receives what its reader has seen",
    file: EVENTS,
    find: "this.#skipThrough = this.#isFuture ||",
    replace: "this.#skipThrough =",
  },
  {
    tree: true,
    name: "tree: a cache above a stale one takes its answer for fresh",
    file: CLIENT,
    find: "headers: { ...options.headers, ...NOTHING_STALE },",
    replace: "headers: { ...options.headers },",
  },
  {
    tree: true,
    name: "tree: the state of all objects is taken for proof of each event",
    file: "src/hono/content/fresh_reads.ts",
    find: "asked, byState: true };",
    replace: "asked };",
  },
  {
    tree: true,
    name: "tree: a bookmark says that events were sent which a list has passed",
    file: EVENTS,
    find: "const { eventsThrough } = this.#content.log;",
    replace: "const { resourceVersion: eventsThrough } = this.#content.log;",
  },
  {
    tree: true,
    name: "snapshot: its version is later than its content",
    file: KEEPER,
    find: "      else puts.push(new Put(key, object, holding));",
    replace: "      else if (puts.length === 0 || this.#replaces) puts.push(new Put(key, object, holding));",
  },
  {
    tree: true,
    name: "snapshot: a delete is lost over a restart",
    file: KEEPER,
    find: "      if (object === undefined) deletes.push(key);\n",
    replace: "      if (object === undefined) continue;\n",
  },
  {
    tree: true,
    name: "snapshot: readers receive a change before it is saved",
    file: KEEPER,
    find: 'if (this.#storage.savesInTurn && event.type !== "bookmark" && !this.#isQuiet()) this.#save();',
    replace: 'if (this.#storage.savesInTurn && event.type === "replaced" && !this.#isQuiet()) this.#save();',
  },
  {
    tree: true,
    name: "snapshot: what a list has changed is not saved",
    file: KEEPER,
    find: "for (const { key } of event.changes) this.#changed.add(key);",
    replace: "",
  },
];
