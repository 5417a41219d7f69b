/**
 * Leader election on a Lease, by client-go's rules: of several processes one leads, and no two at once.
 *
 * A lease that others hold is respected until it was seen unchanged for its whole duration, by this process's
 * own clock: clocks are never compared. The holder renews the lease, and stops leading when it could not do
 * so within the renew deadline, which is so much shorter than the duration that clocks of different speeds do
 * no harm, or when a renewal shows that it is held by another process or none. A process that was frozen
 * calls {@linkcode Leadership.check} before it writes, whether or not its timers have run.
 *
 * @see https://github.com/kubernetes/client-go/blob/master/tools/leaderelection/leaderelection.go
 */

import type { ResourceClient } from "../client/resource_client.ts";
import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../meta/status.ts";
import { linkedAbort, onAbort, sleepUnlessAborted } from "../util/abort.ts";
import type { Random } from "../util/backoff.ts";
import { ageMs, type Clock, type Moment, momentOf, type TimerHandle } from "../util/clock.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import { isSameJson } from "../util/json.ts";
import { type Logger, silentLogger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import { microTime } from "./event_recorder.ts";
import { retryOnConflict } from "./objects.ts";

export interface Lease extends KubernetesObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/** Options of leader election; the times are client-go's by default. */
export interface LeaderOptions {
  /** The name of the Lease. All copies of the program have the same. */
  readonly lease: string;
  /** The namespace of the Lease; that of the `Cluster` by default. */
  readonly namespace?: string;
  /** The name of this process in the Lease; a random one by default. No two processes may have the same. */
  readonly identity?: string;
  /** After how many milliseconds without renewal others may take the lease; 15,000 by default. */
  readonly leaseMs?: number;
  /** After how many milliseconds without renewal this process stops to lead; 10,000 by default. */
  readonly renewDeadlineMs?: number;
  /** How often the lease is renewed, or looked at, in milliseconds; 2,000 by default. */
  readonly retryMs?: number;
  /** Whether the lease is released at a stop, so that another takes over at once; `true` by default. */
  readonly releaseOnStop?: boolean;
}

/**
 * This process does not lead any more: the write was not made.
 *
 * @example
 * ```ts
 * import { LeadershipLostError } from "@listwatch/cache/controller";
 * console.log(new LeadershipLostError("widgets", "it was not renewed for 10000 ms").code); // LeadershipLost
 * ```
 */
export class LeadershipLostError extends CacheError {
  constructor(lease: string, why: string) {
    super(
      "LeadershipLost",
      `Cannot lead any more by the lease ${JSON.stringify(lease)}: ${why}; start again`,
    );
  }
}

/** A lease that is held. */
export interface Leadership {
  /** Aborted with a {@linkcode LeadershipLostError} when it is lost, or with the reason of the release. */
  readonly signal: AbortSignal;
  /**
   * Ask before every write.
   *
   * @throws {LeadershipLostError} Another may lead.
   */
  check(): void;
  /** Ends the leadership; the lease is given back if `releaseOnStop` says so. */
  release(): Promise<void>;
}

// client-go's JitterFactor.
const JITTER = 1.2;
const RELEASE_TIMEOUT_MS = 5_000;

export class LeaderElector {
  readonly identity: string;
  readonly #leases: ResourceClient<Lease>;
  readonly #options: Required<Omit<LeaderOptions, "namespace" | "identity">>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #logger: Logger;
  /** The Lease as it was seen last, and when it was seen so first. */
  #observed: { readonly lease: Lease; readonly at: Moment } | undefined;
  #renewed: Moment | undefined;
  /** Whether the lease may be held: a write was sent to take it, and was not refused. */
  #mayHold = false;

  /**
   * @param leases A client of the Lease's namespace.
   * @throws {RangeError} The duration is not longer than the
   * deadline, or that not longer than the retry period.
   */
  constructor(
    leases: ResourceClient<Lease>,
    options: LeaderOptions & {
      readonly identity: string;
      readonly clock: Clock;
      readonly random: Random;
      readonly logger: Logger;
    },
  ) {
    const { identity, lease, leaseMs = 15_000, renewDeadlineMs = 10_000, retryMs = 2_000 } = options;
    requireNumbers(`lead by the lease ${lease}`, { leaseMs, renewDeadlineMs, retryMs }, { least: 1 });
    if (leaseMs <= renewDeadlineMs || renewDeadlineMs <= JITTER * retryMs) {
      throw new RangeError(
        `Cannot lead by the lease ${lease}: leaseMs (${leaseMs}) must be greater than renewDeadlineMs (${renewDeadlineMs}), ` +
          `and that greater than ${JITTER} times retryMs (${retryMs})`,
      );
    }
    this.identity = identity;
    this.#leases = leases;
    this.#options = {
      lease,
      leaseMs,
      renewDeadlineMs,
      retryMs,
      releaseOnStop: options.releaseOnStop ?? true,
    };
    this.#clock = options.clock;
    this.#random = options.random;
    this.#logger = options.logger;
  }

  get holder(): string {
    return this.#observed?.lease.spec?.holderIdentity ?? "";
  }

  /** Whether the lease is held by this process, and was renewed in time. */
  get isLeading(): boolean {
    return this.#renewed !== undefined && ageMs(this.#renewed, this.#clock) < this.#options.renewDeadlineMs;
  }

  /**
   * Waits until this process leads. A watch of the Lease shows that it is released; without
   * permission to watch, it is looked at every `retryMs`. A lease that was taken as the signal was aborted is
   * given back if `releaseOnStop` says so.
   *
   * @throws The signal's reason.
   */
  async acquire(signal: AbortSignal): Promise<Leadership> {
    const { lease, retryMs, releaseOnStop } = this.#options;
    const wakeup = { wake: () => {} };
    const watch = this.#watch(() => wakeup.wake());
    // A request to take the lease is awaited for a while: it may arrive after all that is sent later.
    const taking = new AbortController();
    let timer: TimerHandle;
    const unlisten = onAbort(signal, () => {
      timer = this.#clock.setTimeout(() => taking.abort(signal.reason), RELEASE_TIMEOUT_MS);
    });
    try {
      for (let holder = "";; holder = this.holder) {
        signal.throwIfAborted();
        if (await this.#tryOnce(signal, taking.signal)) break;
        if (holder !== this.holder) this.#logger.info(`the lease ${lease} is held by ${this.holder}`);
        const link = linkedAbort(signal);
        wakeup.wake = () => link.abort();
        await sleepUnlessAborted(retryMs * (1 + JITTER * this.#random()), {
          clock: this.#clock,
          signal: link.signal,
        });
        link.unlink();
      }
    } finally {
      unlisten();
      this.#clock.clearTimeout(timer);
      await watch.stop();
      if (signal.aborted && this.#mayHold && releaseOnStop) await this.#release();
    }
    signal.throwIfAborted();
    this.#logger.info(`leads by the lease ${lease} as ${this.identity}`);
    return this.#lead();
  }

  // A standby must not wait for its next look when the lease is released.
  #watch(wake: () => void): { stop(): Promise<void> } {
    const { lease } = this.#options;
    const client = this.#leases;
    const fieldSelector = `metadata.name=${lease}`;
    const informer = new SharedIndexInformer<Lease>({
      description: `the lease ${lease}`,
      list: (options, context) => client.list({ ...options, fieldSelector }, context),
      watch: (options, context) => client.watch({ ...options, fieldSelector }, context),
    }, { clock: this.#clock, logger: silentLogger, reflector: { random: this.#random } });
    const wakeIfFree = ({ spec }: Lease) => {
      if (!spec?.holderIdentity) wake();
    };
    informer.addEventHandler({
      onAdd: wakeIfFree,
      onUpdate: (_before, after) => wakeIfFree(after),
      onDelete: wake,
    });
    return informer.start();
  }

  /** Tries to take the lease; whether this process holds it then. Never throws. */
  async #tryOnce(signal: AbortSignal, writing: AbortSignal): Promise<boolean> {
    try {
      return await this.#tryToHold(signal, writing);
    } catch (error) {
      const isOvertaken = isConflict(error) || isAlreadyExists(error);
      if (isOvertaken) this.#mayHold = false;
      else if (!signal.aborted) this.#warn(error);
      return false;
    }
  }

  async #tryToHold(signal: AbortSignal, writing: AbortSignal): Promise<boolean> {
    const { lease: name } = this.#options;
    const request = { signal: writing, timeoutMs: this.#timeoutMs };
    const mine = this.#mine();
    const acquireTime = mine.renewTime;
    let lease: Lease;
    try {
      lease = await this.#leases.get(name, { ...request, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#mayHold = true;
      return await this.#hold(this.#leases.create({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name, namespace: this.#leases.namespace },
        spec: { ...mine, acquireTime, leaseTransitions: 0 },
      }, request));
    }
    this.#observe(lease);
    const { holderIdentity = "", leaseTransitions = 0 } = lease.spec ?? {};
    const wasMine = holderIdentity === this.identity;
    if (holderIdentity !== "" && !wasMine && !this.#hasExpired()) return false;
    this.#mayHold = true;
    const taken = wasMine ? mine : { ...mine, acquireTime, leaseTransitions: leaseTransitions + 1 };
    const spec = { ...lease.spec, ...taken };
    return await this.#hold(this.#leases.replace({ ...lease, spec }, request));
  }

  /**
   * Renews the lease, if it is still this process's own; why it is lost, if so. It is never taken again:
   * another process may have led meanwhile, and the caches may lack what that one wrote. Never throws.
   */
  async #renew(signal: AbortSignal): Promise<string | undefined> {
    const request = { signal, timeoutMs: this.#timeoutMs };
    const replace = async (lease: Lease): Promise<undefined> => {
      const spec = { ...lease.spec, ...this.#mine() };
      await this.#hold(this.#leases.replace({ ...lease, spec }, request));
    };
    try {
      // The version that was written last is refused if another process has written since.
      return await replace(this.#observed!.lease);
    } catch { /* it is read, as it may be lost, or renewed without an answer */ }
    try {
      signal.throwIfAborted();
      const lease = await this.#leases.get(this.#options.lease, request);
      this.#observe(lease);
      if (this.holder !== this.identity) return `it is held by ${this.holder || "none"}`;
      return await replace(lease);
    } catch (error) {
      if (isNotFound(error)) return "it was deleted";
      if (!signal.aborted && !isConflict(error)) this.#warn(error);
      return undefined;
    }
  }

  /** What this process writes into the lease. */
  #mine() {
    return {
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.#options.leaseMs / 1_000),
      renewTime: microTime(this.#clock),
    };
  }

  /** As controller-runtime's: one request without an answer leaves time for another. */
  get #timeoutMs(): number {
    return this.#options.renewDeadlineMs / 2;
  }

  #warn(error: unknown): void {
    const { lease } = this.#options;
    this.#logger.warn(`Cannot take or renew the lease ${lease}: ${errorMessage(error)}`, { error });
  }

  /** The lease is held from when the write was sent, once it is answered. */
  async #hold(write: Promise<Lease>): Promise<true> {
    const sent = momentOf(this.#clock);
    this.#observed = { lease: await write, at: momentOf(this.#clock) };
    this.#renewed = sent;
    return true;
  }

  #observe(lease: Lease): void {
    if (this.#observed === undefined || !isSameJson(this.#observed.lease.spec, lease.spec)) {
      this.#observed = { lease, at: momentOf(this.#clock) };
    }
  }

  #hasExpired(): boolean {
    const { lease, at } = this.#observed!;
    const durationMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1_000;
    // The monotonic clock alone: a wall clock that is set forward must not take a lease from its holder.
    return monotonicAgeMs(at, this.#clock) >= durationMs;
  }

  #lead(): Leadership {
    const { lease } = this.#options;
    const lost = new AbortController();
    const lose = (why: string) => lost.abort(new LeadershipLostError(lease, why));
    const ended = this.#renewUntilLost(lost.signal, lose);
    return {
      signal: lost.signal,
      check: () => {
        if (!this.isLeading) lose(this.#notRenewed());
        lost.signal.throwIfAborted();
      },
      release: async () => {
        const isLost = lost.signal.aborted;
        lose("it was released");
        await ended;
        if (!isLost && this.#options.releaseOnStop) await this.#release();
        this.#renewed = undefined;
      },
    };
  }

  #notRenewed(): string {
    return `it was not renewed for ${this.#options.renewDeadlineMs} ms`;
  }

  async #renewUntilLost(signal: AbortSignal, lose: (why: string) => void): Promise<void> {
    const { retryMs } = this.#options;
    // The deadline is held by a timer of its own, as a request may hang.
    let timer: TimerHandle;
    const watchDeadline = () => {
      const leftMs = this.#options.renewDeadlineMs - ageMs(this.#renewed!, this.#clock);
      timer = this.#clock.setTimeout(() => {
        if (!this.isLeading) lose(this.#notRenewed());
        else watchDeadline();
      }, leftMs);
    };
    watchDeadline();
    onAbort(signal, () => this.#clock.clearTimeout(timer));
    while (await sleepUnlessAborted(retryMs, { clock: this.#clock, signal })) {
      // After a suspension, which stops the timers, too.
      const why = this.isLeading ? await this.#renew(signal) : this.#notRenewed();
      if (why !== undefined) return lose(why);
    }
  }

  /** Gives the lease back: the next look of any process takes it. */
  async #release(): Promise<void> {
    const { lease: name } = this.#options;
    const request = { timeoutMs: RELEASE_TIMEOUT_MS };
    const time = microTime(this.#clock);
    const free = { holderIdentity: "", leaseDurationSeconds: 1, renewTime: time, acquireTime: time };
    try {
      // Read again, as the answer to the last renewal may have been given up.
      await retryOnConflict(async () => {
        const lease = await this.#leases.get(name, request);
        if (lease.spec?.holderIdentity !== this.identity) return;
        await this.#leases.replace({ ...lease, spec: { ...lease.spec, ...free } }, request);
      }, { clock: this.#clock });
    } catch (error) {
      this.#logger.warn(`Cannot release the lease ${name}: ${errorMessage(error)}`, { error });
    }
  }
}

function monotonicAgeMs(moment: Moment, clock: Clock): number {
  return ageMs({ ...moment, wallMs: Infinity }, clock);
}
