/**
 * A signal that counts its listeners.
 * @module
 */

/** An abort signal of which a test can ask how many listeners were left. */
export class CountingSignal {
  readonly #controller = new AbortController();
  readonly #listeners = new Set<unknown>();

  constructor() {
    const { signal } = this.#controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
      this.#listeners.add(listener);
      add(type, listener, options);
    };
    signal.removeEventListener = (type: string, listener: EventListener) => {
      this.#listeners.delete(listener);
      remove(type, listener);
    };
    add("abort", () => this.#listeners.clear()); // they are called once
  }

  /** The signal. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** How many listeners it has. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Aborts it. */
  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }
}
