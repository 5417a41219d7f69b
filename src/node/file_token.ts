/**
 * A bearer token in a file that is written anew now and then.
 * @module
 */

import { readFile } from "node:fs/promises";
import { tokenFault } from "../client/credentials.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import { KubeconfigError } from "./kubeconfig.ts";

const FRESH_MS = 60_000;

/**
 * Reads a token file, at most about once a minute. A read that fails keeps the token there is.
 *
 * Mirrors client-go's cached file token source.
 */
export class FileToken {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #token: string | undefined;
  #readMs = -Infinity;

  constructor(path: string, options: { readonly clock: Clock; readonly logger: Logger }) {
    this.#path = path;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /**
   * The token.
   *
   * @throws {KubeconfigError} The file cannot be read, or holds something else than one token, and there is no token yet.
   */
  async read(): Promise<string> {
    if (this.#token !== undefined && monotonicNow(this.#clock) - this.#readMs < FRESH_MS) return this.#token;
    try {
      const token = (await readFile(this.#path, "utf8")).trim();
      if (token === "") throw new Error("it is empty");
      const fault = tokenFault(token);
      if (fault !== undefined) throw new Error(`it holds no token: ${fault}`);
      this.#token = token;
      this.#readMs = monotonicNow(this.#clock);
    } catch (error) {
      const text = `Cannot read the token file ${this.#path}: ${errorMessage(error)}`;
      if (this.#token === undefined) throw new KubeconfigError(text, { cause: error });
      this.#logger.warn(`${text}; the token read before is used`);
    }
    return this.#token;
  }

  /** The token was refused: the next call reads the file. */
  forget(): void {
    this.#readMs = -Infinity;
  }
}
