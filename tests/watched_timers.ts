import { realClock } from "../src/util/clock.ts";

/** The timers of the real clock that are pending, with their delays, until the end of the block. */
export function watchedTimers(): {
  readonly pending: ReadonlyMap<unknown, number>;
  [Symbol.dispose](): void;
} {
  const { setTimeout, clearTimeout } = realClock;
  const pending = new Map<unknown, number>();
  Object.assign(realClock, {
    setTimeout(callback: () => void, ms: number) {
      const timer = setTimeout(() => {
        pending.delete(timer);
        callback();
      }, ms);
      pending.set(timer, ms);
      return timer;
    },
    clearTimeout(timer: unknown) {
      pending.delete(timer);
      clearTimeout(timer);
    },
  });
  return { pending, [Symbol.dispose]: () => void Object.assign(realClock, { setTimeout, clearTimeout }) };
}
