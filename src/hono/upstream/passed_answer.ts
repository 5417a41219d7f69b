/** Answers of other servers: awaited for a time, and passed on while their reader may see them. */

import { withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { newSpentError, type Reader } from "../request/readers.ts";
import { WatchLife, type WatchLifeOptions } from "../send/watch_life.ts";

/** Sends a request, and waits for the beginning of the answer. */
export async function answerInTime(
  send: (limit: AbortSignal) => Response | Promise<Response>,
  { timeoutMs, late, clock, signal }: {
    readonly timeoutMs: number;
    readonly late: Error;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<Response> {
  return await withTimeLimit(async (limit) => {
    const answer = (async () => await send(limit))();
    answer.then((response) => {
      if (limit.aborted) response.body?.cancel().catch(() => {});
    }, () => {});
    return await answer;
  }, { ms: timeoutMs, newError: () => late, clock, signal });
}

/**
 * A body as it arrives, up to the end of its permission; when one side ends it, the other side's connection
 * ends too. The reader holds one chunk of it.
 */
export function passedBody(
  body: ReadableStream<Uint8Array>,
  { reader, isStream, silence, onEnd, ...life }: WatchLifeOptions & {
    readonly reader: Reader;
    /** Whether the answer has no end of its own, and may end at any time. Others are whole, or broken off. */
    readonly isStream: boolean;
    /** How long a reader waits for more of a body before it is broken off with the error. */
    readonly silence?: { readonly ms: number; readonly newError: () => Error };
    /** Called once; `true` if more of the body would come, which is not wanted. */
    readonly onEnd: (isBrokenOff: boolean) => void;
  },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const source = body.getReader();
  const release = reader.hold();
  let unread = 0;
  let open: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  const close = (isBrokenOff: boolean) => {
    const was = open;
    if (was === undefined) return undefined;
    open = undefined;
    lifetime.close();
    reader.readers.watches.delete(watch);
    onEnd(isBrokenOff);
    if (isBrokenOff) source.cancel().catch(() => {});
    release();
    return was;
  };
  const stop = () => {
    if (isStream) close(true)?.close();
    else close(true)?.error(new Error("the permission of its reader has ended, or the server stops"));
  };
  const breakOff = () => close(true)?.error(newSpentError("answer"));
  const next = async () => {
    if (silence === undefined) return await source.read();
    const timer = life.clock.setTimeout(() => close(true)?.error(silence.newError()), silence.ms);
    try {
      return await source.read();
    } finally {
      life.clock.clearTimeout(timer);
    }
  };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => {
      open = controller;
    },
    async pull() {
      try {
        reader.give(unread);
        const { done, value } = await next();
        if (done) return close(false)?.close();
        unread = value.byteLength;
        if (open !== undefined && !reader.take(unread)) return breakOff();
        open?.enqueue(value as Uint8Array<ArrayBuffer>);
      } catch (error) {
        close(false)?.error(error);
      }
    },
    cancel: () => void close(true),
  }, { highWaterMark: 0 });
  const watch = {
    get user() {
      return lifetime.user;
    },
    isWhole: !isStream,
    wantsHeartbeat: false,
    heartbeat: () => {},
    end: stop,
    stop,
  };
  const lifetime = new WatchLife(watch, life);
  reader.readers.watches.add(watch);
  reader.onSpent = breakOff;
  return stream;
}
