/** Sends the state of the page as server-sent events. */

import type { Permission, UserInfo } from "../../hono/request/gate.ts";
import type { OpenWatch, Reader, Readers } from "../../hono/request/readers.ts";
import { type Mortal, WatchLife } from "../../hono/send/watch_life.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
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
class Page implements OpenWatch, Mortal {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
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
    controller: ReadableStreamDefaultController<Uint8Array>,
    watch: PageWatch,
    { clock, onClose }: { readonly clock: Clock; readonly onClose: (page: Page) => void },
  ) {
    this.controller = controller;
    this.readMs = monotonicNow(clock);
    this.#watch = watch;
    this.#onClose = onClose;
    this.#life = new WatchLife(this, { ...watch, clock });
    watch.reader.keep();
    watch.readers.watches.add(this);
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
    if (this.#isOpen) this.controller.close();
    this.gone();
  }

  gone(): void {
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
  readonly #encoder = new TextEncoder();
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
  open(watch: PageWatch): ReadableStream<Uint8Array> {
    const { clock } = this.#options;
    let page: Page | undefined;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        page = new Page(controller, watch, { clock, onClose: (page) => this.#forget(page) });
        this.#pages.add(page);
        controller.enqueue(this.#encoder.encode("retry: 1000\n\n"));
        this.#send(page, this.#state());
        this.#timer ??= clock.setTimeout(() => this.#tick(), TICK_MS);
      },
      cancel: () => page?.gone(),
    }, { highWaterMark: 4 });
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
      page.isBehind = (page.controller.desiredSize ?? 0) <= 0;
      if (!page.isBehind) {
        page.readMs = nowMs;
        state ??= this.#state();
        this.#send(page, state);
      } else if (nowMs - page.readMs > STALLED_MS) {
        page.stop();
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
    page.controller.enqueue(this.#encoder.encode(`data: ${JSON.stringify(message)}\n\n`));
  }

  #forget(page: Page): void {
    this.#pages.delete(page);
    if (this.#pages.size > 0 || this.#timer === undefined) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
