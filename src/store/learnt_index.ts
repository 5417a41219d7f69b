import type { FieldTexts, TextFields } from "../text/field_tree.ts";
import { isSameJson } from "../util/json.ts";
import type { IndexFunc } from "./index_func.ts";
import { checkedValues } from "./store_index.ts";

/**
 * The values of one index function for objects that are text, without an object: most functions read a field
 * or two, such as `spec.nodeName`, and give the same values for all objects that have the same there.
 *
 * After some hundred objects the function is called with one that notes what is read of it. If that was
 * fields with strings, they are read in the walk over each text from then on, and the values are known for
 * each combination that the function was once called with, and looked at so. A function that does more than
 * to read, or gives other values then, is called with every object; so is one whose fields are mostly new.
 */
export class LearntIndex {
  readonly #indexFunc: IndexFunc<never>;
  readonly #fields: TextFields;
  /** The fields that it reads, as JSON texts of their paths, each with its place. */
  readonly #places = new Map<string, number>();
  /** The places, in the order in which they were added. */
  #order: readonly number[] = [];
  readonly #known = new Map<string, readonly string[]>();
  #seen = 0;
  #hits = 0;
  #misses = 0;
  #isOver = false;

  constructor(indexFunc: IndexFunc<never>, fields: TextFields) {
    this.#indexFunc = indexFunc;
    this.#fields = fields;
  }

  /** The values for an object with these fields, if they are known. */
  values(fields: FieldTexts | undefined): readonly string[] | undefined {
    const combination = fields && this.#combinationOf(fields);
    if (combination === undefined) return undefined;
    const values = this.#known.get(combination);
    if (values !== undefined) this.#hits++;
    return values;
  }

  /** Whether to look at how it reads the object that was held just now: once, when some have come. */
  isCurious(): boolean {
    return this.#order.length === 0 && !this.#isOver && ++this.#seen >= LEARNS_AFTER;
  }

  /** Learns from an object with these fields, of which the values were not known. */
  learn(
    opened: { read<R>(reader: (object: object) => R): R },
    fields: FieldTexts | undefined,
    values?: readonly string[],
  ): void {
    const combination = fields && this.#combinationOf(fields);
    if (combination === undefined && !this.isCurious()) return;
    const trace = new Trace();
    let traced: unknown;
    try {
      traced = opened.read((object) => checkedValues(this.#indexFunc(trace.of(object, []) as never)));
    } catch {
      trace.isReading = false;
    }
    trace.isOver = true;
    if (!trace.isReading || values !== undefined && !isSameJson(values, traced)) return this.#end();
    if (this.#addPaths(trace)) return;
    if (combination === undefined || !Array.isArray(values)) return;
    this.#misses++;
    if (this.#isHopeless()) return this.#end();
    if (!this.#hasRead(trace, fields!)) return;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(combination, [...values]);
  }

  /** Adds the fields that are read for the first time; whether there were some. */
  #addPaths({ leaves }: Trace): boolean {
    const added = [...leaves.keys()].filter((path) => !this.#places.has(path));
    if (added.length === 0) return false;
    if (this.#places.size + added.length > MOST_PATHS) this.#end();
    else for (const path of added) this.#places.set(path, this.#fields.addText(JSON.parse(path)));
    this.#order = [...this.#places.values()];
    this.#known.clear();
    return true;
  }

  /** The values of the fields as one key; `undefined` if one is no string, or was not read. */
  #combinationOf(fields: FieldTexts): string | undefined {
    const places = this.#order;
    if (places.length === 1) return textAt(fields, places[0]);
    if (places.length === 0) return undefined;
    let combination = "";
    for (const place of places) {
      const text = textAt(fields, place);
      if (text === undefined) return undefined;
      combination += `${text.length}:${text}`;
    }
    return combination;
  }

  /** Whether nothing but strings was read, which the text has in these fields, too. */
  #hasRead(trace: Trace, fields: FieldTexts): boolean {
    for (const [path, value] of trace.leaves) {
      if (typeof value !== "string" || value !== textAt(fields, this.#places.get(path)!)) return false;
    }
    // A string in an object shows that the object is there.
    const paths = [...trace.leaves.keys()];
    return trace.objects.every((object) => paths.some((path) => path.startsWith(`${object.slice(0, -1)},`)));
  }

  #isHopeless(): boolean {
    return this.#misses >= FEW && this.#hits * 64 < this.#misses ||
      this.#misses >= MANY && this.#hits < this.#misses;
  }

  #end(): void {
    this.#isOver = true;
    this.#order = [];
    for (const place of this.#places.values()) this.#fields.remove(place);
    this.#places.clear();
    this.#known.clear();
  }
}

/** After how many objects it is looked at what is read of them: fewer cost little in any way. */
const LEARNS_AFTER = 1024;
/** The most fields that an index function may depend on. */
const MOST_PATHS = 4;
/** The most combinations that are known at a time. */
const MOST_KNOWN = 1 << 16;
/** After how many new combinations some should have come again, and as many as are new. */
const FEW = 1 << 10;
const MANY = 1 << 14;

function textAt(fields: FieldTexts, place: number): string | undefined {
  const values = place < fields.length ? fields[place] : undefined;
  return values?.length === 1 ? values[0] : undefined;
}

/** All that may happen to an object: the traps of a `Proxy` have the names of what `Reflect` has. */
const TRAPS = /* @__PURE__ */ Object.getOwnPropertyNames(
  Reflect,
) as (keyof typeof Reflect & keyof ProxyHandler<object>)[];

/** Notes what an index function reads of an object. */
class Trace {
  /** The values that are no objects, by the JSON texts of their paths. */
  readonly leaves = new Map<string, unknown>();
  /** The paths of the objects. */
  readonly objects: string[] = [];
  /** Whether the function did nothing but read members of objects. */
  isReading = true;
  /** Whether the call is over: an object that the function has kept is then the real one. */
  isOver = false;

  /** An object that notes what is read of it. */
  of(object: object, path: readonly string[]): object {
    const handler: ProxyHandler<object> = {};
    for (const trap of TRAPS) {
      handler[trap] = (...given: unknown[]): never => {
        this.isReading &&= this.isOver;
        if (!this.isOver) throw new TypeError("the function does more than to read");
        // Called without the receiver, which is the proxy.
        return (Reflect[trap] as (...given: unknown[]) => never)(...given.slice(0, 3));
      };
    }
    handler.get = (target, name) => this.isOver ? Reflect.get(target, name) : this.#read(target, name, path);
    return new Proxy(object, handler);
  }

  #read(object: object, name: string | symbol, path: readonly string[]): unknown {
    const value = Reflect.get(object, name);
    const isOwn = Object.hasOwn(object, name);
    if (typeof name === "symbol" || !isOwn && value !== undefined || Array.isArray(value)) {
      this.isReading = false;
      return value;
    }
    const below = [...path, name];
    if (typeof value === "object" && value !== null) {
      this.objects.push(JSON.stringify(below));
      return this.of(value, below);
    }
    this.leaves.set(JSON.stringify(below), value);
    return value;
  }
}
