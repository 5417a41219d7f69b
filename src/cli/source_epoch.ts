/**
 * The epoch of what a worker reads of its parent.
 * @module
 */

import type { FetchFunction } from "../client/rest_config.ts";
import { EPOCH_HEADER } from "../hono/answers/cache_headers.ts";

/**
 * Knows the one epoch of all answers about a resource. Workers of one parent with the same epoch make the same `ETag`s.
 *
 * From the first answer of another epoch on there is none: what the worker holds may be of the earlier one, or of both.
 * Such an answer arrives before its content is stored, so that no tag with the first epoch names a state of another one.
 */
export class SourceEpoch {
  #epoch: string | null | undefined;
  #isOne = true;

  /** `undefined` if there is none. */
  get value(): string | undefined {
    return this.#isOne ? this.#epoch ?? undefined : undefined;
  }

  /** A `fetch` that takes note of the epochs of answers. */
  noting(fetch: FetchFunction): FetchFunction {
    return async (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set(EPOCH_HEADER, "wanted");
      const response = await fetch(input, { ...init, headers });
      if (response.ok) this.#note(response.headers.get(EPOCH_HEADER));
      return response;
    };
  }

  #note(epoch: string | null): void {
    if (this.#epoch === undefined) this.#epoch = epoch;
    if (epoch === null || epoch !== this.#epoch) this.#isOne = false;
  }
}
