/**
 * A resource that another server of Kubernetes' protocol holds.
 * @module
 */

import { newStatus, type Status } from "../../meta/status.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { resourceDetails } from "../../protocol/statuses.ts";
import { abortable, withTimeLimit } from "../../util/abort.ts";
import { concatenated } from "../../util/concatenated.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import type { ReadApiRemote, RemoteFetch } from "../read_api_options.ts";
import { KnownTags } from "./known_tags.ts";
import type { RemoteBody } from "./remote_body.ts";
import { answerInTime, type AnswerLimit } from "../upstream/answer_in_time.ts";

/** What all remote resources of an adapter share. */
export interface RemoteContext {
  readonly clock: Clock;
  readonly logger: Logger;
}

// Longer than a read waits for a resourceVersion by default.
const DEFAULT_TIMEOUT_MS = 10_000;

/** A resource that is served from a remote. */
export class RemoteResource {
  readonly resource: ApiResource;
  readonly fetch: RemoteFetch;
  /** How long the remote may take to begin its answer, and between two pieces of it. */
  readonly timeoutMs: number;
  /** How old a tag may be for a read without a resourceVersion. */
  readonly maxStaleMs: number;
  readonly tags: KnownTags = new KnownTags();
  /** The open watches. */
  readonly watches: Set<RemoteBody> = new Set();
  /** What the last answer has said of its age. */
  lag: { readonly ageMs: number; readonly atMs: number } | undefined;
  readonly #context: RemoteContext;

  /** @param resource Described. */
  constructor(resource: ApiResource, options: ReadApiRemote, context: RemoteContext) {
    this.resource = resource;
    this.fetch = options.fetch;
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.maxStaleMs = options.maxStaleMs ?? 0;
    this.#context = context;
  }

  /** How old the content was when it was last seen, and the time since; `undefined` if that is not known. */
  get lagMs(): number | undefined {
    return this.lag && this.lag.ageMs + monotonicNow(this.#context.clock) - this.lag.atMs;
  }

  /** Ends all watches. */
  close(): void {
    for (const watch of Array.from(this.watches)) watch.close();
  }

  /** Sends a request; the Status of one that is not answered in time. */
  async ask(request: Request, signal: AbortSignal): Promise<Response | Status> {
    return await this.#orStatus(
      signal,
      (limit) => answerInTime((signal) => this.fetch(new Request(request, { signal })), limit),
    );
  }

  /** The first bytes of an answer, at least two if it has them; the Status of one that does not begin in time. */
  async begin(
    source: ReadableStreamDefaultReader<Uint8Array>,
    signal: AbortSignal,
  ): Promise<Uint8Array | Status> {
    return await this.#orStatus(signal, async ({ timeoutMs, late, clock }) => {
      try {
        return await withTimeLimit((limit) => abortable(firstBytes(source), limit), {
          ms: timeoutMs,
          newError: () => late,
          clock,
          signal,
        });
      } catch (error) {
        source.cancel().catch(() => {});
        throw error;
      }
    });
  }

  async #orStatus<T>(signal: AbortSignal, run: (limit: AnswerLimit) => Promise<T>): Promise<T | Status> {
    const { clock } = this.#context;
    const { timeoutMs } = this;
    const late = new Error(`no answer within ${timeoutMs} ms`);
    try {
      return await run({ timeoutMs, late, clock, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      return error === late ? this.#timeout() : this.unavailable(errorMessage(error), error);
    }
  }

  /** 503: the remote is away. */
  unavailable(why: string, error?: unknown): Status {
    this.#warn(why, error);
    const what = formatGroupResource(this.resource);
    return newStatus(503, "ServiceUnavailable", `the server that holds ${what} cannot be reached`, {
      ...resourceDetails(this.resource),
      retryAfterSeconds: 1,
    });
  }

  /** 502: the remote has answered something that it must not answer. */
  nonsense(why: string): Status {
    this.#warn(why);
    const what = formatGroupResource(this.resource);
    return newStatus(502, "InternalError", `the server that holds ${what} gave no answer that can be used`, {
      ...resourceDetails(this.resource),
    });
  }

  #timeout(): Status {
    this.#warn(`no answer within ${this.timeoutMs} ms`);
    const what = formatGroupResource(this.resource);
    return newStatus(504, "Timeout", `Timeout: the server that holds ${what} did not answer in time`, {
      ...resourceDetails(this.resource),
      retryAfterSeconds: 1,
    });
  }

  #warn(why: string, error?: unknown): void {
    const what = formatGroupResource(this.resource);
    this.#context.logger.warn(`cannot read ${what} from its remote: ${why}`, { error });
  }
}

async function firstBytes(source: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array> {
  let bytes = new Uint8Array(0);
  while (bytes.byteLength < 2) {
    const { done, value } = await source.read();
    if (done) break;
    bytes = concatenated([bytes, value], bytes.byteLength + value.byteLength);
  }
  return bytes;
}
