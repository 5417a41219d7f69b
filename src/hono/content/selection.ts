/** The selection of a list or a watch: namespace, name, labels and fields. */

import { type FieldRequirement, FieldSelector } from "../../meta/fields.ts";
import type { LabelSelector } from "../../meta/labels.ts";
import { type KubernetesObject, metaOf } from "../../meta/object.ts";
import type { GroupVersionResource } from "../../meta/resource.ts";
import { isFieldAtItsPath, selectableFields } from "../../protocol/selectable_fields.ts";
import type { CandidateQuery } from "../../store/candidates.ts";
import { fieldPathOf } from "../../store/index_func.ts";
import type { Indexer } from "../../store/store.ts";
import { EACH, parseFieldPath } from "../../text/field_path.ts";
import type { ServedStore } from "./served_informer.ts";

/** What narrows a list or a watch. */
export interface Selectors {
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  readonly labels: LabelSelector | undefined;
  readonly fields: FieldSelector | undefined;
}

/** Selects objects, by their keys and their content. */
export interface Selection {
  /** Selections of one resource with the same name select the same objects; `undefined`: not to be shared. */
  readonly sharedAs: string | undefined;
  /** Whether the object of a key can be selected. Call it first: it does not open the object. */
  mayHave(key: string): boolean;
  /**
   * Whether the labels are selected; `undefined` if all are. Takes an object in its held form, too: labels
   * are live metadata.
   */
  readonly hasLabels: ((held: unknown) => boolean) | undefined;
  /** Whether the fields are, besides those that the key shows; the same, but it needs the object itself. */
  readonly hasFields: ((object: KubernetesObject) => boolean) | undefined;
  /** The same for objects that fulfil one of the requirements, if any: an index has found them by it. */
  hasFieldsBesides(answered: FieldRequirement | undefined): Selection["hasFields"];
  /** What indices of the store may find; the objects that they find must be tested, too. */
  readonly indexed: CandidateQuery;
  /** What it takes to ask of one object, as a {@linkcode Pacer} counts. */
  readonly units: number;
}

// A label selector looks at an object's labels, however many requirements it has; a field selector at each
// field.
const LABELS_UNITS = 10;
const FIELD_UNITS = 10;

/** A test for the objects of a resource; `undefined` where all of them are meant. */
export function newSelection(of: GroupVersionResource, selectors: Selectors): Selection | undefined {
  const { namespace, labels, fields } = selectors;
  if (namespace === "" && labels === undefined && fields === undefined) return undefined;
  const prefixes = [namespace, fields?.requiresExactMatch("metadata.namespace")]
    .flatMap((name) => name ? [`${name}/`] : []);
  const name = fields?.requiresExactMatch("metadata.name") || undefined;
  const fieldsOf = selectableFields(of);
  // What `mayHave` tests need not be read from the object.
  const required = { "metadata.namespace": prefixes.at(-1)?.slice(0, -1), "metadata.name": name };
  const unread =
    fields?.requirements.filter(({ field, operator, value }) =>
      operator === "!=" || value === "" || required[field as keyof typeof required] !== value
    ) ?? [];
  const hasFieldsBesides: Selection["hasFieldsBesides"] = (answered) => {
    const rest = unread.filter((requirement) => requirement !== answered);
    if (rest.length === 0) return undefined;
    const selector = new FieldSelector(rest);
    return (object) => selector.matches(fieldsOf(object));
  };
  return {
    sharedAs: JSON.stringify([namespace, String(labels ?? ""), String(fields ?? "")]),
    mayHave: (key) =>
      prefixes.every((prefix) => key.startsWith(prefix)) &&
      (name === undefined || key.slice(key.indexOf("/") + 1) === name),
    hasLabels: labels && ((held) => labels.matches(metaOf(held)?.labels)),
    hasFields: hasFieldsBesides(undefined),
    hasFieldsBesides,
    indexed: { labels, fields: fields?.requirements.filter(({ field }) => isFieldAtItsPath(of, field)) },
    units: 2 + (labels ? LABELS_UNITS : 0) + (fields ? FIELD_UNITS * fields.requirements.length : 0),
  };
}

/** A selection of what another one selects, and a test of the held form accepts. */
export function narrowed(selection: Selection | undefined, test: (held: unknown) => boolean): Selection {
  const { mayHave = () => true, hasLabels, hasFields, indexed = {}, units = 2 } = selection ?? {};
  const hasFieldsBesides: Selection["hasFieldsBesides"] = (answered) => selection?.hasFieldsBesides(answered);
  return {
    sharedAs: undefined,
    mayHave,
    hasLabels: (held) => hasLabels?.(held) !== false && test(held),
    hasFields,
    hasFieldsBesides,
    indexed,
    units: units + FIELD_UNITS,
  };
}

/**
 * The fields of a store's field indices, as field selectors name them: paths of names with dots between them.
 */
export function indexedFields(store: ServedStore<unknown>): string[] {
  const indexers = (store as Partial<Indexer<unknown>>).getIndexers?.() ?? {};
  return Object.values(indexers).flatMap((indexFunc) => {
    const path = fieldPathOf(indexFunc);
    if (path === undefined) return [];
    const segments = parseFieldPath(path, { mayEndInElements: true });
    // A selector has no way to write a dot in a name, or elements of an array.
    return segments.every((segment) => segment !== EACH && !segment.includes("."))
      ? [segments.join(".")]
      : [];
  });
}
