import type { MiddlewareHandler } from "hono";
import type { Authenticate } from "../../hono/request/gate.ts";
import { remoteAddress } from "../../hono/request/readers.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { visibleText } from "../../util/logger.ts";
import type { WebSocketEnv } from "../../protocol/server_sockets.ts";

/** One request and its response, after the response has ended. Without headers, which contain credentials. */
export interface AccessLogEntry {
  /** When the request arrived, in milliseconds since the epoch. */
  readonly timeMs: number;
  readonly client?: string;
  readonly user?: string;
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly status: number;
  readonly bytes: number;
  /** The time to the end of the body. */
  readonly durationMs: number;
}

export interface AccessLog {
  /** Must be the first middleware. */
  readonly middleware: MiddlewareHandler;
  /** Notes the readers that a hook authenticates. */
  noting(authenticate: Authenticate): Authenticate;
}

const LONGEST_PATH = 2048;

/** Makes the log; `write` receives every entry. */
export function newAccessLog(clock: Clock, write: (entry: AccessLogEntry) => void): AccessLog {
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
      // A socket forgets it when its client has left.
      const client = remoteAddress(request, c.env);
      const end = (bytes: number, status = c.res.status): void => {
        const user = users.get(request);
        const url = new URL(request.url);
        write({
          timeMs,
          ...(client !== undefined && { client }),
          ...(user !== undefined && { user }),
          method: request.method,
          path: (url.pathname + url.search).slice(0, LONGEST_PATH),
          status,
          bytes,
          durationMs: Math.round(monotonicNow(clock) - startMs),
        });
      };
      await next();
      const { accepted } = (c.env ?? {}) as WebSocketEnv;
      if (accepted !== undefined) return void accepted.closed.then(() => end(accepted.sentBytes, 101));
      const { body } = c.res;
      if (body === null) return end(0);
      const res = c.res;
      // Reset first: hono would copy the headers of the old response into the new one.
      c.res = undefined;
      c.res = new Response(counted(body, end), res);
    },
  };
}

/** A body that reports its number of bytes when it has ended, failed or was cancelled. */
function counted(
  body: ReadableStream<Uint8Array>,
  report: (bytes: number) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  let isOver = false;
  const end = (): void => {
    if (!isOver) report(bytes);
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

/** An entry as one line: `2026-01-01T00:00:00.000Z 10.0.0.7 jane GET /api/v1/pods 200 5120 12ms`. */
export function accessLogLine(entry: AccessLogEntry): string {
  const { timeMs, client = "-", user = "-", method, path, status, bytes, durationMs } = entry;
  // Without spaces, so that no name can look like several fields.
  const word = (text: string) => visibleText(text, LONGEST_PATH).replaceAll(" ", "\\x20");
  const time = new Date(timeMs).toISOString();
  return `${time} ${client} ${word(user)} ${word(method)} ${word(path)} ${status} ${bytes} ${durationMs}ms`;
}

export function accessLogJson(entry: AccessLogEntry): string {
  const { timeMs, ...rest } = entry;
  return JSON.stringify({ time: new Date(timeMs).toISOString(), ...rest }).replace(
    /[\p{Cf}\p{Zl}\p{Zp}\x7f-\x9f]/gu,
    (char) =>
      Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`)
        .join(""),
  );
}
