/**
 * What the API server's audit log has about a contestant: how many requests it sent, for what, and when. So
 * that all of them are counted by the same hand, with nothing between them and the server.
 *
 * @see https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
 * @module
 */

/** The API server's flag takes it as a file: the admin's requests, when they are answered. */
export const AUDIT_POLICY: string = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    { level: "None", users: ["system:apiserver"] },
    { level: "Metadata", userGroups: ["system:masters"] },
  ],
});

/** The part of a line that is read. */
interface AuditEvent {
  readonly stage: string;
  readonly verb: string;
  readonly stageTimestamp: string;
  readonly requestReceivedTimestamp: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string };
  readonly responseStatus?: { readonly code?: number };
}

const READ_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/** What a contestant did to the server. */
export interface Requests {
  readonly reads: number;
  readonly writes: number;
  /** The requests that were answered with an error, by code, such as `409`. */
  readonly failed: Readonly<Record<string, number>>;
  /**
   * How many, by what: `widgets/status patch`, `configmaps list`; `other get` is what is about no resource.
   */
  readonly byKind: Readonly<Record<string, number>>;
  /** How many different Widgets have got a status. */
  readonly withStatus: number;
  /**
   * The time from the first write's arrival to the answer to the last write of a status; `undefined` without
   * writes.
   */
  readonly workMs: number | undefined;
}

/** Reads lines of the audit log. */
export function requestsOf(log: string): Requests {
  const byKind: Record<string, number> = {};
  const failed: Record<string, number> = {};
  const withStatus = new Set<string>();
  let reads = 0;
  let writes = 0;
  let firstMs = Infinity;
  let lastMs = 0;
  for (const line of log.split("\n")) {
    if (line === "") continue;
    const event = JSON.parse(line) as AuditEvent;
    const { verb, stage, objectRef: { resource, subresource, name = "" } = {} } = event;
    // A watch is a request when it begins; it may end in the time of the next contestant.
    if (stage !== (verb === "watch" ? "ResponseStarted" : "ResponseComplete")) continue;
    const what = resource === undefined ? "other" : [resource, subresource].filter(Boolean).join("/");
    const kind = `${what} ${verb}`;
    byKind[kind] = (byKind[kind] ?? 0) + 1;
    const code = event.responseStatus?.code ?? 0;
    const isError = code >= 400;
    if (isError) failed[code] = (failed[code] ?? 0) + 1;
    if (READ_VERBS.has(verb)) {
      reads++;
      continue;
    }
    writes++;
    firstMs = Math.min(firstMs, milliseconds(event.requestReceivedTimestamp));
    if (isError || what !== "widgets/status") continue;
    withStatus.add(name);
    lastMs = Math.max(lastMs, milliseconds(event.stageTimestamp));
  }
  const workMs = withStatus.size > 0 ? lastMs - firstMs : undefined;
  return { reads, writes, failed, byKind, withStatus: withStatus.size, workMs };
}

/** The milliseconds of a time with microseconds. */
function milliseconds(time: string): number {
  const [seconds, fraction = "0"] = time.replace("Z", "").split(".");
  return Date.parse(`${seconds}Z`) + Number(`0.${fraction}`) * 1_000;
}
