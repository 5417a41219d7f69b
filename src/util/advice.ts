/**
 * Advice in types: what a compiler's error says to do.
 * @module
 */

/**
 * A type that no value has. Where it is required, the compiler's error shows the text.
 *
 * `string & Advice<"name an index in indexers">` refuses every string in this way.
 */
export interface Advice<Text extends string> {
  /** Exists for the type checker only. */
  readonly "~advice": Text;
}
