/**
 * The state of the page as a stream of server-sent events.
 * @module
 */

import { onAbort } from "../../util/abort.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { ChangeFeed } from "./change_feed.ts";
import type { DashboardMessage, DashboardState } from "./dashboard_state.ts";

/** Options of {@linkcode StateStream}. */
export interface StateStreamOptions {
  /** The state as it is now; called at most twice a second, and only while somebody looks. */
  readonly state: () => DashboardState;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  /** Ends every stream, and every one that is opened later. */
  readonly signal: AbortSignal;
  /** Told when the state cannot be made; pages are sent nothing then. Nobody by default. */
  readonly onError?: (error: unknown) => void;
}

/** The most often that a page is sent something. */
const TICK_MS = 500;
/** The least often: silence for longer means that the connection is lost. The page's script knows this number. */
export const HEARTBEAT_MS = 5_000;
/** How long a page may leave everything unread before it is let go. */
const STALLED_MS = 60_000;

interface Page {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** The last entry of the feed that it was sent. */
  seq: number;
  /** Whether something was not sent to it, as it did not read. */
  isBehind: boolean;
  readMs: number;
}

/**
 * Sends the state to any number of pages: whole, when something changed, and with the lines of the feed that the page
 * does not have. Nothing is queued for a page that does not read: it gets the latest state when it reads again. No
 * timer runs while no page is open.
 */
export class StateStream {
  readonly #options: StateStreamOptions;
  readonly #pages = new Set<Page>();
  readonly #encoder = new TextEncoder();
  #timer: TimerHandle | undefined;
  #isDirty = true;
  #sentMs = 0;

  /** Makes a stream that nobody looks at yet. */
  constructor(options: StateStreamOptions) {
    this.#options = options;
    onAbort(options.signal, () => {
      for (const page of this.#pages) this.#close(page);
    });
  }

  /** How many pages are open. */
  get size(): number {
    return this.#pages.size;
  }

  /** Says that the state is another one now. */
  changed(): void {
    this.#isDirty = true;
  }

  /** What a page is sent that has the feed up to `seq`. */
  message(seq: number = 0): DashboardMessage {
    return { ...this.#options.state(), changes: this.#options.feed.since(seq) };
  }

  /** Opens the stream of one page; its first event comes at once. */
  open(): ReadableStream<Uint8Array> {
    let page: Page | undefined;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        page = { controller, seq: 0, isBehind: false, readMs: monotonicNow(this.#options.clock) };
        this.#pages.add(page);
        if (this.#options.signal.aborted) return this.#close(page);
        controller.enqueue(this.#encoder.encode("retry: 1000\n\n"));
        this.#send(page, this.#state());
        this.#timer ??= this.#options.clock.setTimeout(() => this.#tick(), TICK_MS);
      },
      cancel: () => {
        if (page !== undefined) this.#forget(page);
      },
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
      if (!isDue && !page.isBehind) continue;
      page.isBehind = (page.controller.desiredSize ?? 0) <= 0;
      if (!page.isBehind) {
        page.readMs = nowMs;
        state ??= this.#state();
        this.#send(page, state);
      } else if (nowMs - page.readMs > STALLED_MS) {
        this.#close(page);
      }
    }
  }

  /** A state that cannot be made must not end the program: a timer asks for it. */
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
    // JSON has no line ends of its own, so it is one line of an event.
    page.controller.enqueue(this.#encoder.encode(`data: ${JSON.stringify(message)}\n\n`));
  }

  #close(page: Page): void {
    this.#forget(page);
    page.controller.close();
  }

  #forget(page: Page): void {
    this.#pages.delete(page);
    if (this.#pages.size > 0 || this.#timer === undefined) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
