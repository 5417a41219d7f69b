/** Feeds: what watches send. The feed of events knows what was sent of the log, and what comes next. */

import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import { AGE_ANNOTATION, INITIAL_EVENTS_END_ANNOTATION } from "../../meta/list_watch.ts";
import { watchTooOld } from "../../protocol/statuses.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { OPEN_UNITS } from "../../util/turns.ts";
import type { Content } from "../content/content.ts";
import type { Snapshot } from "../content/states.ts";
import { MOST_PIECE, type Reader } from "../request/readers.ts";
import {
  eventText,
  type GroupKind,
  heldEventText,
  type WatchGroup,
  type WatchGroups,
} from "./watch_groups.ts";

/** What one watch sends, piece by piece. */
export interface Feed {
  readonly hasNext: boolean;
  /** The entry of the log that it reads next; entries from there on are kept for it. */
  readonly cursor: number;
  /** Whether the reader cannot continue after a relist; see `LogReader`. */
  readonly endsAtRelist: boolean;
  /** Whether the feed sends heartbeats, which show from time to time how far it has come. */
  readonly wantsHeartbeat: boolean;
  /** The watch is open: the feed wakes it when there is more, and cuts it when it cannot continue. */
  opened(watch: { wake(): void; cut(): void }): void;
  /** @param takesLarge Whether a large piece that watches share costs no more memory than a small one. */
  next(takesLarge: boolean): Piece;
  heartbeat(): Uint8Array;
  lost(): Status;
  close(): void;
}

export interface Piece {
  /** `undefined` if there is nothing to send after all. */
  readonly bytes: Uint8Array | undefined;
  readonly units: number;
  /** Whether the piece cannot be sent to the end: the watch is lost. */
  readonly isCut: boolean;
  readonly hasMore: boolean;
}

export interface EventFeedOptions<T> extends GroupKind {
  readonly cursor: number;
  /** The version that the reader has seen: that of its initial events, or of an earlier request. */
  readonly resourceVersion: string;
  /** Whether a resourceVersion from the future is of a lost history, once that is known. */
  readonly isLost?: (signal: AbortSignal) => Promise<boolean>;
  readonly initial?: Snapshot<T>;
  /** Whether the reader requires each event, so that a list in which some are missing ends the watch. */
  readonly endsAtRelist: boolean;
  readonly reader: Reader;
}

// The most work on one piece of initial events, besides its length.
const MOST_UNITS = 40_000;

// The cost of encoding a character.
const ENCODE_UNITS = 0.5;

/** ADDED events of what is there, if they are requested, then the events of the log. */
export class EventFeed<T extends KubernetesObject> implements Feed {
  readonly #content: Content<T>;
  readonly #groups: WatchGroups<T>;
  readonly #group: WatchGroup<T>;
  readonly #requiresEachEvent: boolean;
  readonly #isLost: EventFeedOptions<T>["isLost"];
  readonly #reader: Reader;
  readonly wantsHeartbeat: boolean;
  cursor: number;
  #resourceVersion: string;
  /**
   * A resourceVersion from the future, or up to which events may be missing here: what comes up
   * to it has been seen by the reader, elsewhere.
   */
  #skipThrough: string;
  readonly #isFuture: boolean;
  /** The objects of which the reader receives ADDED events first. */
  #initial: Snapshot<T> | undefined;
  #initialSent = 0;
  /** Ends the wait of a reader from the future. */
  #waiting: AbortController | undefined;

  constructor(
    { content, groups }: { readonly content: Content<T>; readonly groups: WatchGroups<T> },
    options: EventFeedOptions<T>,
  ) {
    const { view, selection, allowBookmarks, resourceVersion, initial, endsAtRelist, isLost } = options;
    const { log } = content;
    this.#content = content;
    this.#groups = groups;
    this.#requiresEachEvent = endsAtRelist;
    this.#isLost = isLost;
    this.#reader = options.reader;
    this.cursor = options.cursor;
    this.#resourceVersion = resourceVersion;
    this.#isFuture = compareResourceVersions(resourceVersion, log.window.resourceVersion) > 0;
    this.#skipThrough = this.#isFuture || log.mayLackEvents(resourceVersion) ? resourceVersion : "";
    this.#initial = initial;
    this.wantsHeartbeat = allowBookmarks;
    this.#group = groups.join({ view, selection, allowBookmarks });
  }

  get hasNext(): boolean {
    const { tail, entries } = this.#content.log.window;
    return this.#initial !== undefined || this.cursor !== tail + entries.length;
  }

  get endsAtRelist(): boolean {
    return this.#requiresEachEvent || this.#skipThrough !== "";
  }

  /** A reader of a history that the server has lost would wait in silence, and then miss what came before. */
  async opened(watch: { cut(): void }): Promise<void> {
    if (!this.#isFuture) return;
    this.#waiting = new AbortController();
    if (await this.#isLost?.(this.#waiting.signal)) watch.cut();
  }

  lost(): Status {
    return watchTooOld(this.#resourceVersion, this.#content.log.oldestResourceVersion);
  }

  close(): void {
    this.#waiting?.abort();
    this.#initial = undefined;
    this.#groups.leave(this.#group);
  }

  next(takesLarge: boolean): Piece {
    return this.#initial === undefined ? this.#chunk(takesLarge) : this.#initialPiece(this.#initial);
  }

  #chunk(takesLarge: boolean): Piece {
    const chunk = this.#group.chunk(this.cursor, {
      length: takesLarge ? MOST_PIECE : this.#reader.readers.watchPieceLength,
      skipThrough: this.#skipThrough,
    });
    // The first watch of the group pays for all.
    const { bytes, units } = chunk;
    chunk.units = 0;
    if (chunk.isTooLong) return { bytes: undefined, units, isCut: true, hasMore: false };
    this.cursor = chunk.to;
    if (chunk.resourceVersion !== "") {
      this.#resourceVersion = chunk.resourceVersion;
      this.#skipThrough = "";
    }
    return { bytes, units, isCut: false, hasMore: this.hasNext };
  }

  #initialPiece(initial: Snapshot<T>): Piece {
    const length = this.#reader.readers.watchPieceLength;
    const { selection, view, allowBookmarks } = this.#group.kind;
    const { holding } = this.#content;
    const hasFields = selection?.hasFieldsBesides(initial.answers);
    let text = "";
    let units = 0;
    for (
      ;
      this.#initialSent < initial.length && text.length < length && units < MOST_UNITS;
      this.#initialSent++
    ) {
      units += selection?.units ?? 0;
      const held = initial.object(this.#initialSent);
      if (
        selection?.mayHave(initial.key(this.#initialSent)) === false || selection?.hasHead?.(held) === false
      ) {
        continue;
      }
      if (hasFields === undefined) {
        text += heldEventText("ADDED", held, { view, holding });
        continue;
      }
      const object = holding.peek(held);
      if (object !== held) units += OPEN_UNITS;
      if (hasFields(object)) text += heldEventText("ADDED", held, { view, holding });
    }
    if (this.#initialSent === initial.length) {
      // The snapshot is no longer needed.
      this.#initial = undefined;
      if (allowBookmarks) {
        text += eventText(
          "BOOKMARK",
          view.bookmark({
            resourceVersion: this.#resourceVersion,
            annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true", ...this.#ageAnnotation() },
          }),
        );
      }
    }
    const bytes = text === "" ? undefined : encodeUtf8(text);
    return { bytes, units: units + text.length * ENCODE_UNITS, isCut: false, hasMore: this.hasNext };
  }

  // Up to where the log has each event, unless the reader is further.
  heartbeat(): Uint8Array {
    const { eventsThrough } = this.#content.log;
    const isBehind = compareResourceVersions(eventsThrough, this.#resourceVersion) < 0;
    const resourceVersion = isBehind ? this.#resourceVersion : eventsThrough;
    return this.#group.bookmark(resourceVersion, this.#ageAnnotation());
  }

  /** The annotation for a cache above this one: how old the content is. Others need none. */
  #ageAnnotation(): Record<string, string> | undefined {
    const { ageMs } = this.#content;
    return this.#requiresEachEvent && ageMs >= 1 ? { [AGE_ANNOTATION]: String(ageMs) } : undefined;
  }
}
