/**
 * Who asked for what.
 * @module
 */

import type { Context, MiddlewareHandler } from "hono";
import type { Authenticate } from "../hono/authorization.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { visibleText } from "../util/visible_text.ts";

/**
 * One request and its answer, told when the answer ended. Headers are not told: they hold credentials.
 *
 * @example
 * ```ts
 * import type { AccessLogEntry } from "@listwatch/cache/cli";
 * function line({ user, method, path, status }: AccessLogEntry): string {
 *   return `${user ?? "-"} ${method} ${path} ${status}`;
 * }
 * ```
 */
export interface AccessLogEntry {
  /** When the request came, in milliseconds since the epoch. */
  readonly timeMs: number;
  /** The address that it came from, where the runtime tells. */
  readonly client?: string;
  /** Who asked, where readers have names. */
  readonly user?: string;
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly status: number;
  /** How much of the body was sent. */
  readonly bytes: number;
  /** How long it took, to the end of the body. */
  readonly durationMs: number;
}

/** Tells every request. */
export interface AccessLog {
  /** Comes before everything else. */
  readonly middleware: MiddlewareHandler;
  /** Notes whom a hook finds. */
  noting(authenticate: Authenticate): Authenticate;
}

const LONGEST_PATH = 2048;

/** Makes the log. */
export function newAccessLog(clock: Clock, tell: (entry: AccessLogEntry) => void): AccessLog {
  const users = new WeakMap<Request, string>();
  return {
    noting: (authenticate) => async (c) => {
      const user = await authenticate(c);
      if (user !== undefined) users.set(c.req.raw, user.name);
      return user;
    },
    middleware: async (c, next) => {
      const [timeMs, startMs] = [clock.now(), monotonicNow(clock)];
      const request = c.req.raw;
      const end = (bytes: number): void => {
        const [client, user] = [clientOf(c), users.get(request)];
        const url = new URL(request.url);
        tell({
          timeMs,
          ...(client !== undefined && { client }),
          ...(user !== undefined && { user }),
          method: request.method,
          path: (url.pathname + url.search).slice(0, LONGEST_PATH),
          status: c.res.status,
          bytes,
          durationMs: Math.round(monotonicNow(clock) - startMs),
        });
      };
      await next();
      const { body } = c.res;
      if (body === null) return end(0);
      const res = c.res;
      // Set anew: hono would else copy the headers of the one into the other.
      c.res = undefined;
      c.res = new Response(counted(body, end), res);
    },
  };
}

/** A body that tells how much of it was read, once it has ended or nobody reads it any more. */
function counted(
  body: ReadableStream<Uint8Array>,
  tell: (bytes: number) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  let isOver = false;
  const end = (): void => {
    if (!isOver) tell(bytes);
    isOver = true;
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          end();
          return controller.close();
        }
        bytes += value.length;
        controller.enqueue(value);
      } catch (error) {
        end();
        controller.error(error);
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

function clientOf(c: Context): string | undefined {
  const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress;
}

/** An entry as one line: `2026-01-01T00:00:00.000Z 10.0.0.7 jane GET /api/v1/pods 200 5120 12ms`. */
export function accessLogLine(entry: AccessLogEntry): string {
  const { timeMs, client = "-", user = "-", method, path, status, bytes, durationMs } = entry;
  // One word each, so that nobody's name is taken for more than a name.
  const word = (text: string) => visibleText(text, LONGEST_PATH).replaceAll(" ", "\\x20");
  const time = new Date(timeMs).toISOString();
  return `${time} ${client} ${word(user)} ${word(method)} ${word(path)} ${status} ${bytes} ${durationMs}ms`;
}

/** An entry as JSON, in one line. */
export function accessLogJson(entry: AccessLogEntry): string {
  const { timeMs, ...rest } = entry;
  return JSON.stringify({ time: new Date(timeMs).toISOString(), ...rest }).replace(
    /[\p{Cf}\p{Zl}\p{Zp}\x7f-\x9f]/gu,
    (char) =>
      Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`)
        .join(""),
  );
}
