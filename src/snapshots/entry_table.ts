/**
 * What is known of saved objects without their texts, column by column.
 *
 * A store of 100,000 objects is readable as soon as this table is: each text is found by its place, and is read when it
 * is needed. So the table is made to be decoded fast: a column of texts is split at its line ends, equal namespaces and
 * labels are in it once, and numbers have four bytes.
 *
 * @module
 */

import type { ObjectHead } from "../text/object_text.ts";
import { concatenated } from "../util/concatenated.ts";
import { bytesText, parsed, splitHead, textBytes, viewOf, withHead } from "./byte_parts.ts";
import { corrupt } from "./refusals.ts";

/** One object of a table. */
export interface TableEntry {
  readonly key: string;
  /** Its type, and of its metadata name, namespace, uid, resourceVersion and labels, if these are texts. */
  readonly head: ObjectHead | undefined;
  /** Of its text, in bytes. */
  readonly length: number;
  /** The checksum of these bytes. */
  readonly checksum: number;
}

type Labels = Readonly<Record<string, string>>;

/** Collects entries and encodes them. */
export class EntryTableBuilder {
  readonly #keys: string[] = [];
  readonly #uids: (string | undefined)[] = [];
  /** `undefined`: the head is not known. */
  readonly #versions: (string | undefined)[] = [];
  /** `undefined`: the name is what the key says. */
  readonly #names: (string | undefined)[] = [];
  readonly #types = new Distinct();
  readonly #namespaces = new Distinct();
  readonly #labels = new Distinct();
  readonly #numbers: number[] = [];
  #lastLabels: Labels | undefined;
  #lastLabelsText: string | undefined;

  /** How many entries it has. */
  get count(): number {
    return this.#keys.length;
  }

  /** Adds an entry. */
  add({ key, head, length, checksum }: TableEntry): void {
    const known = head?.metadata !== undefined && isPlainHead(head) ? head : undefined;
    const { name, namespace, uid, resourceVersion, labels } = known?.metadata ?? {};
    this.#keys.push(key);
    this.#uids.push(uid);
    this.#versions.push(known && (resourceVersion ?? ""));
    this.#names.push(known === undefined || name === nameIn(key, namespace) ? undefined : name ?? "");
    this.#numbers.push(
      this.#types.place(known && JSON.stringify([known.apiVersion ?? null, known.kind ?? null])),
      this.#namespaces.place(namespace),
      this.#labels.place(this.#labelsText(labels)),
      length,
      checksum,
    );
  }

  /** The bytes of all entries. */
  encode(): Uint8Array<ArrayBuffer> {
    const columns = [
      this.#keys,
      this.#uids,
      this.#versions,
      this.#names,
      this.#types.values,
      this.#namespaces.values,
      this.#labels.values,
    ].map(encodeColumn);
    const numbers = new Uint8Array(this.#numbers.length * 4);
    const view = viewOf(numbers);
    this.#numbers.forEach((number, i) => view.setUint32(i * 4, number, true));
    const head = { count: this.count, columns: columns.map(({ form, bytes }) => [form, bytes.length]) };
    return withHead(head, ...columns.map(({ bytes }) => bytes), numbers);
  }

  /** Objects that were made alike come one after the other, and often share their labels. */
  #labelsText(labels: Labels | undefined): string | undefined {
    if (labels !== this.#lastLabels) {
      this.#lastLabels = labels;
      this.#lastLabelsText = labels === undefined ? undefined : JSON.stringify(labels);
    }
    return this.#lastLabelsText;
  }
}

/** A decoded table. */
export class EntryTable {
  readonly count: number;
  readonly keys: readonly string[];
  readonly #uids: Column;
  readonly #versions: Column;
  readonly #names: Column;
  readonly #types: readonly Pick<ObjectHead, "apiVersion" | "kind">[];
  readonly #namespaces: Column;
  readonly #labelTexts: Column;
  readonly #labels: (Labels | undefined)[] = [];
  readonly #numbers: DataView;

  /**
   * Decodes what an {@linkcode EntryTableBuilder} encoded.
   *
   * @throws {SnapshotFault} It is something else.
   */
  constructor(bytes: Uint8Array) {
    const { head, rest } = splitHead(bytes);
    const { count, columns } = head as TableHead;
    if (!Number.isSafeInteger(count) || !Array.isArray(columns) || columns.length !== 7) {
      throw corrupt("a table in it has no columns");
    }
    let at = 0;
    const [keys, uids, versions, names, types, namespaces, labels] = columns.map(([form, length]) => {
      if (!(length <= rest.length - at)) throw corrupt("a column in it is cut off");
      return decodeColumn(form, rest.subarray(at, at += length), count);
    });
    const numbers = rest.subarray(at);
    if (
      [keys, uids, versions, names].some(({ length }) => length !== count) ||
      numbers.length !== count * NUMBERS_BYTES || !keys.every((key) => key !== null)
    ) {
      throw corrupt("the columns of a table in it differ in length");
    }
    this.count = count;
    this.keys = keys as readonly string[];
    this.#uids = uids;
    this.#versions = versions;
    this.#names = names;
    this.#types = types.map(decodeType);
    this.#namespaces = namespaces;
    this.#labelTexts = labels;
    this.#numbers = viewOf(numbers);
  }

  /** The head of the entry at a place, if it is known. */
  head(place: number): ObjectHead | undefined {
    const resourceVersion = this.#versions[place];
    if (resourceVersion === null) return undefined;
    const namespace = this.#namespaces[this.#number(place, 1)] ?? undefined;
    const name = this.#names[place] ?? nameIn(this.keys[place], namespace);
    const uid = this.#uids[place] ?? undefined;
    const labels = this.#labelsAt(this.#number(place, 2));
    const { apiVersion, kind } = this.#types[this.#number(place, 0)];
    return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels } } as ObjectHead;
  }

  /** The length of its text, in bytes. */
  length(place: number): number {
    return this.#number(place, 3);
  }

  /** The checksum of these bytes. */
  checksum(place: number): number {
    return this.#number(place, 4);
  }

  /** The entry at a place. */
  entry(place: number): TableEntry {
    return {
      key: this.keys[place],
      head: this.head(place),
      length: this.length(place),
      checksum: this.checksum(place),
    };
  }

  #number(place: number, column: number): number {
    return this.#numbers.getUint32(place * NUMBERS_BYTES + column * 4, true);
  }

  #labelsAt(place: number): Labels | undefined {
    const text = this.#labelTexts[place];
    if (text === null || text === undefined) return undefined;
    return this.#labels[place] ??= parsed(text) as Labels;
  }
}

/** Of one entry: its type, namespace and labels by their places, the length of its text, the checksum. */
const NUMBERS_BYTES = 20;

interface TableHead {
  readonly count: number;
  readonly columns: readonly (readonly [form: string, length: number])[];
}

/** `null`: there is none. */
type Column = readonly (string | null)[];

/** Each text once. */
class Distinct {
  readonly values: (string | undefined)[] = [];
  readonly #places = new Map<string | undefined, number>();

  place(value: string | undefined): number {
    let place = this.#places.get(value);
    if (place === undefined) this.#places.set(value, place = this.values.push(value) - 1);
    return place;
  }
}

/** The name that a key has, if it is made as `metaNamespaceKey` makes it. */
function nameIn(key: string, namespace: string | undefined): string {
  return namespace ? key.slice(namespace.length + 1) : key;
}

/** Whether what is saved of a head has the right types: those of programs are not checked. */
function isPlainHead({ apiVersion, kind, metadata }: ObjectHead): boolean {
  const { name, namespace, uid, resourceVersion, labels } = metadata as Record<string, unknown>;
  const texts: unknown[] = [apiVersion, kind, name, namespace, uid, resourceVersion];
  return texts.every((value) => value === undefined || typeof value === "string") &&
    (labels === undefined ||
      (typeof labels === "object" && labels !== null &&
        Object.values(labels).every((value) => typeof value === "string")));
}

function decodeType(text: string | null): Pick<ObjectHead, "apiVersion" | "kind"> {
  const [apiVersion, kind] = (text === null ? [] : parsed(text)) as (string | null)[];
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }) };
}

function encodeColumn(
  values: readonly (string | undefined)[],
): { readonly form: string; readonly bytes: Uint8Array } {
  if (values.every((value) => value === undefined)) return { form: "none", bytes: new Uint8Array() };
  // An empty column and one empty text would be the same lines.
  const isLines = values.length > 0 &&
    values.every((value) => value !== undefined && !value.includes("\n") && value.isWellFormed());
  return isLines
    ? { form: "lines", bytes: encodeLines(values as readonly string[]) }
    : { form: "json", bytes: textBytes(JSON.stringify(values.map((value) => value ?? null))) };
}

/** In parts, as one text of all could be longer than engines allow. */
function encodeLines(values: readonly string[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let at = 0; at < values.length; at += LINES_AT_ONCE) {
    const lines = values.slice(at, at + LINES_AT_ONCE).join("\n");
    const part = textBytes(at === 0 ? lines : `\n${lines}`);
    parts.push(part);
    length += part.length;
  }
  return concatenated(parts, length);
}

const LINES_AT_ONCE = 65_536;

function decodeColumn(form: unknown, bytes: Uint8Array, count: number): Column {
  if (form === "none") return new Array<null>(count).fill(null);
  const text = bytesText(bytes);
  if (form === "lines") return text.split("\n");
  const values = form === "json" ? parsed(text) : undefined;
  if (Array.isArray(values) && values.every((value) => value === null || typeof value === "string")) {
    return values;
  }
  throw corrupt("a column in it is no list of texts");
}
