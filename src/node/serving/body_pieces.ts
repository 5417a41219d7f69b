/** The pieces in which the bodies of requests arrive. */

import type { IncomingMessage } from "node:http";
import { laterTurn } from "../../util/clock.ts";

// Bodies come in pieces of kilobytes.
const FEW_PIECES = 1_000;
const LEAST_PIECE = 64;
const MOST_GATHERED = 4 * 1024;

/**
 * Limits how many pieces a body in chunks may have that are tiny on average: each takes as long as a large
 * one.
 */
export function limitPieces(incoming: IncomingMessage & { _dumped?: boolean }, onTooMany: () => void): void {
  let pieces = 0;
  let bytes = 0;
  let isUnwanted = false;
  let isCut = false;
  let gathered: Uint8Array | undefined;
  let length = 0;
  // Once the request is answered, the parser would hand over nothing more, and nothing would be counted.
  Object.defineProperty(incoming, "_dumped", { get: () => isCut, set: (is) => (isUnwanted = is) });
  const push = incoming.push.bind(incoming);
  const flush = () => {
    if (gathered === undefined) return;
    const whole = gathered.subarray(0, length);
    gathered = undefined;
    length = 0;
    if (!isUnwanted && !isCut) push(whole);
  };
  const gather = (piece: Uint8Array): boolean => {
    if (gathered === undefined) {
      gathered = new Uint8Array(MOST_GATHERED);
      // Node runs microtasks between the pieces of one read.
      void laterTurn().then(flush);
    }
    // Faster than `set` for so few.
    for (const byte of piece) gathered[length++] = byte;
    if (length > MOST_GATHERED - LEAST_PIECE) flush();
    return incoming.readableLength < incoming.readableHighWaterMark;
  };
  incoming.push = (piece: Uint8Array | null, encoding?: BufferEncoding) => {
    bytes += piece?.length ?? 0;
    if (++pieces > FEW_PIECES && bytes < pieces * LEAST_PIECE) {
      // As of a request whose body is not wanted: the parser hands over no more of it.
      isCut = true;
      gathered = undefined;
      onTooMany();
      return false;
    }
    if (isUnwanted && piece !== null) return true;
    if (piece !== null && piece.length < LEAST_PIECE) return gather(piece);
    flush();
    return push(piece, encoding);
  };
}
