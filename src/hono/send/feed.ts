/** What a watch and its feed have in common. */

import type { Status } from "../../meta/status.ts";

/** What a watch sends, piece by piece. */
export interface Feed {
  /** Whether there is a piece to send now. */
  readonly hasNext: boolean;
  /** The entry of the log that it reads next; entries from there on are kept for it. */
  readonly cursor: number;
  /** Whether it cannot continue after a relist; see `LogReader`. */
  readonly endsAtRelist: boolean;
  /** Whether it shows from time to time how far it has come. */
  readonly wantsHeartbeat: boolean;
  /** The watch is open: the feed wakes it when there is more, and cuts it when it cannot continue. */
  opened(watch: { wake(): void; cut(): void }): void;
  /** @param takesLarge Whether a large piece that watches share costs no more memory than a small one. */
  next(takesLarge: boolean): Piece;
  heartbeat(): Uint8Array;
  /** Why it cannot continue. */
  lost(): Status;
  close(): void;
}

export interface Piece {
  /** `undefined` if there is nothing to send after all. */
  readonly bytes: Uint8Array | undefined;
  /** The work that it took. */
  readonly units: number;
  /** It cannot be sent to the end: the watch is lost. */
  readonly isCut: boolean;
}
