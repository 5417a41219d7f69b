/** A computer in a test: its clock has a speed of its own, it freezes and wakes up, and its network fails. */

import type { Clock } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import type { FakeClock } from "@listwatch/cache/testing";

/** A clock and a network of one process. */
export class Computer implements Clock {
  readonly name: string;
  readonly random: () => number;
  /** `slow`: answers take seconds, and some never come. */
  network: "good" | "slow" | "away" = "good";
  /** How long answers of a good network take. */
  answerDelayMs = 0;
  /** How far its wall clock was set forward. */
  wallAheadMs = 0;
  readonly #time: FakeClock;
  readonly #speed: number;
  readonly #startMs: number;
  #held: (() => void)[] | undefined;

  constructor(
    name: string,
    time: FakeClock,
    { speed, random }: { readonly speed: number; readonly random: () => number },
  ) {
    this.name = name;
    this.#time = time;
    this.#speed = speed;
    this.#startMs = time.monotonicNow();
    this.random = random;
  }

  get isFrozen(): boolean {
    return this.#held !== undefined;
  }

  now(): number {
    return this.#startMs + this.monotonicNow() + this.wallAheadMs;
  }

  monotonicNow(): number {
    return (this.#time.monotonicNow() - this.#startMs) * this.#speed;
  }

  setTimeout(callback: () => void, ms: number): unknown {
    const timer: { handle: unknown; isCleared: boolean } = { handle: undefined, isCleared: false };
    const run = () => {
      if (!timer.isCleared) callback();
    };
    timer.handle = this.#time.setTimeout(() => this.#whenAwake(run), ms / this.#speed);
    return timer;
  }

  clearTimeout(handle: unknown): void {
    const timer = handle as { handle: unknown; isCleared: boolean } | undefined;
    if (timer === undefined) return;
    timer.isCleared = true;
    this.#time.clearTimeout(timer.handle);
  }

  /** Nothing runs any more; time goes by. */
  freeze(): void {
    this.#held ??= [];
  }

  /** What was due runs soon, one after another; other code of the process may run before it. */
  thaw(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    queueMicrotask(() => held.forEach((run) => run()));
  }

  /** Asks over this computer's network. */
  async fetch(server: FetchFunction, url: string, init?: RequestInit): Promise<Response> {
    await this.#awake();
    if (this.network === "away") throw new TypeError("the network is away");
    if (this.network === "slow") {
      await this.#pause(this.random() * 6_000, init?.signal);
      if (this.random() < 0.2) {
        await server(url, init); // the request was served, and its answer is lost
        await this.#pause(Infinity, init?.signal);
      }
    }
    const delayMs = this.network === "slow" ? this.random() * 8_000 : this.answerDelayMs;
    const response = await server(url, init);
    if (delayMs > 0) await this.#pause(delayMs, init?.signal);
    await this.#awake();
    return response;
  }

  #whenAwake(run: () => void): void {
    if (this.#held === undefined) run();
    else this.#held.push(run);
  }

  #awake(): Promise<void> {
    return new Promise((resolve) => this.#whenAwake(resolve));
  }

  #pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = ms === Infinity ? undefined : this.#time.setTimeout(() => this.#whenAwake(resolve), ms);
      const abort = () => {
        this.#time.clearTimeout(timer);
        reject(signal?.reason);
      };
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }
}
