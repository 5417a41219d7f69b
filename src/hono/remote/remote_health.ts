/**
 * Whether remotes are ready.
 * @module
 */

import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { RemoteFetch } from "../read_api_options.ts";
import { answerInTime } from "../upstream/answer_in_time.ts";

const TIMEOUT_MS = 3_000;
// For the probes of several load balancers.
const KEPT_MS = 1_000;

interface Known {
  readonly problem: string | undefined;
  readonly askedMs: number;
}

/** Requests the `/readyz` of remotes. */
export class RemoteHealth {
  readonly #clock: Clock;
  /** By the remote's `fetch`. Answers only: in Workers no request may wait for another one's. */
  readonly #known = new WeakMap<RemoteFetch, Known>();

  /** @param clock Where time comes from. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why a remote is not ready; `undefined` if it is. */
  async unreadiness(fetch: RemoteFetch): Promise<string | undefined> {
    const askedMs = monotonicNow(this.#clock);
    const known = this.#known.get(fetch);
    if (known !== undefined && askedMs - known.askedMs < KEPT_MS) return known.problem;
    const problem = await this.#ask(fetch);
    this.#known.set(fetch, { problem, askedMs });
    return problem;
  }

  async #ask(fetch: RemoteFetch): Promise<string | undefined> {
    const late = new Error(`no answer within ${TIMEOUT_MS} ms`);
    try {
      const request = new Request("http://remote.invalid/readyz");
      const { status, body } = await answerInTime((signal) => fetch(new Request(request, { signal })), {
        timeoutMs: TIMEOUT_MS,
        late,
        clock: this.#clock,
      });
      body?.cancel().catch(() => {});
      return status === 200 ? undefined : `its remote answered ${status}`;
    } catch (error) {
      return `its remote cannot be reached: ${errorMessage(error)}`;
    }
  }
}
