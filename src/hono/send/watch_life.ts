/** The maximum life of a watch. */

import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { Permission, UserInfo } from "../request/gate.ts";
import { isStatus } from "../../protocol/statuses.ts";

export interface WatchLifeOptions {
  readonly clock: Clock;
  readonly permission: Permission;
  readonly limitMs: number;
  readonly recheckMs: number;
}

/** A watch, as its life sees it. */
export interface Mortal {
  readonly wantsHeartbeat: boolean;
  /** The watch's time is nearly over: show the reader how far it has come. */
  heartbeat(): void;
  /** The watch's time is over: send the remaining events, then end. */
  end(): void;
  /** The reader may see nothing more. */
  stop(): void;
}

// A watch that is so short is opened for its bookmark, which comes first here. kube-apiserver sends it 2 s
// before the end:
// https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go
const SHORT_MS = 3_000;

// The time until hooks that were too busy to decide are called again.
const BUSY_MS = 5_000;

// Before the end of a credential: time for the hooks to look for its successor.
const MARGIN_MS = 10_000;

/** Ends a watch when its time is over, or its permission is. One timer at a time. */
export class WatchLife {
  readonly #watch: Mortal;
  readonly #clock: Clock;
  readonly #recheckMs: number;
  /** `undefined` if the permission lasts for the whole life: it keeps the request, which is large. */
  readonly #renew: Permission["renew"] | undefined;
  readonly #endMs: number;
  #user: UserInfo | undefined;
  /** When the credential ends, by the wall clock: no piece may be sent after that. */
  expiresAtMs: number = Infinity;
  #nextCheckMs: number;
  #bookmarkMs: number;
  #timer: TimerHandle | undefined;
  #isClosed = false;

  constructor(watch: Mortal, options: WatchLifeOptions) {
    this.#watch = watch;
    const { clock, limitMs, recheckMs, permission } = options;
    this.#clock = clock;
    this.#recheckMs = recheckMs;
    this.#endMs = monotonicNow(clock) + limitMs;
    this.#belongTo(permission.user);
    const isLasting = recheckMs === Infinity && this.expiresAtMs === Infinity;
    this.#renew = isLasting ? undefined : permission.renew;
    this.#nextCheckMs = monotonicNow(clock) + this.#checkDelayMs();
    const isShort = watch.wantsHeartbeat && options.limitMs <= SHORT_MS;
    this.#bookmarkMs = isShort ? this.#endMs - options.limitMs : Infinity;
    this.#schedule();
  }

  get user(): UserInfo | undefined {
    return this.#user;
  }

  #belongTo(user: UserInfo | undefined): void {
    this.#user = user;
    this.expiresAtMs = user?.expiresAtMs ?? Infinity;
  }

  close(): void {
    this.#isClosed = true;
    this.#clearTimer();
  }

  #clearTimer(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #remainingMs(): number {
    return this.expiresAtMs - this.#clock.now();
  }

  #checkDelayMs(): number {
    const remainingMs = this.#remainingMs();
    return Math.min(this.#recheckMs, Math.max(remainingMs - MARGIN_MS, remainingMs / 2));
  }

  #schedule(): void {
    const clock = this.#clock;
    const nowMs = monotonicNow(clock);
    const nextMs = Math.min(this.#endMs, this.#nextCheckMs, this.#bookmarkMs);
    const waitMs = Math.min(nextMs - nowMs, this.#remainingMs());
    if (waitMs < Infinity) this.#timer = clock.setTimeout(() => this.#onTimer(), Math.max(0, waitMs));
  }

  #onTimer(): void {
    this.#timer = undefined;
    const nowMs = monotonicNow(this.#clock);
    if (this.#remainingMs() <= 0) return this.#watch.stop();
    if (nowMs >= this.#endMs) return this.#watch.end();
    if (nowMs >= this.#bookmarkMs) {
      this.#bookmarkMs = Infinity;
      this.#watch.heartbeat();
      if (this.#isClosed) return;
    }
    if (nowMs >= this.#nextCheckMs) {
      // There is no next check until the hooks answer, which have their own time limit.
      this.#nextCheckMs = Infinity;
      this.#check();
    }
    this.#schedule();
  }

  async #check(): Promise<void> {
    const known = this.#user;
    const answer = await this.#renew?.();
    if (this.#isClosed || answer === undefined) return;
    // A hook with too much to do ends no watch.
    if (isStatus(answer) && answer.code === 429) return this.#checkAgain(BUSY_MS);
    // A watch belongs to one user.
    if (isStatus(answer) || answer.user?.name !== known?.name) return this.#watch.stop();
    this.#belongTo(answer.user);
    // A credential without a successor is good until its end, which needs no further question.
    const isSame = known?.expiresAtMs !== undefined && answer.user?.expiresAtMs === known.expiresAtMs &&
      this.#remainingMs() <= MARGIN_MS;
    this.#checkAgain(isSame ? Infinity : this.#checkDelayMs());
  }

  #checkAgain(delayMs: number): void {
    this.#clearTimer();
    this.#nextCheckMs = monotonicNow(this.#clock) + delayMs;
    this.#schedule();
  }
}
