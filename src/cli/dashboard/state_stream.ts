/** Sends the state of the page as server-sent events. */

import type { Permission, UserInfo } from "../../hono/request/gate.ts";
import {
  newSpentError,
  newStalledError,
  type OpenWatch,
  type Reader,
  type Readers,
} from "../../hono/request/readers.ts";
import { Outlet, type OutletUser } from "../../hono/send/outlet.ts";
import { type Mortal, WatchLife } from "../../hono/send/watch_life.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { PushedBody } from "../../util/serving.ts";
import type { ChangeFeed } from "./change_feed.ts";
import type { DashboardMessage, DashboardState } from "./dashboard_message.ts";

export interface StateStreamOptions {
  /** Returns the present state; called at most twice a second, and only while a page is open. */
  readonly state: () => DashboardState;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  /** Receives the error when the state cannot be computed; pages receive no message then. */
  readonly onError?: (error: unknown) => void;
}

const TICK_MS = 500;
/** The longest time between two messages: after more, the page's script treats the connection as lost. */
export const HEARTBEAT_MS = 5_000;
/** The time after which a page that reads nothing is disconnected. */
const STALLED_MS = 60_000;

export interface PageWatch {
  readonly permission: Permission;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Ends the stream after this time. */
  readonly limitMs: number;
  readonly recheckMs: number;
}

/** The stream of one page: a watch, as far as readers and their permissions are concerned. */
class Page implements OpenWatch, Mortal, OutletUser {
  readonly #outlet: Outlet;
  readonly #life: WatchLife;
  readonly #watch: PageWatch;
  readonly #onClose: (page: Page) => void;
  readonly wantsHeartbeat = false;
  /** The last entry of the feed that was sent to it. */
  seq = 0;
  /** Whether it missed a message, as it did not read. */
  isBehind = false;
  readMs: number;
  #isOpen = true;

  constructor(
    watch: PageWatch,
    { clock, onClose }: { readonly clock: Clock; readonly onClose: (page: Page) => void },
  ) {
    this.#outlet = new Outlet(this);
    this.readMs = monotonicNow(clock);
    this.#watch = watch;
    this.#onClose = onClose;
    this.#life = new WatchLife(this, { ...watch, clock });
    watch.reader.keep();
    watch.reader.onSpent = () => this.disconnect(newSpentError("page"));
    watch.readers.watches.add(this);
  }

  /** What is sent, as a stream; to be taken once. */
  takeBody(): PushedBody {
    return this.#outlet.takeBody();
  }

  /** Whether it has read what was sent. */
  get hasRead(): boolean {
    return this.#outlet.queuedBytes === 0;
  }

  send(text: string): void {
    if (this.#isOpen) this.#outlet.write(encodeUtf8(text));
  }

  onQueued(bytes: number): void {
    const { reader } = this.#watch;
    if (bytes < 0) reader.give(-bytes);
    else if (!reader.take(bytes)) this.disconnect(newSpentError("page"));
  }

  get user(): UserInfo | undefined {
    return this.#life.user;
  }

  /** Whether the credential of its reader has ended. */
  get isOver(): boolean {
    return this.#life.isOver;
  }

  heartbeat(): void {}

  end(): void {
    this.stop();
  }

  stop(): void {
    if (this.#isOpen) this.#outlet.close();
    this.onGone();
  }

  /** Breaks it off; what waits is dropped. */
  disconnect(reason: Error): void {
    if (!this.#isOpen) return;
    this.onGone();
    this.#outlet.error(reason);
  }

  onGone(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#life.close();
    this.#watch.readers.watches.delete(this);
    this.#watch.reader.release();
    this.#onClose(this);
  }
}

/**
 * Sends the whole state to any number of pages when it has changed, with the lines of the feed that the page
 * does not have. No messages are queued for a page that does not read: it receives the latest state when it
 * reads again. No timer runs while no page is open.
 */
export class StateStream {
  readonly #options: StateStreamOptions;
  readonly #pages = new Set<Page>();
  #timer: TimerHandle | undefined;
  #isDirty = true;
  #sentMs = 0;

  constructor(options: StateStreamOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#pages.size;
  }

  changed(): void {
    this.#isDirty = true;
  }

  /** The message for a page that has the feed up to `seq`. */
  message(seq: number = 0): DashboardMessage {
    return { ...this.#options.state(), changes: this.#options.feed.since(seq) };
  }

  /** Opens the stream of one page, with its first message. It ends as the watches of its reader do. */
  open(watch: PageWatch): PushedBody {
    const { clock } = this.#options;
    const page = new Page(watch, { clock, onClose: (page) => this.#forget(page) });
    const body = page.takeBody();
    this.#pages.add(page);
    this.#timer ??= clock.setTimeout(() => this.#tick(), TICK_MS);
    page.send("retry: 1000\n\n");
    this.#send(page, this.#state());
    return body;
  }

  #tick(): void {
    this.#timer = this.#options.clock.setTimeout(() => this.#tick(), TICK_MS);
    const nowMs = monotonicNow(this.#options.clock);
    const isDue = this.#isDirty || nowMs - this.#sentMs >= HEARTBEAT_MS;
    if (isDue) {
      this.#isDirty = false;
      this.#sentMs = nowMs;
    }
    let state: DashboardState | undefined;
    for (const page of this.#pages) {
      if (page.isOver) {
        page.stop();
        continue;
      }
      if (!isDue && !page.isBehind) continue;
      page.isBehind = !page.hasRead;
      if (!page.isBehind) {
        page.readMs = nowMs;
        state ??= this.#state();
        this.#send(page, state);
      } else if (nowMs - page.readMs > STALLED_MS) {
        page.disconnect(newStalledError("page", STALLED_MS));
      }
    }
  }

  /**
   * Returns `undefined` if the state cannot be computed: a timer calls this, and must not end the process.
   */
  #state(): DashboardState | undefined {
    try {
      return this.#options.state();
    } catch (error) {
      this.#options.onError?.(error);
      return undefined;
    }
  }

  #send(page: Page, state: DashboardState | undefined): void {
    const { feed } = this.#options;
    if (state === undefined) return;
    const message: DashboardMessage = { ...state, changes: feed.since(page.seq) };
    page.seq = feed.lastSeq;
    // JSON.stringify makes no line ends, so it is one line of an event.
    page.send(`data: ${JSON.stringify(message)}\n\n`);
  }

  #forget(page: Page): void {
    this.#pages.delete(page);
    if (this.#pages.size > 0 || this.#timer === undefined) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
