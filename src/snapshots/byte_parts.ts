/**
 * Parts of a saved snapshot: a JSON head with bytes behind it.
 * @module
 */

import { concatenated } from "../util/concatenated.ts";
import { corrupt } from "./refusals.ts";

const encoder = /* @__PURE__ */ new TextEncoder();
/** Refuses what is no UTF-8: such a text would not be the one that was saved. */
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of a text. */
export function textBytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/**
 * The text of bytes.
 *
 * @throws {SnapshotFault} They are no UTF-8.
 */
export function bytesText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw corrupt("a text in it is no UTF-8", error);
  }
}

/** A JSON value, preceded by its length, and the parts behind it. */
export function withHead(head: unknown, ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const json = textBytes(JSON.stringify(head));
  const length = new Uint8Array(4);
  viewOf(length).setUint32(0, json.length, true);
  const all = [length, json, ...parts];
  return concatenated(all, all.reduce((sum, part) => sum + part.length, 0));
}

/**
 * Separates the JSON value from the bytes behind it.
 *
 * @throws {SnapshotFault} There is no such value.
 */
export function splitHead(bytes: Uint8Array): { readonly head: unknown; readonly rest: Uint8Array } {
  const length = bytes.length < 4 ? NaN : viewOf(bytes).getUint32(0, true);
  if (!(length <= bytes.length - 4)) throw corrupt("a head in it is longer than what was saved");
  return { head: parsed(bytesText(bytes.subarray(4, 4 + length))), rest: bytes.subarray(4 + length) };
}

/**
 * The value of a JSON text.
 *
 * @throws {SnapshotFault} It is no JSON.
 */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw corrupt("a head in it is no JSON", error);
  }
}

/** A view of just these bytes. */
export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
