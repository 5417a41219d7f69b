/**
 * Arguments of a list or a watch that are not sent, and how a store holds objects that are read as text.
 * @module
 */

import type { ObjectHead, ReadAlong } from "./object_text.ts";
import type { ObjectTextReader } from "./object_text_reader.ts";

/**
 * Arguments of a list or a watch that are not sent.
 *
 * @category Reflector
 */
export interface ListWatchContext {
  /** Ends the request, and a watch's stream, at once. */
  readonly signal: AbortSignal;
  /** Called with the number of bytes of each chunk of the answer's body, by sources that count them. */
  readonly onBytes?: (bytes: number) => void;
  /**
   * Called with each item of a list as soon as it is decoded and accepted; what it returns replaces the item
   * in the page. For sources that decode items one by one, so that at most one of them is in memory in
   * decoded form. A source that reads the items of another source's pages must not pass this on.
   */
  readonly intake?: (item: unknown) => unknown;
  /**
   * Makes what a store holds of an object's JSON text; lists and watches return that instead of the parsed
   * objects. For sources that have the text; others ignore it.
   */
  readonly holdText?: HoldText;
}

/**
 * How a store holds objects that are read as text. One that holds texts hands it to its source.
 *
 * @category Reflector
 */
export interface HoldText {
  /** Reads objects out of texts: used by one after the other. */
  readonly reader: ObjectTextReader;
  /**
   * Makes what the store holds of an object's JSON text, which is a string of its own (no part of a longer
   * one), and was checked: it can be parsed, and its head was accepted.
   *
   * @param read What the reader read besides; absent where the text is not the one that was read.
   */
  readonly hold: (text: string, head: ObjectHead, read?: ReadAlong) => unknown;
  /**
   * What is stored for a key, if an item that has the same uid and resourceVersion, of a list at this
   * resourceVersion, may be taken for the same object. Then the list has the stored one in its place, and its
   * text is not read.
   */
  readonly stored?: (key: string, listVersion: string) => unknown;
}
