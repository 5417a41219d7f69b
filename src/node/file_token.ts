/**
 * A bearer token in a file that is replaced from time to time.
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
 * Reads a token file, at most about once a minute. When a read fails, the last token stays in use.
 *
 * Mirrors client-go's cached file token source: https://github.com/kubernetes/client-go/blob/master/transport/token_source.go
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
   * Returns the token.
   *
   * @throws {KubeconfigError} The file cannot be read or holds no valid token, and no token was read before.
   */
  async read(): Promise<string> {
    if (this.#token !== undefined && monotonicNow(this.#clock) - this.#readMs < FRESH_MS) return this.#token;
    try {
      const token = (await readFile(this.#path, "utf8")).trim();
      if (token === "") throw new Error("the file is empty");
      const fault = tokenFault(token);
      if (fault !== undefined) throw new Error(`it holds no valid token: ${fault}`);
      this.#token = token;
      this.#readMs = monotonicNow(this.#clock);
    } catch (error) {
      const text = `Cannot read the token file ${this.#path}: ${errorMessage(error)}`;
      if (this.#token === undefined) throw new KubeconfigError(text, { cause: error });
      this.#logger.warn(`${text}; the last token stays in use`);
    }
    return this.#token;
  }

  /** Makes the next call read the file; for a server that refused the token. */
  forget(): void {
    this.#readMs = -Infinity;
  }
}
