/** Views of objects, and their text: of one object, of an event, and of a list, piece by piece. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import { groupVersion } from "../../meta/resource.ts";
import type { ShardSelector } from "../../meta/shard_hash.ts";
import { type ApiResource, isBuiltinGroup } from "../../protocol/api_resource.ts";
import { indentedText, jsonText, partialMetadata } from "../../protocol/representations.ts";
import type { Held, Holding } from "../../store/holding.ts";
import { OPEN_BRACE, textMember, textMembers } from "../../text/json_walk.ts";
import { jsonOf } from "../../util/json.ts";
import type { Page } from "../content/selection.ts";
import type { TextAround, View } from "../request/requested_read.ts";
import type { YamlWriter } from "./yaml.ts";

export interface ListShape {
  readonly view: View;
  readonly pretty: boolean;
  /** Writes it as YAML; as JSON without. */
  readonly yaml: YamlWriter | undefined;
  readonly holding: Holding<KubernetesObject>;
}

// The library makes a node of each value.
const YAML_WEIGHT = 64;
// A screen shows about a twentieth of what is walked.
const CUT_WEIGHT = 8;
const TEXT_BYTES = 2 * 1024;

/**
 * Writes a page as text, in pieces that end after an item, so that it never is in memory as a whole: first
 * the head, then the pieces, of which the last one has the end.
 */
export class ListText {
  readonly #page: Page<KubernetesObject>;
  readonly #shape: ListShape;
  readonly #frame: Frame;
  readonly resourceVersion: string;
  /** Whether only the head has the list's version: the pieces are the same while the content is. */
  readonly isLasting: boolean;
  /** The cost of a character, compared with one of JSON. */
  readonly weight: number;
  /** About how many bytes the text and a body made of it take, even for an empty list. */
  readonly ownBytes: number;
  next: number;
  isDone = false;
  /** The part of the items that is written: from 0 to 1. */
  progress = 0;

  /** @param from The first item to write; what comes before it was written by another one. */
  constructor(page: Page<KubernetesObject>, shape: ListShape, from?: number) {
    this.#page = page;
    this.#shape = shape;
    this.#frame = frame(page, shape, page.resourceVersion);
    this.next = from ?? page.from;
    this.resourceVersion = page.resourceVersion;
    this.isLasting = shape.yaml === undefined;
    this.weight = shape.yaml !== undefined ? YAML_WEIGHT : shape.view.cut !== undefined ? CUT_WEIGHT : 1;
    this.ownBytes = TEXT_BYTES + page.bytes;
  }

  /** The text before the first piece, at a version of the same content. */
  head(resourceVersion: string): string {
    const isOwn = resourceVersion === this.resourceVersion;
    return (isOwn ? this.#frame : frame(this.#page, this.#shape, resourceVersion)).head;
  }

  /**
   * The next piece, of at least this many characters of JSON, or fewer of what takes longer, unless it is the
   * last one; `undefined` at the end.
   */
  piece(length: number): string | undefined {
    if (this.isDone) return undefined;
    const { from, to } = this.#page;
    const least = length / this.weight;
    let text = "";
    // After an item that cannot be read, the piece is made again.
    for (let next = this.next; next < to;) {
      text += itemText(this.#page.object(next), this.#shape, { isFirst: next === from });
      next++;
      if (text.length < least) continue;
      this.next = next;
      this.progress = (next - from) / (to - from);
      return text;
    }
    this.next = to;
    this.isDone = true;
    this.progress = 1;
    return text + this.#frame.tail;
  }

  /** The list from an item on, for another reader; by default from the next item on. */
  rest(from?: number): ListText {
    const rest = new ListText(this.#page, this.#shape, from ?? this.next);
    rest.isDone = from === undefined && this.isDone;
    return rest;
  }
}

interface Frame {
  readonly head: string;
  readonly tail: string;
}

function frame(page: Page<KubernetesObject>, shape: ListShape, resourceVersion: string): Frame {
  const metadata = { resourceVersion, ...page.next?.(resourceVersion) };
  return shape.yaml === undefined ? jsonFrame(page, shape, metadata) : yamlFrame(page, shape, metadata);
}

function headOf({ window }: Page<KubernetesObject>, view: View, metadata: ListMeta): Record<string, unknown> {
  return window === undefined ? view.list(metadata) : { ...view.list(metadata), window };
}

/** The items of an empty list, as kube-apiserver writes them. */
function emptyItems({ from, to }: Page<KubernetesObject>, { isNullIfEmpty }: View): [] | null {
  return isNullIfEmpty && from === to ? null : [];
}

function jsonFrame(page: Page<KubernetesObject>, { view, pretty }: ListShape, metadata: ListMeta): Frame {
  const none = emptyItems(page, view);
  const json = jsonText({ ...headOf(page, view, metadata), [view.itemsField]: none }, { pretty });
  const end = json.lastIndexOf(none === null ? "null" : "]");
  const lineBreak = pretty && page.to > page.from ? "\n  " : "";
  return { head: json.slice(0, end), tail: lineBreak + json.slice(end) };
}

function yamlFrame(page: Page<KubernetesObject>, { view, yaml }: ListShape, metadata: ListMeta): Frame {
  const { itemsField } = view;
  const fields = Object.entries(headOf(page, view, metadata));
  const write = (isWithin: (field: string) => boolean): string => {
    const selected = fields.filter(([field]) => isWithin(field));
    return selected.length === 0 ? "" : yaml!.document(JSON.stringify(Object.fromEntries(selected)));
  };
  const items = page.to > page.from
    ? `${itemsField}:\n`
    : `${itemsField}: ${JSON.stringify(emptyItems(page, view))}\n`;
  return { head: write((field) => field < itemsField) + items, tail: write((field) => field > itemsField) };
}

function itemText(
  held: Held<KubernetesObject>,
  shape: ListShape,
  { isFirst }: { readonly isFirst: boolean },
): string {
  const { pretty, yaml } = shape;
  if (yaml !== undefined) return yaml.item(itemJson(held, shape));
  const comma = isFirst ? "" : ",";
  if (!pretty) return comma + itemJson(held, shape);
  // JSON has no line breaks within its strings.
  const text = indentedText(itemJson(held, shape)).replaceAll("\n", "\n    ");
  return `${comma}\n    ${text}`;
}

export function itemJson(
  held: Held<KubernetesObject>,
  { view, holding }: Pick<ListShape, "view" | "holding">,
): string {
  return formText(held, { view, holding, form: "item" });
}

interface ViewForm<T> {
  readonly view: View;
  readonly holding: Holding<T>;
  readonly form: "one" | "item" | "event";
}

/**
 * An object's own text in a form of a view; `undefined` if the form is made of the object.
 * @param of `resourceVersion`: what it shows instead of the object's own.
 */
export function viewText<T extends KubernetesObject>(
  held: Held<T>,
  { view, holding, form, resourceVersion }: ViewForm<T> & { readonly resourceVersion?: string },
): string | undefined {
  const ofText = form === "item" ? view.itemText : view.objectText;
  const around = view.withText?.[form];
  if (ofText === undefined && around === undefined) return undefined;
  const own = holding.json(held, view.cut);
  const json = own === undefined || resourceVersion === undefined ? own : textAtVersion(own, resourceVersion);
  if (json === undefined) return undefined;
  if (around === undefined) return ofText!(json);
  const object = holding.peek(held);
  return around(resourceVersion === undefined ? object : atVersion(object, resourceVersion), json);
}

export function formText<T extends KubernetesObject>(held: Held<T>, of: ViewForm<T>): string {
  return viewText(held, of) ?? jsonOf(of.view[of.form](of.holding.peek(held)));
}

export function atVersion<T extends KubernetesObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** The JSON text of an object at another version. */
function textAtVersion(json: string, resourceVersion: string): string | undefined {
  const metadata = textMember(json, 0, "metadata");
  const version = metadata && textMember(json, metadata.start, "resourceVersion");
  if (version === undefined) return undefined;
  return json.slice(0, version.start) + JSON.stringify(resourceVersion) + json.slice(version.end);
}

export function newObjectView(resource: ApiResource): View {
  const typed = (object: KubernetesObject) => withType(resource, object);
  const typedText = (json: string) => withTypeText(resource, json);
  // JSON leaves out what is undefined.
  const untyped = (object: KubernetesObject) => ({ ...object, kind: undefined, apiVersion: undefined });
  const apiVersion = groupVersion(resource);
  // Items of custom resources have kind and apiVersion.
  const hasTypedItems = !isBuiltinGroup(resource.group);
  return {
    sharedAs: "object",
    itemsSharedAs: "object",
    one: typed,
    list: (metadata) => ({
      kind: `${resource.kind}List`,
      apiVersion,
      // Lists of custom resources always have the field.
      metadata: hasTypedItems ? { continue: "", ...metadata } : metadata,
    }),
    itemsField: "items",
    item: hasTypedItems ? typed : untyped,
    event: typed,
    itemText: hasTypedItems ? typedText : withoutTypeText,
    objectText: typedText,
    bookmark: (metadata) => ({ kind: resource.kind, apiVersion, metadata }),
  };
}

export function newMetadataView(apiVersion: string): View {
  const partial = (object: KubernetesObject) => partialMetadata(object, apiVersion);
  const text = (json: string) => partialMetadataText(json, apiVersion);
  return {
    sharedAs: apiVersion,
    itemsSharedAs: apiVersion,
    one: partial,
    list: (metadata) => ({ kind: "PartialObjectMetadataList", apiVersion, metadata }),
    itemsField: "items",
    isNullIfEmpty: true,
    item: partial,
    event: partial,
    itemText: text,
    objectText: text,
    bookmark: (metadata) => partial({ metadata }),
  };
}

/** Shows what a view shows, of objects without their `metadata.managedFields`. */
export function withoutManagedFields(view: View): View {
  const { sharedAs, withText } = view;
  const ofText = (text: View["itemText"]) =>
    text && ((json: string) => {
      const bare = bareText(json);
      return bare === undefined ? undefined : text(bare);
    });
  const around = (form: TextAround): TextAround => (object, json) => {
    const bare = bareText(json);
    return bare === undefined ? undefined : form(bareObject(object), bare);
  };
  return {
    ...view,
    sharedAs: sharedAs && `${sharedAs} without managedFields`,
    itemsSharedAs: `${view.itemsSharedAs} without managedFields`,
    one: (object) => view.one(bareObject(object)),
    item: (object) => view.item(bareObject(object)),
    event: (object) => view.event(bareObject(object)),
    itemText: ofText(view.itemText),
    objectText: ofText(view.objectText),
    withText: withText && {
      one: around(withText.one),
      item: around(withText.item),
      event: around(withText.event),
    },
  };
}

function bareObject(object: KubernetesObject): KubernetesObject {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** As {@linkcode bareObject}, of an object's JSON text; `undefined` if that needs a look at the object. */
function bareText(json: string): string | undefined {
  const metadata = textMember(json, 0, "metadata");
  if (metadata === undefined) return undefined;
  let kept = "";
  for (const { key, start, end } of textMembers(json, metadata.start)) {
    if (key.includes("\\")) return undefined; // it may be this one
    if (key !== "managedFields") kept += `${kept && ","}"${key}":${json.slice(start, end)}`;
  }
  return `${json.slice(0, metadata.start)}{${kept}}${json.slice(metadata.end)}`;
}

/** Shows in lists which shard they have. Tables, as those of API servers, do not. */
export function withShardInfo(view: View, shard: ShardSelector): View {
  const shardInfo = { selector: String(shard) };
  return { ...view, list: (metadata) => view.list({ ...metadata, shardInfo }) };
}

/** An object with its kind and apiVersion, where it has them, and else in front: items come without. */
export function withType(resource: ApiResource, object: KubernetesObject): KubernetesObject {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object;
  return { kind: resource.kind, apiVersion: groupVersion(resource), ...object };
}

/** As {@linkcode withType}, of an object's JSON text; `undefined` if that needs a look at the object. */
export function withTypeText(resource: ApiResource, json: string): string | undefined {
  if (TYPE.test(json)) return json;
  if (json.length <= 2 || hasTypeField(json)) return undefined;
  const type = JSON.stringify({ kind: resource.kind, apiVersion: groupVersion(resource) });
  return `${type.slice(0, -1)},${json.slice(1)}`;
}

/** As `partialMetadata`, of an object's JSON text; `undefined` if that needs a look at the object. */
export function partialMetadataText(json: string, apiVersion: string): string | undefined {
  const metadata = textMember(json, 0, "metadata");
  if (metadata === undefined || json.charCodeAt(metadata.start) !== OPEN_BRACE) return undefined;
  const type = JSON.stringify({ kind: "PartialObjectMetadata", apiVersion });
  return `${type.slice(0, -1)},"metadata":${json.slice(metadata.start, metadata.end)}}`;
}

/** An object's JSON text without kind and apiVersion; `undefined` if that needs a look at the object. */
export function withoutTypeText(json: string): string | undefined {
  const type = TYPE.exec(json);
  if (type !== null) return `{${json.slice(type[0].length)}`;
  return hasTypeField(json) ? undefined : json;
}

/** Kind and apiVersion where API servers write them: at the beginning. */
const TYPE = /^\{"(?:kind":"[^"\\]*","apiVersion|apiVersion":"[^"\\]*","kind)":"[^"\\]*"(?:,|(?=\}))/;

/** Whether an object has a kind or an apiVersion, by its JSON text. */
function hasTypeField(json: string): boolean {
  for (const { key } of textMembers(json)) {
    // A key with an escape may be one of them.
    if (key === "kind" || key === "apiVersion" || key.includes("\\u")) return true;
  }
  return false;
}
