import { type FieldTexts, TextFields } from "../text/field_tree.ts";
import { ObjectText, ObjectTextReader } from "../text/object_text_reader.ts";

/**
 * Reads the values of fields out of JSON texts, all of them in one walk over the text: the same values as an
 * index function of `fieldIndex` gives for the parsed object. Values are strings of their own, which do not
 * keep the text in memory.
 */
export class FieldReader {
  /** The fields, for a source that reads them along with its objects. */
  readonly fields: TextFields = new TextFields();
  readonly #reader = new ObjectTextReader(this.fields);

  /** Adds a path; returns its place in what {@linkcode FieldReader.read} returns. */
  add(path: string): number {
    return this.fields.add(path);
  }

  /** The values at each path, each value once. */
  read(text: string): FieldTexts {
    const read = text.isWellFormed() ? this.#reader.read(text) : JSON.parse(text);
    return read instanceof ObjectText ? read.fields : this.fields.valuesOf(read);
  }
}

/**
 * The field indices of a store whose objects are held as text: computes the values of an object in all of
 * them at once, when the first asks, and remembers those of one object.
 */
export class HeldFields<H extends object> {
  readonly #reader = new FieldReader();
  #held: H | undefined;
  #values: FieldTexts = [];

  /** The fields, for a source that reads them along with its objects. */
  get fields(): TextFields {
    return this.#reader.fields;
  }

  add(path: string): number {
    this.#held = undefined;
    return this.#reader.add(path);
  }

  values(held: H, place: number, text: (held: H) => string): readonly string[] {
    if (this.#held !== held) {
      this.#values = this.#reader.read(text(held));
      this.#held = held;
    }
    return this.#values[place];
  }

  forget(): void {
    this.#held = undefined;
  }
}
