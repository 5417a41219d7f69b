/**
 * The network between the programs and the servers: a `fetch` that may refuse, delay, lose and break.
 * @module
 */

import { type FetchFunction, newStatus } from "@listwatch/cache/client";
import type { Scope } from "./cluster_model.ts";
import { type Chunking, Connection, type Injury, type Weather } from "./connection.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { type Answer, refuse, type ServerModel, type ServerSettings, type Stream } from "./server_model.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a request receives instead of the server's response. */
export type Refusal =
  | "refused"
  | "unreachable"
  | "silent"
  | "tooManySeconds"
  | "tooManyDate"
  | "tooManyPlain"
  | "internalError"
  | "badGateway"
  | "unavailableSeconds"
  | "gatewayTimeout"
  | "forbidden"
  | "loginPage"
  | "closedAtOnce"
  | "emptyStream";

/** The requests that are affected. */
export type Verb = "list" | "watch";

/** The state of the network at a moment. */
export interface NetworkState {
  /** The fault of requests, by verb. */
  refusals: Partial<Record<Verb, Refusal>>;
  /** The probability of a refusal. */
  refusalChance: number;
  /** The minimum and maximum latency of bytes. */
  latencyMs: readonly [number, number];
  /** Time between the frames of one send. */
  frameGapMs: number;
  /** The probability that the body of a list is cut. */
  cutListChance: number;
  /** The probability that a list's body stops half way, without an error. */
  silentListChance: number;
  /**
   * How long the first page of a list takes, chunk by chunk, in milliseconds; 0 for no longer than others.
   */
  slowListMs: number;
  /** The server that requests go to; `undefined` for any. */
  sticky: number | undefined;
  /**
   * The response to requests with `sendInitialEvents`, which a
   * middlebox does not know, or a server has no room for.
   */
  streams: "pass" | "reset" | "unanswered" | "refused" | "tooManySeconds";
  /** The response to requests for the server's version only, of programs that have a snapshot. */
  probes: "pass" | "reset" | "tooManyPlain" | "internalError";
  /** How long after its start a proxy ends every response. */
  longestAnswerMs: number | undefined;
}

/** One request of a program. */
export interface SimRequest {
  readonly id: number;
  readonly program: number;
  readonly verb: Verb;
  /** Whether it is for reads of the served cache, and not of the informer's reflector. */
  readonly isQuestion: boolean;
  readonly query: URLSearchParams;
  /** Whether it is for what identifies the cluster. */
  readonly isOfCluster: boolean;
  readonly startMs: number;
  connection: Connection | undefined;
  /** Since when no response will come, without an error. */
  silentSinceMs: number | undefined;
  state: "waiting" | "answered" | "failed" | "aborted";
  /** The status of the answer; 0 before there is one. */
  status: number;
  server: ServerModel | undefined;
}

/** Observes a network. */
export interface NetworkObserver {
  /** A request is made. */
  onRequest(request: SimRequest): void;
  /** An answer, or the lack of one, reaches the program. `status` 0: the connection failed. */
  onAnswer(request: SimRequest, status: number, retryAfterMs: number | undefined): void;
  /** The program cancels a response that it was reading. */
  onGivenUp(request: SimRequest): void;
  /** An ERROR event that refuses the resourceVersion reaches the program. */
  onUnavailable(request: SimRequest): void;
  log(text: string): void;
}

/** How the responses to a program arrive. */
export interface FetchStyle {
  readonly chunking: Chunking;
  readonly byteStream: boolean;
  /**
   * Requests for reads of the served cache: their pages have at
   * most so many objects; 0 for as many as requested.
   */
  readonly questions?: { readonly maxPage: number };
}

/** What a network is made of. */
export interface NetworkOptions {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly servers: readonly ServerModel[];
  readonly settings: ServerSettings;
  readonly observer: NetworkObserver;
  /** Permanent properties of this network. */
  readonly calm?: Partial<NetworkState>;
}

/** The calm state. */
export function calm(): NetworkState {
  return {
    refusals: {},
    refusalChance: 1,
    latencyMs: [1, 8],
    frameGapMs: 0,
    cutListChance: 0,
    silentListChance: 0,
    slowListMs: 0,
    sticky: undefined,
    streams: "pass",
    probes: "pass",
    longestAnswerMs: undefined,
  };
}

const encoder = new TextEncoder();

/** All connections of a world. */
export class NetworkModel {
  readonly #options: NetworkOptions;
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #weather: Weather;
  readonly #open = new Set<SimRequest>();
  #requests = 0;
  readonly #lastBytesMs = new Map<number, number>();
  state: NetworkState;

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.state = { ...calm(), ...options.calm };
    this.#time = options.time;
    this.#random = options.random;
    const latencyMs = () => this.#random.int(this.state.latencyMs[0], this.state.latencyMs[1]);
    const frameGapMs = () => this.state.frameGapMs;
    this.#weather = {
      latencyMs,
      get frameGapMs() {
        return frameGapMs();
      },
    };
  }

  /** Requests that wait for an answer, and answers that are being read. */
  get open(): ReadonlySet<SimRequest> {
    return this.#open;
  }

  /** When the last byte of an answer reached a program, in the world's time; 0 if none has. */
  lastBytesMs(program: number): number {
    return this.#lastBytesMs.get(program) ?? 0;
  }

  /** How many requests were made. */
  get requests(): number {
    return this.#requests;
  }

  /** The `fetch` of one program. */
  fetchFor(
    program: number,
    scope: Scope,
    style: FetchStyle,
  ): FetchFunction {
    return (url, init) => {
      const accept = new Headers(init?.headers).get("Accept") ?? "";
      const metadataOnly = this.#options.settings.servesMetadata &&
        accept.includes("as=PartialObjectMetadata");
      const asked = metadataOnly ? { ...scope, metadataOnly } : scope;
      return this.#fetch(program, asked, style, new URL(url), init?.signal ?? undefined);
    };
  }

  /** Open watches, in the order they were opened. */
  watches(program?: number): SimRequest[] {
    const found: SimRequest[] = [];
    for (const request of this.#open) {
      if (request.verb !== "watch" || request.connection === undefined) continue;
      if (program === undefined || request.program === program) found.push(request);
    }
    return found;
  }

  /** Something happens to open watches. */
  injure(injury: Injury | "close" | "reset" | "silence", probability: number): void {
    for (const { id, connection } of this.watches()) {
      if (!this.#random.chance(probability)) continue;
      this.#options.observer.log(`request ${id}: ${injury}`);
      if (injury === "silence") connection!.silence();
      else if (injury === "close") connection!.cut("end");
      else if (injury === "reset") connection!.cut("reset");
      else connection!.injury = injury;
    }
  }

  /** A server shuts down: requests that wait for it fail. */
  abandon(server: ServerModel): void {
    for (const request of [...this.#open]) {
      if (request.server !== server || request.state !== "waiting") continue;
      this.#failures.get(request)?.("reset");
    }
  }

  /** Faults stop: bytes in flight arrive, and temporary faults end. */
  calmDown(): void {
    this.state = { ...calm(), ...this.#options.calm };
    for (const { connection } of this.#open) connection?.hurry();
  }

  /**
   * The watch of a program is too old, and so is every other until its
   * next list, as the first ERROR event may be lost.
   */
  expire(program: number): void {
    this.#expired.add(program);
    for (const { connection } of this.watches(program)) {
      for (const server of this.#options.servers) server.expire(connection!);
    }
  }

  /** Connections on which nothing will ever arrive, without an error. */
  silent(): SimRequest[] {
    return [...this.#open].filter((one) =>
      !one.isQuestion && (one.silentSinceMs !== undefined || one.connection?.silentSinceMs !== undefined)
    );
  }

  readonly #expired = new Set<number>();
  readonly #unlisten = new Map<SimRequest, () => void>();
  readonly #failures = new Map<SimRequest, (how: "reset" | "refused" | "unreachable") => void>();

  #fetch(
    program: number,
    scope: Scope,
    style: FetchStyle,
    { searchParams: query, pathname }: URL,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { observer } = this.#options;
    const isQuestion = style.questions !== undefined;
    const { maxPage = 0 } = style.questions ?? {};
    if (maxPage > 0 && Number(query.get("limit")) > maxPage) query.set("limit", String(maxPage));
    const request: SimRequest = {
      id: ++this.#requests,
      program,
      verb: query.get("watch") === "true" ? "watch" : "list",
      isQuestion,
      query,
      isOfCluster: pathname.endsWith("/namespaces/kube-system"),
      startMs: this.#time.worldNow(),
      connection: undefined,
      silentSinceMs: undefined,
      state: "waiting",
      status: 0,
      server: undefined,
    };
    this.#open.add(request);
    observer.onRequest(request);
    return new Promise<Response>((resolve, reject) => {
      const fail = (how: "reset" | "refused" | "unreachable") => {
        if (request.state !== "waiting") return;
        request.state = "failed";
        this.#forget(request);
        observer.onAnswer(request, 0, undefined);
        reject(this.#random.pick(FAILURES[how])());
      };
      this.#failures.set(request, fail);
      const onBytes = () => this.#lastBytesMs.set(program, this.#time.worldNow());
      const open = (): Connection => {
        const connection = new Connection({
          ...style,
          time: this.#time,
          random: this.#random,
          weather: this.#weather,
          log: (text) => observer.log(`request ${request.id}: ${text}`),
          onUnavailable: () => observer.onUnavailable(request),
          onBytes: (isEnd) => {
            // The end of a list completes it; that of a watch, and its
            // beginning, say nothing of the server's state.
            if (!isEnd || request.verb === "list") onBytes();
          },
          onClosed: (how) => {
            observer.log(`request ${request.id}: closed ${how}`);
            if (how === "byClient") observer.onGivenUp(request);
            this.#forget(request);
          },
        });
        request.connection = connection;
        const { longestAnswerMs } = this.state;
        if (longestAnswerMs !== undefined) this.#time.schedule(() => connection.cut("end"), longestAnswerMs);
        return connection;
      };
      // The head of a response has the latency of its bytes.
      const head = (status: number, headers: Readonly<Record<string, string>>, connection: Connection) => {
        this.#time.schedule(() => {
          if (request.state !== "waiting" || request.silentSinceMs !== undefined) return;
          request.state = "answered";
          request.status = status;
          this.#failures.delete(request);
          observer.onAnswer(request, status, this.#retryAfterMs(headers));
          resolve(
            new Response(connection.body, {
              status,
              headers: { "Content-Type": "application/json", ...headers },
            }),
          );
        }, 0);
      };
      const whole: Answer["whole"] = (status, body, headers = {}) => {
        if (request.state !== "waiting") return;
        const connection = open();
        const bytes = encoder.encode(body);
        head(status, headers, connection);
        const cut = request.verb === "list" && this.#random.chance(this.state.cutListChance);
        const silent = request.verb === "list" && this.#random.chance(this.state.silentListChance);
        if (cut || silent) {
          connection.send([{ bytes: bytes.slice(0, this.#random.int(0, bytes.length - 1)) }]);
          if (silent) connection.silence({ forGood: true });
          else if (this.#random.chance(0.5)) connection.end();
          else connection.reset();
          return;
        }
        const { slowListMs } = this.state;
        if (request.verb === "list" && status === 200 && slowListMs > 0 && !query.has("continue")) {
          connection.trickle(bytes, slowListMs);
        } else {
          connection.send([{ bytes }]);
        }
        connection.end();
      };
      const stream = (): Stream => {
        const connection = open();
        if (request.state === "waiting") head(200, {}, connection);
        else connection.close("byClient");
        return connection;
      };
      const onAbort = () => {
        if (request.state === "waiting") {
          request.state = "aborted";
          this.#forget(request);
          reject(signal!.reason);
        }
        request.connection?.abort(signal!.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#unlisten.set(request, () => signal?.removeEventListener("abort", onAbort));
      this.#time.schedule(() => {
        if (request.state === "waiting") this.#arrive(request, scope, { whole, stream }, fail);
      }, this.#weather.latencyMs());
    });
  }

  #arrive(
    request: SimRequest,
    scope: Scope,
    answer: Answer,
    fail: (how: "reset" | "refused" | "unreachable") => void,
  ): void {
    const { servers, observer } = this.#options;
    const refusal = this.state.refusals[request.verb];
    if (refusal !== undefined && this.#random.chance(this.state.refusalChance)) {
      observer.log(`request ${request.id}: meets ${refusal}`);
      return this.#refuse(request, refusal, answer, fail);
    }
    if (this.state.streams !== "pass" && request.query.get("sendInitialEvents") === "true") {
      observer.log(`request ${request.id}: ${this.state.streams}`);
      if (this.state.streams === "reset") return fail("reset");
      if (this.state.streams !== "unanswered") return this.#refuse(request, this.state.streams, answer, fail);
      request.silentSinceMs = this.#time.worldNow();
      return;
    }
    if (
      this.state.probes !== "pass" && request.isQuestion && request.verb === "list" && !request.isOfCluster
    ) {
      observer.log(`request ${request.id}: meets ${this.state.probes}`);
      return this.state.probes === "reset"
        ? fail("reset")
        : this.#refuse(request, this.state.probes, answer, fail);
    }
    const index = this.state.sticky ?? this.#random.int(0, servers.length - 1);
    const server = servers[index % servers.length];
    if (!server.isUp) return fail("refused");
    request.server = server;
    observer.log(`request ${request.id}: reaches ${server.name}`);
    const isFollowing = request.verb === "watch" && !request.query.has("sendInitialEvents");
    if (!isFollowing && !request.isQuestion && !request.isOfCluster) this.#expired.delete(request.program);
    if (isFollowing && this.#expired.has(request.program)) {
      return refuse(answer, newStatus(410, "Expired", "too old resource version"));
    }
    if (request.isOfCluster) server.namespace(answer);
    else if (request.verb === "list") server.list(scope, request.query, answer);
    else server.watch(scope, request.query, answer);
  }

  #refuse(
    request: SimRequest,
    refusal: Refusal,
    answer: Answer,
    fail: (how: "reset" | "refused" | "unreachable") => void,
  ): void {
    const seconds = this.#random.int(1, 20);
    switch (refusal) {
      case "refused":
      case "unreachable":
        return fail(refusal);
      case "silent":
        request.silentSinceMs = this.#time.worldNow();
        return;
      case "tooManySeconds":
        return answer.whole(429, "Too many requests, please try again later.\n", {
          "Content-Type": "text/plain",
          "Retry-After": String(seconds),
        });
      case "tooManyDate": {
        // The responding server has its own clock, and sends its time.
        const nowMs = this.#time.worldNow() + this.#random.pick([-3_600_000, 0, 3_600_000]);
        return answer.whole(429, "", {
          "Content-Type": "text/plain",
          "Retry-After": new Date(nowMs + seconds * 1_000).toUTCString(),
          Date: new Date(nowMs).toUTCString(),
        });
      }
      case "tooManyPlain":
        return answer.whole(429, "");
      case "internalError":
        return answer.whole(500, '{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}');
      case "badGateway":
        return answer.whole(502, "<html><h1>502 Bad Gateway</h1></html>", { "Content-Type": "text/html" });
      case "unavailableSeconds":
        return answer.whole(503, "", { "Retry-After": String(seconds) });
      case "gatewayTimeout":
        return answer.whole(504, "upstream request timeout", { "Content-Type": "text/plain" });
      case "forbidden":
        return answer.whole(
          403,
          '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}',
        );
      case "loginPage":
        return answer.whole(200, "<html>Please log in</html>", { "Content-Type": "text/html" });
      case "closedAtOnce":
        if (request.verb === "list") return answer.whole(200, "");
        return answer.stream().end();
      case "emptyStream": {
        answer.stream();
        request.connection!.silence({ forGood: true });
        return;
      }
    }
  }

  #retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
    const value = headers["Retry-After"];
    if (value === undefined) return undefined;
    return /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.parse(headers.Date);
  }

  #forget(request: SimRequest): void {
    this.#open.delete(request);
    this.#failures.delete(request);
    this.#unlisten.get(request)?.();
    this.#unlisten.delete(request);
  }
}

// The errors of the runtimes for a missing response.
const FAILURES: Readonly<Record<"reset" | "refused" | "unreachable", readonly (() => Error)[]>> = {
  refused: [
    () => new TypeError("error sending request: tcp connect error: Connection refused (os error 111)"),
    () =>
      Object.assign(new TypeError("fetch failed"), {
        cause: Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:6443"), { code: "ECONNREFUSED" }),
      }),
    () => Object.assign(new Error("Unable to connect."), { code: "ConnectionRefused" }),
  ],
  unreachable: [
    () => new TypeError("error sending request: dns error: failed to lookup address information"),
    () => Object.assign(new TypeError("fetch failed"), { cause: { code: "ETIMEDOUT" } }),
    () => new Error("internal error; reference = 0a1b2c"),
  ],
  reset: [
    () => new TypeError("error sending request: connection closed before message completed"),
    () =>
      Object.assign(new TypeError("fetch failed"), {
        cause: Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
      }),
  ],
};
