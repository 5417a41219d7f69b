/** The objects of a list or a watch: selectors, and pages out of one snapshot. */

import { type FieldRequirement, FieldSelector } from "../../meta/fields.ts";
import type { LabelSelector } from "../../meta/labels.ts";
import type { ListOptions } from "../../meta/list_watch.ts";
import { type KubernetesObject, type ListMeta, metaOf } from "../../meta/object.ts";
import type { GroupVersionResource } from "../../meta/resource.ts";
import type { ShardSelector } from "../../meta/shard_hash.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { VersionWaitOptions } from "../../meta/version_waiters.ts";
import { decodeContinue, encodeContinue, LATEST } from "../../protocol/continue_token.ts";
import { FieldFilter, type FilterRequirement } from "../../protocol/field_filter.ts";
import type { ScreenSegment } from "../../protocol/screen_values.ts";
import { isFieldAtItsPath, selectableFields } from "../../protocol/selectable_fields.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import type { CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import { fieldPathOf } from "../../store/index_func.ts";
import type { Indexer } from "../../store/store.ts";
import { parseFieldPath } from "../../text/field_path.ts";
import { firstIndex } from "../../util/collections.ts";
import { OPEN_UNITS, type Pacer } from "../../util/turns.ts";
import type { Content } from "./content.ts";
import type { ServedStore } from "./served_informer.ts";
import type { IndexValue, Snapshot } from "./states.ts";

export interface Selectors {
  /** The only namespace; all namespaces if it is empty. */
  readonly namespace: string;
  readonly labels: LabelSelector | undefined;
  readonly fields: FieldSelector | undefined;
  readonly shard: ShardSelector | undefined;
  readonly filter: FieldFilter | undefined;
}

export interface Selection {
  /** Selections of one resource with the same name select the same objects. */
  readonly name: string;
  /** Whether the object of a key can be selected. Call it first: it does not open the object. */
  mayHave(key: string): boolean;
  /**
   * Whether what its live metadata shows is selected, labels and shard; `undefined` if all is. Takes an
   * object in its held form, too.
   */
  readonly hasHead: ((held: unknown) => boolean) | undefined;
  /** Whether the fields are, besides those that the key shows; the same, but it needs the object itself. */
  readonly hasFields: ((object: KubernetesObject) => boolean) | undefined;
  /** As `hasFields`, for objects that an index has found by the given requirement, if any. */
  hasFieldsBesides(answered: FieldRequirement | undefined): Selection["hasFields"];
  /** The query for indices of the store; the objects that they find must be tested, too. */
  readonly indexed: CandidateQuery;
  /** The cost of testing one object, as a {@linkcode Pacer} counts. */
  readonly units: number;
}

// A label selector looks at an object's labels, however many requirements it has; a field selector and a
// filter look at each field. A shard selector hashes a text.
const LABELS_UNITS = 10;
const SHARD_UNITS = 40;
const FIELD_UNITS = 10;

/** A test for the objects of a resource; `undefined` where all of them are meant. */
export function newSelection(of: GroupVersionResource, selectors: Selectors): Selection | undefined {
  const { namespace, labels, fields, shard } = selectors;
  const filter = selectors.filter?.isEmpty ? undefined : selectors.filter;
  if (namespace === "" && !labels && !fields && !filter && !shard) return undefined;
  const prefixes = [namespace, fields?.requiresExactMatch("metadata.namespace")]
    .flatMap((name) => name ? [`${name}/`] : []);
  const name = fields?.requiresExactMatch("metadata.name") || undefined;
  const fieldsOf = selectableFields(of);
  const [ofName, ofLabels, ofFields] = partsOf(filter);
  // Fields that `mayHave` tests are not read from the object, which may have to be decoded.
  const required = { "metadata.namespace": prefixes.at(-1)?.slice(0, -1), "metadata.name": name };
  const unread =
    fields?.requirements.filter(({ field, operator, value }) =>
      operator === "!=" || required[field as keyof typeof required] !== value
    ) ?? [];
  const hasFieldsBesides: Selection["hasFieldsBesides"] = (answered) => {
    const rest = unread.filter((requirement) => requirement !== answered);
    if (rest.length === 0) return ofFields && ((object) => ofFields.matches(object));
    const selector = new FieldSelector(rest);
    return (object) => selector.matches(fieldsOf(object)) && ofFields?.matches(object) !== false;
  };
  return {
    name: JSON.stringify([namespace, ...[labels, fields, filter, shard].map((each) => String(each ?? ""))]),
    mayHave: (key) =>
      prefixes.every((prefix) => key.startsWith(prefix)) &&
      (name === undefined || nameIn(key) === name) &&
      ofName?.matches({ metadata: { name: nameIn(key) } }) !== false,
    hasHead: (labels || ofLabels || shard) && ((held) => {
      const own = metaOf(held)?.labels;
      return labels?.matches(own) !== false && ofLabels?.matches({ metadata: { labels: own } }) !== false &&
        shard?.matches(held) !== false;
    }),
    hasFields: hasFieldsBesides(undefined),
    hasFieldsBesides,
    indexed: {
      labels,
      fields: [
        ...fields?.requirements.filter(({ field }) => isFieldAtItsPath(of, field)) ?? [],
        ...filter?.requirements.flatMap(asFieldRequirement) ?? [],
      ],
    },
    units: 2 + (labels || ofLabels ? LABELS_UNITS : 0) + (shard ? SHARD_UNITS : 0) +
      FIELD_UNITS * ((fields?.requirements.length ?? 0) + (filter?.requirements.length ?? 0)),
  };
}

function nameIn(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

/** Splits a filter: by name, by labels, and by other fields, for which an object is opened. */
function partsOf(filter: FieldFilter | undefined): readonly (FieldFilter | undefined)[] {
  const parts: FilterRequirement[][] = [[], [], []];
  for (const requirement of filter?.requirements ?? []) {
    const { text, segments } = requirement.path;
    const isOfLabels = segments[0] === "metadata" && segments[1] === "labels";
    parts[text === "metadata.name" ? 0 : isOfLabels ? 1 : 2].push(requirement);
  }
  return parts.map((requirements) => requirements.length === 0 ? undefined : new FieldFilter(requirements));
}

/** The requirement as an index of a field can answer it. */
function asFieldRequirement({ path: { segments }, operator, values }: FilterRequirement): FieldRequirement[] {
  const field = operator === "=" ? dottedPath(segments) : undefined;
  return field === undefined ? [] : [{ field, operator: "=", value: values[0] }];
}

/** The fields of a store's field indices, as field selectors name them: names with dots between them. */
export function indexedFields(store: ServedStore<unknown>): string[] {
  const indexers = (store as Partial<Indexer<unknown>>).getIndexers?.() ?? {};
  return Object.values(indexers).flatMap((indexFunc) => {
    const path = fieldPathOf(indexFunc);
    if (path === undefined) return [];
    return dottedPath(parseFieldPath(path, { mayEndInElements: true })) ?? [];
  });
}

/** A path as a selector names it, which has no way to write a dot in a name, or elements of an array. */
function dottedPath(segments: readonly ScreenSegment[]): string | undefined {
  return segments.every((segment) => typeof segment === "string" && !segment.includes("."))
    ? segments.join(".")
    : undefined;
}

export interface ListRequest extends Selectors {
  readonly resource: GroupVersionResource;
  readonly options: ListOptions;
  readonly under?: IndexValue | undefined;
  identity(): string;
  /** Identifies this cache, and the epoch of its content after so many rewrites. */
  epochOf(rewrites: number): string;
  /** The signal in it ends the walk over objects. */
  readonly wait: VersionWaitOptions;
  readonly pacer: Pacer;
}

export interface PagePlace<T> {
  /** A state of the past; `undefined`: the content now. */
  readonly past: Snapshot<T> | undefined;
  /** The version of the content now, if the page is of that one only. */
  readonly at?: string;
  /** The key that it begins at, without the namespace that is listed; empty for the first page. */
  readonly start: string;
  readonly limit: number;
  /** How many rewrites the content had when a page of a particular version was found. */
  readonly rewrites?: number;
}

export interface WindowPlace {
  /** How many rows there are in all. */
  readonly total: number;
  /** How many rows come before the first one that is shown. */
  readonly offset: number;
}

/** A page: a range of a snapshot, which may be shared by many pages, or objects of its own. */
export interface Page<T> {
  readonly resourceVersion: string;
  /**
   * The list metadata that leads to the next pages, if there are some, at this version or a later one with
   * the same content.
   */
  readonly next?: (resourceVersion: string) => ListMeta;
  object(index: number): Held<T>;
  readonly from: number;
  readonly to: number;
  readonly window?: WindowPlace;
  /** About how many bytes it takes, besides the objects of the store. */
  readonly bytes: number;
}

/** Finds the place of a page that is not the first of the present content; a Status refuses it. */
export async function placePage<T extends KubernetesObject>(
  { log, states }: Content<T>,
  request: ListRequest,
  first: PagePlace<never>,
): Promise<PagePlace<T> | Status> {
  const { options, pacer } = request;
  const { rewrites } = log.window;
  const stateAt = async (resourceVersion: string) => {
    if (pacer.isDue) await pacer.rest();
    // In the turn in which it is done.
    pacer.spend(states.unitsOf(resourceVersion));
    return states.stateAt(resourceVersion);
  };
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    // The API server's own are of any list.
    if (token.list !== undefined && token.list !== request.identity()) {
      const why = "it is of another list; continue with the same path, selectors and user";
      return newStatus(400, "BadRequest", `invalid continue token: ${why}`);
    }
    const latest = { ...first, start: token.start };
    if (token.resourceVersion === LATEST) return latest;
    if (isRewritten(token.epoch, request.epochOf(rewrites))) return continueFrom(latest.start, request);
    const place = { ...latest, rewrites };
    if (token.resourceVersion === log.window.resourceVersion) return { ...place, at: token.resourceVersion };
    const past = await stateAt(token.resourceVersion);
    return past === undefined ? continueFrom(place.start, request) : { ...place, past };
  }
  const { resourceVersion = "0", resourceVersionMatch } = options;
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was
  // invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && options.limit !== undefined);
  if (!isExact) return first;
  const past = await stateAt(resourceVersion);
  return past === undefined ? stateTooOld(resourceVersion) : { ...first, past, rewrites };
}

/** Whether this cache wrote a token before its content was rewritten; another one has the same states. */
export function isRewritten(epoch: string | undefined, now: string): boolean {
  const instance = now.slice(0, now.lastIndexOf(".") + 1);
  return epoch !== undefined && epoch !== now && epoch.startsWith(instance);
}

/** The place of a page whose state may have become one of the past since it was placed. */
export function stillPlaced<T extends KubernetesObject>(
  { log, states }: Content<T>,
  request: ListRequest,
  place: PagePlace<T>,
): PagePlace<T> | Status {
  const { at, start, limit, rewrites } = place;
  if (at === undefined) return place;
  if (rewrites !== log.window.rewrites) return continueFrom(start, request);
  if (at === log.window.resourceVersion) return place;
  const past = states.stateAt(at);
  return past === undefined ? continueFrom(start, request) : { past, start, limit, rewrites };
}

/** 410: a list at a resourceVersion whose state is not known any more. */
export function stateTooOld(asked: string): Status {
  return newStatus(410, "Expired", `The resourceVersion for the provided list is too old: ${asked}`);
}

/** 410, with a token for the rest of the list as it is then. */
function continueFrom(start: string, request: ListRequest): Status {
  return continueTooOld(encodeContinue({ resourceVersion: LATEST, start, list: request.identity() }));
}

// Fewer are copied, so that a page does not keep the whole snapshot in memory.
const SMALL_PAGE = 5_000;
const REFERENCE_BYTES = 8;

/**
 * Takes a page out of the content as it is when this is called, or out of a state of the past; costs only
 * what it walks over.
 */
export async function cutPage<T extends KubernetesObject>(
  { holding, log, states }: Content<T>,
  request: ListRequest,
  { past, start, limit, rewrites = log.window.rewrites }: PagePlace<T>,
): Promise<Page<T>> {
  const { resource, namespace, fields, under, pacer, wait } = request;
  // The namespace is a range of keys.
  const selection = newSelection(resource, { ...request, namespace: "" });
  const snapshot = past ??
    (under === undefined ? states.candidates(selection?.indexed) : states.indexed(under));
  // The store's indices know the present only.
  const underThen = past && under;
  const valuesOf = underThen && states.indexer?.getIndexers()[underThen.index];
  const { resourceVersion, length, key } = snapshot;
  const firstFrom = (bound: string) => firstIndex(length, (index) => key(index) >= bound);
  const prefix = namespace === "" ? "" : `${namespace}/`;
  // "0" is the character after "/".
  const end = namespace === "" ? length : firstFrom(`${namespace}0`);
  const from = prefix + start === "" ? 0 : firstFrom(prefix + start);
  let i = Math.max(from, Math.min(end, from + limit));
  let own: Held<T>[] | undefined;
  const isSelected = selection !== undefined || underThen !== undefined;
  if (isSelected) {
    own = [];
    const hasFields = selection?.hasFieldsBesides(snapshot.answers);
    const units = (selection?.units ?? 2) + (underThen === undefined ? 0 : FIELD_UNITS);
    for (i = from; i < end && own.length < limit; i++) {
      if (pacer.spend(units)) {
        await pacer.rest();
        wait.signal?.throwIfAborted();
      }
      if (selection?.mayHave(snapshot.key(i)) === false) continue;
      const held = snapshot.object(i);
      if (selection?.hasHead?.(held) === false) continue;
      if (underThen !== undefined && valuesOf?.(held).includes(underThen.value) !== true) continue;
      if (hasFields !== undefined) {
        const object = holding.peek(held);
        if (object !== held) pacer.spend(OPEN_UNITS);
        if (!hasFields(object)) continue;
      }
      own.push(held);
    }
  } else if (past !== undefined && i - from <= SMALL_PAGE) {
    own = Array.from({ length: i - from }, (_, index) => snapshot.object(from + index));
  }
  // All readers share one array of the present state.
  const bytes = REFERENCE_BYTES * (own?.length ?? 2 * (past?.length ?? 0));
  const page = own === undefined ? { resourceVersion, object: snapshot.object, from, to: i, bytes } : {
    resourceVersion,
    object: (index: number) => own[index],
    from: 0,
    to: own.length,
    bytes,
  };
  if (i >= end) return page;
  const last = snapshot.key(i - 1).slice(prefix.length);
  // Nothing comes after the only object of a name: in one namespace, or of a cluster-scoped resource.
  if (last === fields?.requiresExactMatch("metadata.name")) return page;
  return {
    ...page,
    next: (resourceVersion) => ({
      continue: encodeContinue({
        resourceVersion,
        epoch: request.epochOf(rewrites),
        start: `${last}\0`,
        list: request.identity(),
      }),
      // The count is sent only if it is known without looking at every object.
      ...(!isSelected && { remainingItemCount: end - i }),
    }),
  };
}
