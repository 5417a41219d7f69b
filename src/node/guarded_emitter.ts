import { EventEmitter } from "node:events";
import { callGuarded, errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";

/** Node's event emitter, in which a listener that throws ends nothing: errors that it throws are logged. */
export class GuardedEmitter extends EventEmitter {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    super();
    this.#logger = logger;
  }

  override emit(name: string, ...values: unknown[]): boolean {
    // Listeners of `once` are wrapped by functions that remove them.
    const listeners = this.rawListeners(name);
    for (const listener of listeners) {
      callGuarded(
        () => listener.apply(this, values),
        (error) => this.#logger.error(`a listener for "${name}" threw: ${errorMessage(error)}`, { error }),
      );
    }
    return listeners.length > 0;
  }
}
