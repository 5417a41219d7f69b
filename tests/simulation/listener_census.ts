/**
 * Who listens to which abort signal, in the whole world.
 * @module
 */

type Method = AbortSignal["addEventListener"];

/**
 * Counts the listeners of every abort signal, also of those that the library makes for itself: one that lives as long
 * as an informer must not collect a listener with each list, watch or wait.
 */
export class ListenerCensus {
  readonly #listeners = new Map<AbortSignal, Set<unknown>>();

  /** Begins to count. */
  constructor() {
    const listeners = this.#listeners;
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    const prototype = AbortSignal.prototype;
    prototype.addEventListener = function (this: AbortSignal, ...args: Parameters<Method>): void {
      let set = listeners.get(this);
      if (set === undefined) listeners.set(this, set = new Set());
      set.add(args[1]);
      addEventListener.apply(this, args as Parameters<EventTarget["addEventListener"]>);
    } as Method;
    prototype.removeEventListener = function (this: AbortSignal, ...args: Parameters<Method>): void {
      const set = listeners.get(this);
      if (set?.delete(args[1]) && set.size === 0) listeners.delete(this);
      removeEventListener.apply(this, args as Parameters<EventTarget["removeEventListener"]>);
    } as AbortSignal["removeEventListener"];
  }

  /** How many listen to the signal that most listen to. */
  get most(): number {
    let most = 0;
    for (const [signal, set] of this.#listeners) {
      if (signal.aborted) this.#listeners.delete(signal); // they have heard of it
      else most = Math.max(most, set.size);
    }
    return most;
  }

  /** Ends counting. */
  dispose(): void {
    const prototype = AbortSignal.prototype as Partial<AbortSignal>;
    delete prototype.addEventListener;
    delete prototype.removeEventListener;
  }
}
