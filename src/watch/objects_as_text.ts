/** Handing out objects that are not parsed. */

import type { HoldText } from "../text/object_text_reader.ts";
import type { UncheckedHead } from "../text/object_reader.ts";

/**
 * How a list or a watch hands out objects that are not parsed.
 *
 * @category Decoding
 */
export interface ObjectsAsText extends HoldText {
  /**
   * Whether an object is accepted whatever is in it besides its head. If not, or by default, it is parsed for
   * the validator, which decides.
   */
  readonly acceptsHead?: (head: UncheckedHead) => boolean;
}
