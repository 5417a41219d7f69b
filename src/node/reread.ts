import { type Clock, monotonicNow } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";

const FRESH_MS = 60_000;

export interface RereadOptions<V> {
  /** The name of the value in log lines: `token`. */
  readonly what: string;
  /** The value that is used until a read succeeds. */
  readonly value?: V | undefined;
  /** Whether `value` was read just now. */
  readonly isFresh?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * A value that is read again, at most about once a minute. When a read fails, as in the middle of a rotation,
 * the last value stays in use; why is logged once.
 *
 * Mirrors client-go's cached file token source:
 * https://github.com/kubernetes/client-go/blob/master/transport/token_source.go
 */
export class Reread<V> {
  readonly #load: () => Promise<V>;
  readonly #options: RereadOptions<V>;
  readonly #logger: Logger;
  #value: V | undefined;
  #readMs = -Infinity;
  #reading: Promise<V> | undefined;
  #warned = "";

  constructor(load: () => Promise<V>, options: RereadOptions<V>) {
    this.#load = load;
    this.#options = options;
    this.#logger = guardedLogger(options.logger);
    this.#value = options.value;
    if (options.isFresh) this.#readMs = monotonicNow(options.clock);
  }

  /**
   * Returns the value.
   *
   * @throws The error of the read, if there is no value yet.
   */
  async read(): Promise<V> {
    const isFresh = monotonicNow(this.#options.clock) - this.#readMs < FRESH_MS;
    if (isFresh && this.#value !== undefined) return this.#value;
    return await (this.#reading ??= this.#read().finally(() => this.#reading = undefined));
  }

  /** Makes the next call read, if this value is in use: for a server that refused it. */
  forget(refused: V | undefined = this.#value): void {
    if (refused === this.#value) this.#readMs = -Infinity;
  }

  async #read(): Promise<V> {
    try {
      this.#value = await this.#load();
      this.#readMs = monotonicNow(this.#options.clock);
      this.#warned = "";
    } catch (error) {
      if (this.#value === undefined) throw error;
      const text = `${errorMessage(error)}; the last ${this.#options.what} stays in use`;
      if (text !== this.#warned) this.#logger.warn(text);
      this.#warned = text;
    }
    return this.#value;
  }
}
