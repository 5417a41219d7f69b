/** Authentication and authorization by the cluster, and its answers: TokenReview and SubjectAccessReview. */

import type { Context } from "hono";
import { newStatus, StatusError } from "../../meta/status.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { fromBase64 } from "../../util/bytes.ts";
import { type Clock, monotonicNow, realClock } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import { defined, isRecord, recordOf } from "../../util/json.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { clientAddress } from "./readers.ts";
import type { Authenticate, Authorize, RequestAttributes, UserInfo } from "./gate.ts";
import { bearerTokenOf, digestOf } from "./bearer_tokens.ts";

/** The part of a cluster that the hooks need: its `request`. Clusters of `newCluster` have it. */
export interface ReviewCluster {
  /** Sends a review, and gives the answer's JSON as a value. */
  request(
    path: string,
    options: {
      readonly method: string;
      readonly body: unknown;
      readonly action: string;
      readonly signal: AbortSignal;
    },
  ): Promise<unknown>;
}

/** Options of {@linkcode tokenReview} and {@linkcode subjectAccessReview}. */
export interface ReviewOptions {
  /**
   * How long a positive decision is cached; 60 s by default. A revoked permission stays valid for so long.
   */
  readonly allowedTtlMs?: number;
  /** How long a negative decision is cached; 10 s by default. */
  readonly deniedTtlMs?: number;
  /** How many positive decisions are kept, and how many negative ones; 4096 by default. */
  readonly maxEntries?: number;
  /** How many reviews are in flight at a time; 16 by default. */
  readonly maxInFlight?: number;
  /**
   * How many questions may wait for a place in flight; 1024 by default. A reader whose question finds no room
   * is answered with 429. A question whose last answer was yes is always asked, and first.
   */
  readonly maxWaiting?: number;
  /**
   * How many waiting questions may be about one client: tokens from one address, or accesses of one user; 64
   * by default. Clients take turns.
   */
  readonly maxWaitingPerClient?: number;
  /** How long the API server may take to answer; 5 s by default. */
  readonly timeoutMs?: number;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
}

/** Options of {@linkcode tokenReview}. */
export interface TokenReviewOptions extends ReviewOptions {
  /** Whom tokens must be for; the API server itself by default. */
  readonly audiences?: readonly string[];
}

/**
 * Makes an `authenticate` hook that asks an API server who presents a bearer token (`TokenReview`). A user is
 * known by the name, groups and uid that the cluster knows; that of a JSON web token ends when the token
 * does.
 *
 * What asks must be allowed to `create tokenreviews.authentication.k8s.io` (the ClusterRole
 * `system:auth-delegator`). Answers are kept by the token's digest, for a while and a bounded number of them.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { readApi, subjectAccessReview, tokenReview } from "@listwatch/cache/hono";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"));
 * const api = readApi({
 *   resources: [{ informer: pods, resource: "v1/pods" }],
 *   authenticate: tokenReview(cluster),
 *   authorize: subjectAccessReview(cluster),
 * });
 * console.log((await api.request("/api/v1/pods")).status); // 401
 * ```
 */
export function tokenReview(cluster: ReviewCluster, options: TokenReviewOptions = {}): Authenticate {
  const { audiences = [] } = options;
  const users = new AnswerCache<UserInfo | undefined>(settingsOf(options));
  return async (c) => {
    const token = bearerTokenOf(c);
    if (token === undefined) return undefined;
    const spec = { token, ...(audiences.length > 0 && { audiences }) };
    const ask = async (signal: AbortSignal) => {
      const of = { kind: "TokenReview", spec, action: "review a token", signal };
      const value = reviewedUser(await review(cluster, "authentication.k8s.io/v1", of), token, audiences);
      return { value, isYes: value !== undefined };
    };
    const key = String.fromCharCode(...await digestOf(token));
    return await users.get({ key, client: addressOf(c), ask });
  };
}

/**
 * Makes an `authorize` hook that sends each request for review to an API server (`SubjectAccessReview`): each
 * reader is let see what the cluster's own RBAC lets them see.
 *
 * What asks must be allowed to `create subjectaccessreviews.authorization.k8s.io` (the ClusterRole
 * `system:auth-delegator`). Without an `authenticate` hook every user is `system:anonymous`. Answers are kept
 * by user and request, for a while and a bounded number of them.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { type Authorize, subjectAccessReview } from "@listwatch/cache/hono";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const authorize: Authorize = subjectAccessReview(cluster, { allowedTtlMs: 10_000 });
 * ```
 */
export function subjectAccessReview(cluster: ReviewCluster, options: ReviewOptions = {}): Authorize {
  const decisions = new AnswerCache<boolean | string>(settingsOf(options));
  return (request, c) => {
    const spec = reviewSpec(request);
    const ask = async (signal: AbortSignal) => {
      const of = { kind: "SubjectAccessReview", spec, action: "review a reader's access", signal };
      const { allowed, denied, reason } = await review(cluster, "authorization.k8s.io/v1", of);
      const isAllowed = allowed === true && (denied === undefined || denied === false);
      const why = typeof reason === "string" ? reason : false;
      return { value: isAllowed || why, isYes: isAllowed };
    };
    const client = request.user === undefined ? addressOf(c) : request.user.name;
    return decisions.get({ key: JSON.stringify(spec), client, ask });
  };
}

/** Sends a review; returns the status of the answer. */
async function review(
  cluster: ReviewCluster,
  apiVersion: string,
  { kind, spec, ...options }: {
    readonly kind: string;
    readonly spec: unknown;
    readonly action: string;
    readonly signal: AbortSignal;
  },
): Promise<Readonly<Record<string, unknown>>> {
  const path = `/apis/${apiVersion}/${kind.toLowerCase()}s`;
  const body = { apiVersion, kind, spec };
  return recordOf(recordOf(await cluster.request(path, { method: "POST", body, ...options })).status);
}

function addressOf(c: Context): string {
  return clientAddress(c.req.raw, c.env) ?? "";
}

function settingsOf(options: ReviewOptions): Required<ReviewOptions> {
  const {
    allowedTtlMs = 60_000,
    deniedTtlMs = 10_000,
    maxEntries = 4096,
    maxInFlight = 16,
    maxWaiting = 1024,
    maxWaitingPerClient = 64,
    timeoutMs = 5_000,
    clock = realClock,
  } = options;
  const fromZero = { allowedTtlMs, deniedTtlMs, maxEntries, maxWaiting, maxWaitingPerClient };
  const fromOne = { maxInFlight, timeoutMs };
  requireNumbers("review", fromZero, { mayBeInfinite: true });
  requireNumbers("review", fromOne, { least: 1, mayBeInfinite: true });
  return { ...fromZero, ...fromOne, clock };
}

/** The user of a TokenReview that says yes; `undefined` for every other answer. */
function reviewedUser(
  { authenticated, user, error, audiences: agreed }: Readonly<Record<string, unknown>>,
  token: string,
  audiences: readonly string[],
): UserInfo | undefined {
  if (authenticated !== true || (error !== undefined && error !== "")) return undefined;
  // A server that knows nothing of audiences answers without any.
  if (audiences.length > 0 && !texts(agreed).some((audience) => audiences.includes(audience))) {
    return undefined;
  }
  const { username, uid, groups, extra } = recordOf(user);
  if (typeof username !== "string" || username === "") return undefined;
  const known = typeof uid === "string" && uid !== "" ? uid : undefined;
  const rest = { extra, expiresAtMs: expiryOf(token) };
  return defined<UserInfo>({ name: username, groups: texts(groups), uid: known, ...rest });
}

/** When a JSON web token ends; `undefined` of any other. It counts for nothing until it was reviewed. */
function expiryOf(token: string): number | undefined {
  const parts = token.split(".");
  if (parts.length !== 3) return undefined;
  try {
    const { exp } = recordOf(JSON.parse(fromBase64(parts[1])));
    return typeof exp === "number" && Number.isFinite(exp) ? exp * 1000 : undefined;
  } catch {
    return undefined; // no JSON web token
  }
}

function reviewSpec(request: RequestAttributes): Record<string, unknown> {
  const { user, verb, group, version, resource, subresource, name, path } = request;
  const who = user === undefined ? { user: "system:anonymous", groups: ["system:unauthenticated"] } : {
    user: user.name,
    groups: user.groups ?? [],
    ...(user.uid !== undefined && { uid: user.uid }),
    ...(isExtra(user.extra) && { extra: user.extra }),
  };
  return request.scope === "path" ? { ...who, nonResourceAttributes: { path, verb } } : {
    ...who,
    resourceAttributes: {
      namespace: request.namespace ?? "",
      verb,
      group,
      version,
      resource,
      ...(subresource !== undefined && { subresource }),
      name,
    },
  };
}

/** Whether a value is what Kubernetes calls a user's extra: lists of texts by name. */
function isExtra(extra: unknown): boolean {
  return isRecord(extra) &&
    Object.values(extra).every((value) =>
      Array.isArray(value) && value.every((text) => typeof text === "string")
    );
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}

interface Question<T> {
  readonly key: string;
  readonly client: string;
  ask(signal: AbortSignal): Promise<{ readonly value: T; readonly isYes: boolean }>;
}

interface Kept<T> {
  readonly value: T;
  readonly untilMs: number;
}

// The part of what is in flight that only questions which had a yes before may take.
const RESERVED = 1 / 4;

/**
 * Asks each question once at a time, few at a time, and keeps the answers. Failures are not kept.
 *
 * A question whose last answer was yes goes first, and is never refused: a client that sends new questions
 * without end delays no reader that is known. The others wait for their turn by client, and the number of
 * those is limited.
 */
export class AnswerCache<T> {
  readonly #options: Required<ReviewOptions>;
  /** Positive decisions, expired ones included: their questions count as known. */
  readonly #yes = new Map<string, Kept<T>>();
  readonly #no = new Map<string, Kept<T>>();
  readonly #pending = new Map<string, Promise<T>>();
  readonly #known = new Deque<() => void>();
  /** Questions without an earlier yes, by client; the client whose turn is next comes first. */
  readonly #others = new Map<string, Deque<() => void>>();
  #otherCount = 0;
  #inFlight = 0;

  constructor(options: Required<ReviewOptions>) {
    this.#options = options;
  }

  /** The answer to a question: the known one, the one in flight, or a new one. */
  get(question: Question<T>): Promise<T> {
    const { key } = question;
    const nowMs = monotonicNow(this.#options.clock);
    for (const answers of [this.#yes, this.#no]) {
      const known = answers.get(key);
      if (known === undefined) continue;
      keep(answers, key, known, this.#options.maxEntries);
      if (known.untilMs > nowMs) return Promise.resolve(known.value);
    }
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const asking = this.#ask(question).finally(() => this.#pending.delete(key));
    this.#pending.set(key, asking);
    return asking;
  }

  async #ask({ key, client, ask }: Question<T>): Promise<T> {
    const { clock, timeoutMs, allowedTtlMs, deniedTtlMs, maxEntries } = this.#options;
    await (this.#yes.has(key) ? this.#wait(this.#known) : this.#enter(client));
    try {
      const startMs = monotonicNow(clock);
      const { value, isYes } = await withTimeLimit(ask, {
        ms: timeoutMs,
        newError: () => new Error(`the API server has not answered within ${timeoutMs} ms`),
        clock,
      });
      const [answers, others] = isYes ? [this.#yes, this.#no] : [this.#no, this.#yes];
      others.delete(key);
      keep(answers, key, { value, untilMs: startMs + (isYes ? allowedTtlMs : deniedTtlMs) }, maxEntries);
      return value;
    } finally {
      this.#inFlight--;
      this.#admit();
    }
  }

  #enter(client: string): Promise<void> {
    const { maxWaiting, maxWaitingPerClient } = this.#options;
    const own = this.#others.get(client) ?? new Deque();
    const isFull = this.#otherCount >= maxWaiting || own.length >= maxWaitingPerClient;
    if (isFull && !this.#hasRoom) {
      const text = "too many questions about permissions wait for the API server; try again in a moment";
      throw new StatusError(newStatus(429, "TooManyRequests", text, { retryAfterSeconds: 1 }));
    }
    this.#others.set(client, own);
    this.#otherCount++;
    return this.#wait(own);
  }

  #wait(queue: Deque<() => void>): Promise<void> {
    const turn = new Promise<void>((resolve) => queue.push(resolve));
    this.#admit();
    return turn;
  }

  /** Whether a question that is not known may be in flight. */
  get #hasRoom(): boolean {
    const { maxInFlight } = this.#options;
    return this.#inFlight < maxInFlight - Math.floor(maxInFlight * RESERVED);
  }

  #admit(): void {
    while (this.#inFlight < this.#options.maxInFlight) {
      const next = this.#known.shift() ?? (this.#hasRoom ? this.#nextOther() : undefined);
      if (next === undefined) return;
      this.#inFlight++;
      next();
    }
  }

  #nextOther(): (() => void) | undefined {
    for (const [client, queue] of this.#others) {
      this.#others.delete(client);
      // The client's next turn is after those of all others.
      if (queue.length > 1) this.#others.set(client, queue);
      this.#otherCount--;
      return queue.shift();
    }
    return undefined;
  }
}

/** Keeps an answer as the one that was used last. */
function keep<T>(answers: Map<string, Kept<T>>, key: string, answer: Kept<T>, maxEntries: number): void {
  answers.delete(key);
  answers.set(key, answer);
  for (const oldest of answers.keys()) {
    if (answers.size <= maxEntries) return;
    answers.delete(oldest);
  }
}
