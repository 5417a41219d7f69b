/**
 * Reading a body to its end.
 * @module
 */

import { concatenated } from "./concatenated.ts";

/**
 * All bytes of a body, which is unlocked then. `undefined` if there are more than `maxBytes`: the rest is
 * cancelled.
 */
export async function wholeBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return concatenated(chunks, length);
      length += value.byteLength;
      if (length > maxBytes) {
        reader.cancel().catch(() => {});
        return undefined;
      }
      chunks.push(value);
    }
  } finally {
    reader.releaseLock();
  }
}
