/**
 * The listeners of each abort signal in the whole world.
 * @module
 */

type Method = AbortSignal["addEventListener"];

/** The running census; one world runs at a time. */
let present: ListenerCensus | undefined;
let isInstalled = false;

/**
 * Counts the listeners of every abort signal, also of those that the library makes for itself: one that lives
 * as long as an informer must not collect a listener with each list, watch or wait.
 */
export class ListenerCensus {
  readonly #listeners = new Map<EventTarget, Set<unknown>>();

  /** Starts counting. */
  constructor() {
    install();
    present = this;
  }

  /** A listener is added. */
  add(signal: EventTarget, listener: unknown): void {
    let set = this.#listeners.get(signal);
    if (set === undefined) this.#listeners.set(signal, set = new Set());
    set.add(listener);
  }

  /** A listener is removed. */
  remove(signal: EventTarget, listener: unknown): void {
    const set = this.#listeners.get(signal);
    if (set?.delete(listener) && set.size === 0) this.#listeners.delete(signal);
  }

  /** The largest number of listeners on one signal. */
  get most(): number {
    let most = 0;
    for (const [signal, set] of this.#listeners) {
      if ((signal as AbortSignal).aborted) this.#listeners.delete(signal); // its listeners were called
      else most = Math.max(most, set.size);
    }
    return most;
  }

  /** Stops counting. */
  dispose(): void {
    present = undefined;
  }
}

/** Once for all worlds: the engine discards compiled code when a prototype changes. */
function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const prototype = AbortSignal.prototype;
  prototype.addEventListener = function (this: AbortSignal, ...args: Parameters<Method>): void {
    present?.add(this, args[1]);
    addEventListener.apply(this, args as Parameters<EventTarget["addEventListener"]>);
  } as Method;
  prototype.removeEventListener = function (this: AbortSignal, ...args: Parameters<Method>): void {
    present?.remove(this, args[1]);
    removeEventListener.apply(this, args as Parameters<EventTarget["removeEventListener"]>);
  } as AbortSignal["removeEventListener"];
}
