/** The watchers of one resource. */

import type { KubernetesObject } from "../../meta/object.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { Content, ContentFollower } from "../content/content.ts";
import type { LogEntry } from "../content/log_history.ts";
import { EntryViews } from "./encoding.ts";
import type { FanOut, FanOutSource, Recipient } from "./fan_out.ts";
import { WatchGroups } from "./watch_groups.ts";

/** A watch, as {@linkcode Watchers} sees it. */
export interface LogReader extends Recipient {
  /** The sequence number of the next entry it will read. */
  readonly cursor: number;
  /** Whether it wants {@linkcode LogReader.heartbeat}. */
  readonly wantsHeartbeat: boolean;
  /**
   * Whether the difference between two lists is not enough for it: it requires each event, or has seen a
   * state in between, elsewhere.
   */
  readonly endsAtRelist: boolean;
  /** Time for a sign of life. */
  heartbeat(): void;
  /** Sends at once what it has room for. */
  flush(): void;
  /** The entries that it would read next were dropped. */
  cut(): void;
  /** The log is closed: end in good order. */
  end(): void;
}

/** Options of {@linkcode Watchers}. */
export interface WatchersOptions {
  readonly clock: Clock;
  /** Lets the watches send. */
  readonly fanOut: FanOut;
  /** Time between heartbeats. */
  readonly heartbeatMs: number;
}

// An API server sends a bookmark about once a minute; a merged resource has one after each event.
const HEARD_MS = 5_000;

/**
 * The open watches of one content: lets them send what comes into its log, ends those that cannot continue,
 * and gives a heartbeat to each one that wants it, at the same time to all. There is a timer while a watch
 * wants one.
 */
export class Watchers<T extends KubernetesObject> implements ContentFollower<T>, FanOutSource {
  readonly #options: WatchersOptions;
  /** The entries from here on are not dropped: the watches have not had their turn since. */
  #keepFrom = 0;
  /** How many watches want heartbeats. */
  #wanted = 0;
  #timer: TimerHandle | undefined;
  #heardMs = -Infinity;

  readonly content: Content<T>;
  /** The watches. */
  readonly recipients: Set<LogReader> = new Set();
  /** What watches read of entries. */
  readonly views: EntryViews<T>;
  /** Watches that send the same. */
  readonly groups: WatchGroups<T>;

  /** Follows the content. */
  constructor(content: Content<T>, options: WatchersOptions) {
    this.content = content;
    this.#options = options;
    this.views = new EntryViews(content.holding);
    this.groups = new WatchGroups(content, this.views);
    content.follow(this);
  }

  /** How many there are. */
  get size(): number {
    return this.recipients.size;
  }

  /** Lets the watches send. */
  get fanOut(): FanOut {
    return this.#options.fanOut;
  }

  /** Adds a watch. */
  attach(reader: LogReader): void {
    if (this.content.isClosed) return reader.end();
    this.recipients.add(reader);
    if (reader.wantsHeartbeat && this.#wanted++ === 0) this.#schedule();
  }

  /** Removes a watch, if it is there. */
  detach(reader: LogReader): void {
    if (!this.recipients.delete(reader)) return;
    if (reader.wantsHeartbeat && --this.#wanted === 0) {
      this.#options.clock.clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    if (this.recipients.size === 0) this.fanOut.forget(this);
  }

  passEnds(hasGrown: boolean): void {
    this.views.passEnds();
    this.groups.clear();
    this.content.trim(hasGrown ? this.#keepFrom : Infinity);
    // The next pass sends them to every watch that has room.
    this.#keepFrom = hasGrown ? this.content.log.head : 0;
  }

  interrupted(isNewHistory: boolean): () => void {
    const ending = Array.from(this.recipients).filter((reader) => isNewHistory || reader.endsAtRelist);
    for (const reader of ending) reader.flush();
    return () => {
      for (const reader of ending) if (this.recipients.has(reader)) reader.cut();
    };
  }

  grown(): boolean {
    if (this.recipients.size === 0) return false;
    // All watches are about to read the same entries.
    this.views.isPass = true;
    this.fanOut.grown(this);
    return true;
  }

  /** Caches above learn it at once, or their ages would add up. */
  heard(): void {
    if (this.#wanted === 0) return;
    const nowMs = monotonicNow(this.#options.clock);
    if (nowMs - this.#heardMs < HEARD_MS) return;
    this.#heardMs = nowMs;
    for (const reader of this.recipients) {
      if (reader.wantsHeartbeat && reader.endsAtRelist) reader.heartbeat();
    }
  }

  forget(entry: LogEntry<T>): void {
    this.views.forget(entry);
  }

  trimmed(tail: number): void {
    for (const reader of Array.from(this.recipients)) if (reader.cursor < tail) reader.cut();
  }

  /** Ends each watch after what there is for it. */
  end(): void {
    for (const reader of Array.from(this.recipients)) reader.end();
  }

  #schedule(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      for (const reader of this.recipients) if (reader.wantsHeartbeat) reader.heartbeat();
      if (this.#wanted > 0 && this.#timer === undefined) this.#schedule();
    }, this.#options.heartbeatMs);
  }
}
