/**
 * The faults, each as it happens to one client.
 * @module
 */

import { answerStatus, type RecordedRequest } from "../../src/testing/faults.ts";
import type { FaultProxy } from "../../tests/soak/fault_proxy.ts";
import type { Gate } from "./gate.ts";
import type { Writer } from "./history.ts";

/** What is between one client and the API server. */
export interface Line {
  /** The network. */
  readonly proxy: FaultProxy;
  /** Behind it. */
  readonly gate: Gate;
}

/** One row of the table for each client. */
export interface Fault {
  /** As in `--only`. */
  readonly name: string;
  /** As in the table. */
  readonly title: string;
  /** What happens, for the page. */
  readonly about: string;
  /** How long it lasts; a fault of a moment has none. The writer writes meanwhile. */
  readonly lastsMs?: number;
  /** How long clients have time to recover. */
  readonly limitMs: number;
  /** Whether the clients' attempts cannot be counted, as nothing listens. */
  readonly isUnseen?: boolean;
  /** Begins it; `version` is that of the last write. */
  begin(line: Line, version: number): void;
  /** Ends it. */
  end?(line: Line, version: number): Promise<void> | void;
  /** What is written at the end of the fault besides. */
  write?(writer: Writer): Promise<void>;
}

/** A frame with a Status in a watch. */
function errorFrame(code: number, reason: string, message: string): string {
  const object = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  return `${JSON.stringify({ type: "ERROR", object })}\n`;
}

const cutAll = ({ proxy }: Line) => {
  for (const connection of proxy.connections) connection.cut();
};

const isList = ({ method, query, isWatch }: RecordedRequest) =>
  method === "GET" && (!isWatch || query.sendInitialEvents === "true");

/**
 * Watches that resume from this version, or an older one, are answered
 * as kube-apiserver answers after a compaction.
 */
function expire({ gate }: Line, version: number): void {
  gate.intercept(() => {
    const headers = { "Content-Type": "application/json" };
    return new Response(errorFrame(410, "Expired", `too old resource version: ${version}`), { headers });
  }, {
    match: (request) =>
      request.isWatch && !isList(request) && Number(request.query.resourceVersion || Infinity) <= version,
  });
}

const removals = new WeakMap<Gate, () => void>();

/** Answers requests with a status until the fault ends. */
function refuse({ gate }: Line, ...[interceptor, options]: Parameters<Gate["intercept"]>): void {
  removals.set(gate, gate.intercept(interceptor, options));
}

const RETRY_AFTER_SECONDS = 5;

/** All faults, in the order of the page. */
export const FAULTS: readonly Fault[] = [
  {
    name: "cut",
    title: "connection cut in mid-event",
    about: "The next event arrives by half; then all connections are reset.",
    limitMs: 90_000,
    begin: (line) => line.gate.halveNextEvent(() => cutAll(line)),
  },
  {
    name: "silence",
    title: "half-open connection",
    about:
      "All open connections stay open and carry nothing, in either direction. New connections work. No reset ever " +
      "comes. The connections were quiet for 8 s before, so what notices silence by time does so that much sooner.",
    limitMs: 660_000,
    begin: ({ proxy }) => {
      for (const connection of proxy.connections) connection.blackHole();
    },
  },
  {
    name: "expired",
    title: "410 on resume",
    about:
      "All connections are reset, and a watch from any version up to that moment is answered with an ERROR event of " +
      "code 410, as after a compaction.",
    limitMs: 90_000,
    begin(line, version) {
      expire(line, version);
      cutAll(line);
    },
  },
  {
    name: "throttled",
    title: "429 with Retry-After",
    about:
      `All connections are reset. For 15 s each request is answered with 429 and \`Retry-After: ${RETRY_AFTER_SECONDS}\`.`,
    lastsMs: 15_000,
    limitMs: 90_000,
    begin(line) {
      refuse(line, answerStatus(429, { retryAfterSeconds: RETRY_AFTER_SECONDS }));
      cutAll(line);
    },
    end: ({ gate }) => removals.get(gate)?.(),
  },
  {
    name: "list-500",
    title: "500 on lists",
    about:
      "All connections are reset, versions up to that moment are 410, and for 20 s each list, streamed or not, is " +
      "answered with 500.",
    lastsMs: 20_000,
    limitMs: 120_000,
    begin(line, version) {
      refuse(line, answerStatus(500), { match: isList });
      expire(line, version);
      cutAll(line);
    },
    end: ({ gate }) => removals.get(gate)?.(),
  },
  {
    name: "away",
    title: "API server away for 60 s",
    about: "All connections are reset, and for 60 s nothing listens: connections are refused.",
    lastsMs: 60_000,
    limitMs: 120_000,
    isUnseen: true,
    begin(line) {
      line.proxy.refuse();
      cutAll(line);
    },
    end: ({ proxy }) => proxy.accept(),
  },
  {
    name: "balancer",
    title: "the same behind a load balancer",
    about:
      "All connections are reset, and for 60 s each new one is accepted and reset at once, as a load balancer does " +
      "that has no API server left. These attempts count as requests.",
    lastsMs: 60_000,
    limitMs: 120_000,
    begin(line) {
      line.proxy.turnAway(true);
      cutAll(line);
    },
    end: ({ proxy }) => proxy.turnAway(false),
  },
  {
    name: "short",
    title: "watches that end every second",
    about: "For 20 s each watch ends cleanly one second after it began, as behind a proxy with a time limit.",
    lastsMs: 20_000,
    limitMs: 90_000,
    begin: ({ gate }) => gate.limitWatches(1_000),
    end: ({ gate }) => gate.limitWatches(undefined),
  },
  {
    name: "slow",
    title: "slow events",
    about:
      "For 15 s watches are sent in pieces of 7 bytes, 2 ms apart, which split events and characters; changes come " +
      "faster than that.",
    lastsMs: 15_000,
    limitMs: 90_000,
    begin: ({ gate }) => gate.dribble({ bytes: 7, pauseMs: 2 }),
    end: ({ gate }) => gate.dribble(undefined),
  },
  {
    name: "lost-delete",
    title: "DELETED lost in a gap",
    about:
      "All connections are reset and refused for 5 s. Meanwhile 12 objects are deleted, and half of them created " +
      "again. Versions up to the end of the gap are 410, so that the deletes are never sent.",
    lastsMs: 5_000,
    limitMs: 90_000,
    isUnseen: true,
    begin(line) {
      line.proxy.refuse();
      cutAll(line);
    },
    write: (writer) => writer.deleteSome(12),
    end(line, version) {
      expire(line, version);
      return line.proxy.accept();
    },
  },
  {
    name: "error-event",
    title: "ERROR event in the stream",
    about: "Each open watch receives an ERROR event with a Status of code 500, and ends.",
    limitMs: 90_000,
    begin: ({ gate }) => gate.endWatches(errorFrame(500, "InternalError", "the watch failed")),
  },
];
