import type { KeyFunc } from "../meta/object.ts";
import type { HoldingOptions, NewHolding } from "./holding.ts";
import { EncodedHolding, type TextsOptions } from "./encoded_holding.ts";
import { TextCodec } from "./text_codec.ts";

/**
 * Holds the objects of stores and informers as short texts that are decoded when they are read, for a
 * quarter of the memory: for isolates of 128 MB. Pass it as their `storage`.
 *
 * A decoded object equals the one that was put in, and is another one, unless it was written or looked up a
 * short while ago. Only what can be written as JSON is encoded; other values are held as they are, and a
 * property that is `undefined` is left out. In an informer, objects that wait in the queue and for handlers
 * are encoded too, and so is a list while it arrives, unless there is a `queue` of your own.
 *
 * The text that a read API serves is the one that the server sent, character for character, as by
 * default: white space, escapes, the order and the repetition of keys, every digit. After a transform it is
 * what `JSON.stringify` writes. `docs/holdings.md` compares it with the other holdings.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, shortTexts } from "@listwatch/cache";
 * import { newStore } from "@listwatch/cache/store";
 * const store = newStore<KubernetesObject>(metaNamespaceKey, { storage: shortTexts() });
 * store.add({ metadata: { namespace: "shop", name: "web-1" } });
 * console.log(store.getByKey("shop/web-1")?.metadata?.name); // web-1
 * ```
 *
 * @category Informers
 */
export function shortTexts(options: TextsOptions = {}): NewHolding {
  return <T>(keyFunc: KeyFunc, { freeze }: HoldingOptions = {}) =>
    new EncodedHolding<T>(keyFunc, new TextCodec(), { ...options, freeze });
}
