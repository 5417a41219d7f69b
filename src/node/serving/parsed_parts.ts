/** What the parser of a connection is given at a time. */

import type { Socket } from "node:net";

/**
 * The parser of Node's server, which Deno has too:
 * https://github.com/nodejs/node/blob/main/lib/_http_common.js
 */
interface Parser {
  /** Whether what arrives goes to the parser by itself. */
  _consumed?: boolean;
  readonly incoming?: { readonly upgrade?: boolean } | null;
  unconsume?(): void;
  /** Returns how many bytes it has parsed, or what is wrong with them. */
  execute?(bytes: Uint8Array): number | Error;
}

// A part has some hundred chunks of a body at most.
const MOST_PARSED = 4 * 1024;

/**
 * Lets Deno's parser have what arrives in parts, so that nothing more is parsed once the socket is destroyed:
 * a read of 64 KiB may have ten thousand chunks of a body, each of which takes memory until the next garbage
 * collection. So does the read itself, which is given up then. Node's parser takes little of either.
 */
export function parseInParts(socket: Socket & { parser?: Parser | null }): void {
  const { parser } = socket;
  if (!("Deno" in globalThis) || typeof parser?.execute !== "function") return;
  if (parser._consumed) {
    parser._consumed = false;
    parser.unconsume?.();
  }
  const { execute } = parser;
  parser.execute = function (bytes) {
    if (socket.parser !== this) return execute.call(this, bytes);
    const { length } = bytes;
    for (let at = 0; at < length; at += MOST_PARSED) {
      const part = bytes.subarray(at, at + MOST_PARSED);
      const parsed = execute.call(this, part);
      if (socket.destroyed) {
        (bytes.buffer as ArrayBuffer).transfer(0);
        break;
      }
      if (typeof parsed !== "number") return parsed;
      // What follows is for another protocol.
      if (parsed < part.length || this.incoming?.upgrade) return at + parsed;
    }
    return length;
  };
  // The next connection may have the same parser.
  socket.once("close", () => delete parser.execute);
}
