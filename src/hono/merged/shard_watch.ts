/**
 * The watch of one shard, for a merged one.
 * @module
 */

import { compareResourceVersions } from "../../meta/resource_version.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { onAbort, sleepUnlessAborted } from "../../util/abort.ts";
import { monotonicNow } from "../../util/clock.ts";
import { deferred } from "../../util/deferred.ts";
import { errorMessage } from "../../util/errors.ts";
import { Utf8Stream } from "../../util/utf8_stream.ts";
import {
  askShard,
  type Merged,
  ofCollection,
  type Shard,
  type ShardOutcome,
  type ShardRequest,
} from "./shards.ts";

/** The merged watch, as the watch of a shard sees it. */
export interface ShardWatchUser {
  /** Lines have come: they wait until {@linkcode ShardWatch.taken}. */
  onLines(watch: ShardWatch): void;
  /** The shard refuses to continue: the merged watch cannot. */
  onRefused(status: Status): void;
  /** The shard is away for too long. */
  onAway(watch: ShardWatch, why: string): void;
}

/** Options of {@linkcode ShardWatch}. */
export interface ShardWatchOptions {
  readonly merged: Merged;
  readonly shard: Shard;
  readonly index: number;
  /** Without a resourceVersion. */
  readonly request: Omit<ShardRequest, "signal">;
  /** Whether the others continue without it. */
  readonly isPartial: boolean;
  /** When the whole ends. */
  readonly endsMs: number;
  readonly signal: AbortSignal;
  readonly user: ShardWatchUser;
}

// An object has at most some MiB: https://etcd.io/docs/v3.5/dev-guide/limit/
const MAX_LINE_LENGTH = 16 * 1024 * 1024;
// A shard that ends a watch sooner is waited for; without any event, it counts as away.
const LEAST_WATCH_MS = 1_000;
// kube-apiserver ends a watch up to a second late, and a bookmark comes before.
const LAST_MOMENT_MS = 2_000;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 30_000;

/**
 * Reads the watch of a shard, chunk by chunk: the next one when the lines of the last one are taken. A watch that ends is
 * opened again where it was, so that the merged watch does not end with each of its parts.
 */
export class ShardWatch {
  readonly shard: Shard;
  readonly index: number;
  /** What the reader has seen of the shard; `""` before its initial events have ended. */
  version: string;
  /** The lines of the last chunk. */
  lines: string[] = [];
  /** Whether its initial events are to come. */
  isInitial: boolean;
  readonly #options: ShardWatchOptions;
  #taken = deferred();
  #isPaused = false;
  #resume = deferred();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** @param version Where it begins. */
  constructor(options: ShardWatchOptions, version: string, { isInitial }: { readonly isInitial: boolean }) {
    this.#options = options;
    this.shard = options.shard;
    this.index = options.index;
    this.version = version;
    this.isInitial = isInitial;
  }

  /** The lines were used: the next ones are read. */
  taken(): void {
    this.lines = [];
    this.#taken.resolve();
  }

  /** Reads nothing until {@linkcode ShardWatch.resume}. */
  pause(): void {
    this.#isPaused = true;
    this.#resume = deferred();
  }

  /** Continues to read. */
  resume(): void {
    this.#isPaused = false;
    this.#resume.resolve();
  }

  /** An event or a bookmark of this version was read. */
  reached(version: string): void {
    if (this.version === "" || compareResourceVersions(version, this.version) > 0) this.version = version;
  }

  /**
   * Reads a response, and what comes after it, until the signal is aborted.
   *
   * @param response `undefined`: the shard was away at the beginning.
   */
  async run(response: Response | undefined): Promise<void> {
    const { merged: { clock, awayMs }, signal, user, isPartial, endsMs } = this.#options;
    const unlink = onAbort(signal, () => {
      this.#taken.resolve();
      this.#resume.resolve();
      this.#reader?.cancel().catch(() => {});
    });
    let next = response;
    let why = "it was away at the beginning";
    let retryMs = FIRST_RETRY_MS;
    let awaySinceMs = monotonicNow(clock);
    try {
      for (;;) {
        let mustWait = true;
        let isAway = true;
        if (next !== undefined) {
          const openedMs = monotonicNow(clock);
          const read = await this.#read(next);
          const endedMs = monotonicNow(clock);
          why = read.why;
          mustWait = !read.isWatch || endedMs - openedMs < LEAST_WATCH_MS;
          if (!mustWait) retryMs = FIRST_RETRY_MS;
          isAway = mustWait && !read.hasLines;
          if (!isAway) awaySinceMs = endedMs;
          // Its present objects were sent in part: the reader must begin again.
          if (this.isInitial && !signal.aborted) return user.onAway(this, why);
        }
        // Its time is over, as that of the whole will be in a moment.
        if (signal.aborted || monotonicNow(clock) >= endsMs - LAST_MOMENT_MS) return;
        if (isAway && !isPartial && monotonicNow(clock) - awaySinceMs >= awayMs) {
          return user.onAway(this, why);
        }
        if (mustWait) {
          if (!await sleepUnlessAborted(retryMs, { clock, signal })) return;
          retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
        }
        const outcome = await this.#open();
        if (signal.aborted) return;
        if (outcome.kind === "refused") return user.onRefused(outcome.status);
        next = outcome.kind === "answer" ? outcome.response : undefined;
        if (outcome.kind === "away") why = outcome.why;
      }
    } finally {
      unlink();
    }
  }

  /** Asks for what comes after the version. */
  async #open(): Promise<ShardOutcome> {
    const { merged, shard, request, signal, endsMs } = this.#options;
    const params = watchParams(request.params, this.version);
    const leftMs = endsMs - monotonicNow(merged.clock);
    if (leftMs < Infinity) params.set("timeoutSeconds", String(Math.max(1, Math.ceil(leftMs / 1_000))));
    try {
      return ofCollection(await askShard(merged, shard, { ...request, params, signal }));
    } catch (error) {
      return { kind: "away", why: errorMessage(error) };
    }
  }

  /** Hands on the lines of a body up to its end. */
  async #read({ body }: Response): Promise<ReadOutcome> {
    const { signal, user } = this.#options;
    let hasLines = false;
    const ended = (why: string, { isWatch = true } = {}): ReadOutcome => ({ why, hasLines, isWatch });
    if (body === null) return ended("its answer has no body", { isWatch: false });
    const reader = this.#reader = body.getReader();
    const decoder = new Utf8Stream();
    let rest = "";
    try {
      for (;;) {
        while (this.#isPaused && !signal.aborted) await this.#resume.promise;
        if (signal.aborted) return ended("it was ended");
        const { done, value } = await reader.read();
        if (done) return ended("it ended");
        const lines = (rest + decoder.decode(value)).split("\n");
        rest = lines.pop() ?? "";
        if (rest.length > MAX_LINE_LENGTH) {
          const text = `an event of the shard ${this.shard.name} is too long`;
          user.onRefused(newStatus(500, "InternalError", text));
          return ended(text);
        }
        this.lines = lines.filter((line) => line.trim() !== "");
        if (!hasLines && !mayBeWatch(this.lines[0], rest)) {
          this.lines = [];
          return ended("its answer is no watch", { isWatch: false });
        }
        if (this.lines.length === 0) continue;
        hasLines = true;
        this.#taken = deferred();
        user.onLines(this);
        await this.#taken.promise;
      }
    } catch (error) {
      return ended(errorMessage(error));
    } finally {
      this.#reader = undefined;
      reader.cancel().catch(() => {});
    }
  }
}

/** How the reading of a response ended. */
interface ReadOutcome {
  readonly why: string;
  readonly hasLines: boolean;
  readonly isWatch: boolean;
}

/** Whether an answer that begins so may be a watch: its first line is an event, if it has come whole. */
function mayBeWatch(line: string | undefined, rest: string): boolean {
  if (line === undefined) return /^\s*(\{|$)/.test(rest);
  try {
    const { type, object } = JSON.parse(line);
    return typeof type === "string" && typeof object === "object" && object !== null;
  } catch {
    return false;
  }
}

/** The parameters of a watch from a version; at `"0"`, of which the reader has seen nothing, it begins with all objects. */
export function watchParams(params: URLSearchParams, version: string): URLSearchParams {
  const own = new URLSearchParams(params);
  own.set("watch", "true");
  own.set("allowWatchBookmarks", "true");
  own.set("resourceVersion", version);
  for (const name of ["sendInitialEvents", "resourceVersionMatch"]) own.delete(name);
  if (version !== "0") return own;
  own.set("sendInitialEvents", "true");
  own.set("resourceVersionMatch", "NotOlderThan");
  return own;
}
