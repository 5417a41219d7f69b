/**
 * The suite `reflector`: one reflector against a scripted server, compared request by request.
 *
 * The server is a `fetch` function unless the caller brings another one, so that every runtime can play the
 * cases. Time is real: the scripts rely on the one second below which a watch is very short.
 * @module
 */

import {
  isConnectionRefused,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  isUnauthorized,
  type KeyFunc,
  type KubernetesObject,
  metaNamespaceKey,
  NetworkError,
  newCluster,
  silentLogger,
} from "@listwatch/cache";
import {
  isBadRequest,
  isInternalError,
  isServiceUnavailable,
  isTimeout,
  newStatus,
  statusErrorOf,
} from "@listwatch/cache/client";
import type { ReflectorStore } from "@listwatch/cache/queue";
import { type ListerWatcher, Reflector, VeryShortWatchError } from "@listwatch/cache/reflector";
import type { HoldText } from "../../../src/text/object_text_reader.ts";
import { newStore } from "@listwatch/cache/store";
import type { Holding } from "../../../src/store/holding.ts";
import { type CaseHolding, newHolding } from "../holdings.ts";
import { canonical, type Case } from "./harness.ts";

/** One answer of the script. */
export interface ScriptedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly rawBody?: string;
  readonly frames?:
    readonly ({ readonly type: string; readonly object: unknown } | { readonly raw: string })[];
  readonly end?: "close" | "abort" | "open";
  readonly endDelayMs?: number;
  readonly thenRefuseMs?: number;
  readonly hangup?: boolean;
}

interface Exchange {
  readonly expect: { readonly kind: "list" | "watch" };
  readonly response: ScriptedResponse;
}

interface ReflectorCase {
  readonly name: string;
  readonly informative?: boolean;
  readonly mode: "list" | "watchList";
  readonly options?: { readonly pageSize?: number; readonly maxInternalErrorRetryMs?: number };
  readonly exchanges: readonly Exchange[];
  readonly expected: Readonly<Record<string, unknown>>;
}

/** A server that plays a script. */
export interface ScriptedServer {
  /** The address to give to a client. */
  readonly url: string;
  /** What reaches it; the runtime's own where it listens on a socket. */
  readonly fetch?: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  close(): void | Promise<void>;
}

/** Called with each request; returns its response, and what to call once its frames are sent. */
export type Answer = (url: URL) => ScriptedResponse & { readonly onSent?: () => void };

/** Options of {@linkcode runReflectorCase}. */
export interface ReflectorSuiteOptions {
  /** Starts the server; one that is a `fetch` function by default. */
  readonly serve?: (answer: Answer) => ScriptedServer | Promise<ScriptedServer>;
}

const PATH = "/api/v1/pods";
/** Where the script answers 404, the client also asks what the server has: that is no part of a script. */
const NOT_DISCOVERED: ScriptedResponse = { status: 404, body: newStatus(404, "NotFound", "no discovery") };

const LOOK_MS = 20;
/** How many looks in a row find that nothing has happened: on a busy machine, time alone says nothing. */
const QUIET_LOOKS = 20;
const LIMIT_MS = 40_000;

/**
 * Plays one case; throws if what happened differs from the record.
 * Differences of an informative case are let pass.
 */
export async function runReflectorCase(
  caze: Case,
  holding: CaseHolding,
  options: ReflectorSuiteOptions = {},
): Promise<void> {
  const trace = caze as unknown as ReflectorCase;
  try {
    await play(trace, holding, options.serve ?? serveInProcess);
  } catch (error) {
    if (!trace.informative) throw error;
  }
}

async function play(
  trace: ReflectorCase,
  caseHolding: CaseHolding,
  serve: NonNullable<ReflectorSuiteOptions["serve"]>,
): Promise<void> {
  const requests: { kind: string; path: string; query: Record<string, string> }[] = [];
  let isSent = false;
  let quietLooks = 0;
  let surplus = 0;
  const server = await serve((url) => {
    quietLooks = 0;
    if (url.pathname !== PATH) return NOT_DISCOVERED;
    const query = Object.fromEntries(url.searchParams);
    const kind = query.watch === "true" || query.watch === "1" ? "watch" : "list";
    const timeout = Number(query.timeoutSeconds);
    if (Number.isInteger(timeout) && timeout >= 300 && timeout <= 600) query.timeoutSeconds = "300..600";
    requests.push({ kind, path: url.pathname, query });
    const exchange = trace.exchanges[requests.length - 1];
    if (exchange === undefined || exchange.expect.kind !== kind) {
      surplus++;
      return { status: 200, frames: [], end: "open" };
    }
    const isLast = requests.length === trace.exchanges.length;
    return { ...exchange.response, ...(isLast && { onSent: () => isSent = true }) };
  });

  const stop = new AbortController();
  const holding = newHolding(caseHolding, metaNamespaceKey) as Holding<KubernetesObject> | undefined;
  const keyFunc = holding?.keyFunc ?? metaNamespaceKey;
  // The source's texts are of the holding that opens them.
  const store = newStore<KubernetesObject>(metaNamespaceKey, {
    ...(holding && { storage: () => holding as never }),
  });
  const storeOps: Record<string, unknown>[] = [];
  const watchErrors: string[] = [];
  const unheld: unknown[] = [];
  const note = (object: KubernetesObject) => {
    if (holding !== undefined && !holding.isHeld(object)) unheld.push(object);
  };
  const record = (op: string, object: KubernetesObject) => {
    quietLooks = 0;
    note(object);
    storeOps.push({ op, key: keyFunc(object), rv: object.metadata?.resourceVersion ?? "" });
  };
  const target: ReflectorStore<KubernetesObject> = {
    add: (object) => (record("add", object), store.add(object)),
    update: (object) => (record("update", object), store.update(object)),
    delete: (object) => (record("delete", object), store.delete(object)),
    replace: (objects, rv) => {
      quietLooks = 0;
      objects.forEach(note);
      storeOps.push({ op: "replace", rv, items: sortedByKey(objects, keyFunc) });
      store.replace(objects, rv);
    },
    resync: () => {},
    bookmark: (rv) => (storeOps.push({ op: "bookmark", rv }), store.bookmark(rv)),
  };
  const cluster = newCluster({
    server: server.url,
    logger: silentLogger,
    ...(server.fetch === undefined ? {} : { fetch: server.fetch }),
  });
  const source = asTexts(cluster.resource("v1/pods"), holding?.holdText);
  const reflector = new Reflector<KubernetesObject>(source, target, {
    keyFunc,
    useWatchList: trace.mode === "watchList",
    watchListPageSize: trace.options?.pageSize ?? 0,
    maxInternalErrorRetryMs: trace.options?.maxInternalErrorRetryMs ?? 0,
    expectedKind: { group: "", version: "v1", kind: "Pod" },
    backoff: { nextDelayMs: () => 10 },
    watchErrorHandler: (error) => watchErrors.push(classOf(error)),
    logger: silentLogger,
  });
  const running = reflector.run(stop.signal);
  try {
    const startMs = performance.now();
    while (!isSent || quietLooks < QUIET_LOOKS) {
      if (surplus > 0) break;
      if (performance.now() - startMs > LIMIT_MS) break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      quietLooks++;
    }
  } finally {
    stop.abort();
    await running;
    await server.close();
  }

  const actual: Record<string, unknown> = {
    requests,
    store: sortedByKey(store.list(), metaNamespaceKey),
    lastSyncResourceVersion: reflector.lastSyncResourceVersion(),
    watchErrors,
    storeOps,
  };
  if (unheld.length > 0) throw new Error(`${trace.name}: not held: ${canonical(unheld)}`);
  for (const [property, expected] of Object.entries(trace.expected)) {
    const wanted = canonical(
      property === "storeOps" ? (expected as Record<string, unknown>[]).map(sortedItems) : expected,
    );
    const got = canonical(actual[property]);
    if (wanted !== got) throw new Error(`${trace.name}: ${property}: expected ${wanted}, got ${got}`);
  }
}

/** A source that returns what is held of texts. */
function asTexts(
  source: ListerWatcher<KubernetesObject>,
  holdText: HoldText | undefined,
): ListerWatcher<KubernetesObject> {
  if (holdText === undefined) return source;
  return {
    list: (options, context) => source.list(options, { ...context, holdText }),
    watch: (options, context) => source.watch(options, { ...context, holdText }),
    ...(source.description !== undefined && { description: source.description }),
  };
}

/** The script as a `fetch` function. */
function serveInProcess(answer: Answer): ScriptedServer {
  let refusedUntil = 0;
  const stop = new AbortController();
  const fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    if (performance.now() < refusedUntil) {
      throw new TypeError("fetch failed", {
        cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }),
      });
    }
    const response = answer(new URL(input instanceof Request ? input.url : input));
    const { status, headers = {}, body, rawBody, frames, end, endDelayMs = 0 } = response;
    const { thenRefuseMs, hangup, onSent } = response;
    const refuse = () => {
      if (thenRefuseMs !== undefined) refusedUntil = performance.now() + thenRefuseMs;
    };
    if (hangup) {
      refuse();
      throw new TypeError("fetch failed", {
        cause: Object.assign(new Error("closed"), { code: "ECONNRESET" }),
      });
    }
    const allHeaders = { "Content-Type": "application/json", ...headers };
    if (end === undefined) {
      refuse();
      return new Response(rawBody ?? JSON.stringify(body), { status, headers: allHeaders });
    }
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        const encoder = new TextEncoder();
        const aborted = new Promise<void>((resolve) => {
          init?.signal?.addEventListener("abort", () => resolve());
          stop.signal.addEventListener("abort", () => resolve());
        });
        for (const frame of frames ?? []) {
          controller.enqueue(encoder.encode("raw" in frame ? frame.raw : `${JSON.stringify(frame)}\n`));
          await null;
        }
        onSent?.();
        await Promise.race([aborted, new Promise((resolve) => setTimeout(resolve, endDelayMs))]);
        try {
          if (end === "close") {
            refuse();
            controller.close();
          } else if (end === "abort") {
            await new Promise((resolve) => setTimeout(resolve, 50));
            refuse();
            controller.error(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }));
          } else {
            await aborted;
            controller.close();
          }
        } catch {
          // the reader went away first
        }
      },
    });
    return await Promise.resolve(new Response(stream, { status, headers: allHeaders }));
  };
  return { url: "http://scripted.invalid", fetch, close: () => stop.abort() };
}

function classOf(error: Error): string {
  if (isExpired(error)) return "Expired";
  // The class does not go by the messages of old servers.
  const causes = statusErrorOf(error)?.status.details?.causes ?? [];
  if (causes.some(({ reason }) => reason === "ResourceVersionTooLarge")) return "ResourceVersionTooLarge";
  if (isTooManyRequests(error)) return "TooManyRequests";
  if (isInternalError(error)) return "InternalError";
  if (isServiceUnavailable(error)) return "ServiceUnavailable";
  if (isTimeout(error)) return "Timeout";
  if (isUnauthorized(error)) return "Unauthorized";
  if (isForbidden(error)) return "Forbidden";
  if (isNotFound(error)) return "NotFound";
  if (isInvalid(error)) return "Invalid";
  if (isBadRequest(error)) return "BadRequest";
  if (error instanceof VeryShortWatchError) return "VeryShortWatch";
  if (isConnectionRefused(error)) return "ConnectionRefused";
  if (error instanceof NetworkError && error.reason !== "Unreachable") return error.reason;
  return "Other";
}

function sortedByKey(objects: readonly KubernetesObject[], keyFunc: KeyFunc): [string, string][] {
  return objects.map((
    object,
  ): [string, string] => [keyFunc(object), object.metadata?.resourceVersion ?? ""])
    .sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
}

function sortedItems(op: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(op.items)) return op;
  return {
    ...op,
    items: (op.items as [string, string][]).toSorted(([a], [b]) => a < b ? -1 : a > b ? 1 : 0),
  };
}
