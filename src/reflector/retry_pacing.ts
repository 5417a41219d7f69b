/** The delays after failures. */

import { isExpired, statusErrorOf } from "../meta/status.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";

/**
 * Delays that grow.
 *
 * @category Reflector
 */
export interface RetryBackoff {
  /** The delay before the next try, in milliseconds. */
  nextDelayMs(): number;
  /** Starts again at the first delay; called after two minutes of health. */
  reset?(): void;
}

const HEALTH_RESETS_AFTER_MS = 120_000;
const EXPIRED_MS = 800;
/** Where a server asks for more, requests are repeated every ten minutes: it may be wrong by days. */
const LONGEST_ASKED_MS = 600_000;
// A list in pages may bring the very version that expired, and only the next one something newer.
const SOON_EXPIRIES = 3;

/**
 * Paces the tries of a reflector: delays grow until it has been healthy - following the server on an open
 * watch - for two minutes on end. A try alone resets nothing, so a server that accepts and then fails is not
 * hammered. What the server asks for (`Retry-After`) is waited for, up to ten minutes, and spread so that
 * many clients do not come back at once. A server that says that a resourceVersion expired is well, and waits
 * for a list: that comes soon, however long the delays have grown, unless it says so again and again.
 */
export class RetryPacing {
  readonly #backoff: RetryBackoff;
  readonly #clock: Clock;
  readonly #random: () => number;
  #healthySinceMs: number | undefined;
  #expiries = 0;

  constructor(backoff: RetryBackoff, options: { readonly clock: Clock; readonly random: () => number }) {
    this.#backoff = backoff;
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** A watch is open. */
  healthy(): void {
    this.#healthySinceMs ??= monotonicNow(this.#clock);
  }

  /** The delay after a failure, in milliseconds. */
  delayAfter(error: unknown): number {
    const healthyMs = this.#healthySinceMs === undefined
      ? 0
      : monotonicNow(this.#clock) - this.#healthySinceMs;
    this.#healthySinceMs = undefined;
    if (healthyMs >= HEALTH_RESETS_AFTER_MS) {
      this.#backoff.reset?.();
      this.#expiries = 0;
    }
    const delayMs = this.#backoff.nextDelayMs();
    this.#expiries = isExpired(error) ? this.#expiries + 1 : 0;
    if (this.#expiries > 0 && this.#expiries <= SOON_EXPIRIES) {
      return Math.min(delayMs, EXPIRED_MS * (1 + this.#random()));
    }
    const askedMs = statusErrorOf(error)?.retryAfterMs;
    if (askedMs === undefined) return delayMs;
    return Math.max(delayMs, Math.min(askedMs, LONGEST_ASKED_MS) + this.#random() * delayMs);
  }
}
