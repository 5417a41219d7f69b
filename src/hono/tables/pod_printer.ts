import type { KubernetesObject } from "../../meta/object.ts";
import { AGE, isConditionTrue, NAME, type Printer, printer, since, WIDE } from "./columns.ts";

interface Terminated {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly finishedAt?: string | null;
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string };
    readonly running?: object;
    readonly terminated?: Terminated;
  };
  readonly lastState?: { readonly terminated?: Terminated };
}

interface Condition {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
}

interface Pod extends KubernetesObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[];
    readonly readinessGates?: readonly { readonly conditionType: string }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly podIPs?: readonly { readonly ip?: string }[];
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly Condition[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

// The row of a pod whose shape cannot be read.
const UNKNOWN = () => "<unknown>";
const UNREADABLE = printer(
  NAME,
  ["Ready", "The number of ready containers, of all.", UNKNOWN],
  ["Status", "The state of the pod, in one word.", UNKNOWN],
  ["Restarts", "How often containers were restarted, and the time since the last restart.", UNKNOWN],
  AGE,
  ["IP", "The pod's first address.", UNKNOWN, WIDE],
  ["Node", "The node that the pod runs on.", UNKNOWN, WIDE],
  ["Nominated Node", "The node where the pod may run once others have been evicted.", UNKNOWN, WIDE],
  ["Readiness Gates", "The number of true readiness gates, of all.", UNKNOWN, WIDE],
);

// The fields that decide whether the other containers count.
const OF_INIT_CONTAINERS = [
  "spec.initContainers[].name",
  "spec.initContainers[].restartPolicy",
  "status.conditions",
  "status.initContainerStatuses",
];

/** The columns of pods: how many containers are ready, and the one word that says best how the pod is. */
export const podPrinter: Printer = {
  columns: UNREADABLE.columns,
  reads: [
    ["metadata.name"],
    ["spec.containers[].name", "status.containerStatuses[].ready", "status.containerStatuses[].state"],
    [
      "metadata.deletionTimestamp",
      "status.phase",
      "status.reason",
      "status.containerStatuses[].ready",
      "status.containerStatuses[].state",
      "status.initContainerStatuses",
    ],
    ["status.containerStatuses[].restartCount"],
    ["metadata.creationTimestamp"],
    ["status.podIPs"],
    ["spec.nodeName"],
    ["status.nominatedNodeName"],
    ["spec.readinessGates", "status.conditions"],
  ],
  readsRarely: [
    { fields: [] },
    { fields: OF_INIT_CONTAINERS },
    { fields: OF_INIT_CONTAINERS },
    // Init containers without a status are not restarted.
    { fields: OF_INIT_CONTAINERS, onlyWith: "status.initContainerStatuses" },
  ],
  // An order by restarts needs no more than their number.
  each: [undefined, undefined, undefined, (object) => {
    try {
      return String(summary(object).restarts);
    } catch {
      return UNKNOWN();
    }
  }],
  cells(object, nowMs) {
    try {
      return podCells(object, nowMs);
    } catch {
      return UNREADABLE.cells(object, nowMs);
    }
  },
  conditions(object) {
    const phase = (object as Pod).status?.phase;
    const completed = { type: "Completed", status: "True", reason: phase };
    if (phase === "Succeeded") return [{ ...completed, message: "The pod has completed successfully." }];
    return phase === "Failed" ? [{ ...completed, message: "The pod failed." }] : undefined;
  },
};

function podCells(object: KubernetesObject, nowMs: number): unknown[] {
  const pod = object as Pod;
  const { metadata, spec, status } = pod;
  const { ready, total, reason, restarts, lastRestart } = summary(pod);
  const restarted = restarts !== 0 && lastRestart !== undefined;
  return [
    metadata?.name ?? "",
    `${ready}/${total}`,
    reason,
    restarted ? `${restarts} (${since(lastRestart, nowMs)} ago)` : String(restarts),
    since(metadata?.creationTimestamp, nowMs),
    status?.podIPs?.[0]?.ip || "<none>",
    spec?.nodeName || "<none>",
    status?.nominatedNodeName || "<none>",
    readinessGates(pod),
  ];
}

/** Mutable while a pod is being summed up. */
interface Summary extends Restarts {
  ready: number;
  total: number;
  reason: string;
}

interface Restarts {
  restarts: number;
  /** When a container last ended before it was started again. */
  lastRestart: string | undefined;
}

// The order of these steps decides which of several true words is shown, as in `printPod` of
// https://github.com/kubernetes/kubernetes/blob/master/pkg/printers/internalversion/printers.go
function summary(pod: Pod): Summary {
  const { metadata, spec, status } = pod;
  const result: Summary = {
    ready: 0,
    total: spec?.containers?.length ?? 0,
    reason: status?.reason || status?.phase || "",
    restarts: 0,
    lastRestart: undefined,
  };
  const conditions = status?.conditions ?? [];
  if (conditions.some(({ type, reason }) => type === "PodScheduled" && reason === "SchedulingGated")) {
    result.reason = "SchedulingGated";
  }
  const sidecars = new Set<string>();
  for (const { name, restartPolicy } of spec?.initContainers ?? []) {
    if (restartPolicy === "Always") sidecars.add(name);
  }
  result.total += sidecars.size;

  const sidecarRestarts: Restarts = { restarts: 0, lastRestart: undefined };
  const isInitializing = addInitContainers(pod, { result, sidecars, sidecarRestarts });
  if (!isInitializing || isConditionTrue(pod, "Initialized")) {
    addContainers(pod, Object.assign(result, sidecarRestarts));
  }

  if (metadata?.deletionTimestamp) {
    const isTerminal = status?.phase === "Succeeded" || status?.phase === "Failed";
    if (status?.reason === "NodeLost") result.reason = "Unknown";
    else if (!isTerminal) result.reason = "Terminating";
  }
  return result;
}

/** Whether an init container still runs, or has failed. */
function addInitContainers(
  pod: Pod,
  { result, sidecars, sidecarRestarts }: {
    readonly result: Summary;
    readonly sidecars: ReadonlySet<string>;
    readonly sidecarRestarts: Restarts;
  },
): boolean {
  const statuses = pod.status?.initContainerStatuses ?? [];
  for (const [i, container] of statuses.entries()) {
    const { state } = container;
    const isSidecar = sidecars.has(container.name);
    addRestarts(result, container);
    if (isSidecar) addRestarts(sidecarRestarts, container);
    if (state?.terminated !== undefined && (state.terminated.exitCode ?? 0) === 0) continue;
    if (isSidecar && container.started) {
      if (container.ready) result.ready++;
      continue;
    }
    if (state?.terminated !== undefined) {
      result.reason = `Init:${endOf(state.terminated)}`;
    } else if (state?.waiting?.reason && state.waiting.reason !== "PodInitializing") {
      result.reason = `Init:${state.waiting.reason}`;
    } else {
      result.reason = `Init:${i}/${pod.spec?.initContainers?.length ?? 0}`;
    }
    return true;
  }
  return false;
}

function addContainers(pod: Pod, result: Summary): void {
  const statuses = pod.status?.containerStatuses ?? [];
  let hasRunning = false;
  let errorReason = "";
  // The first container has the last word.
  for (let i = statuses.length - 1; i >= 0; i--) {
    const container = statuses[i];
    const { state } = container;
    addRestarts(result, container);
    if (state?.waiting?.reason) {
      result.reason = state.waiting.reason;
    } else if (state?.terminated !== undefined) {
      result.reason = endOf(state.terminated);
      if (state.terminated.exitCode) errorReason = result.reason;
    } else if (container.ready && state?.running !== undefined) {
      hasRunning = true;
      result.ready++;
    }
  }
  if (result.reason !== "Completed") return;
  if (hasRunning && isConditionTrue(pod, "Ready")) result.reason = "Running";
  else if (errorReason !== "") result.reason = errorReason;
  else if (hasRunning) result.reason = "NotReady";
}

function addRestarts(to: Restarts, container: ContainerStatus): void {
  to.restarts += container.restartCount ?? 0;
  const finishedAt = container.lastState?.terminated?.finishedAt;
  if (!finishedAt) return;
  if (to.lastRestart === undefined || Date.parse(to.lastRestart) < Date.parse(finishedAt)) {
    to.lastRestart = finishedAt;
  }
}

function endOf({ reason, signal, exitCode }: Terminated): string {
  return reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode ?? 0}`);
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const met = gates.filter(({ conditionType }) => isConditionTrue(pod, conditionType));
  return `${met.length}/${gates.length}`;
}
