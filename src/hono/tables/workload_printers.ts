/** Columns of workloads: the groups apps, autoscaling and batch. */

import {
  AGE,
  ageAt,
  at,
  BOOLEAN,
  type Cell,
  type CellColumn,
  count,
  Duration,
  entryAt,
  firstOf,
  INTEGER,
  integer,
  integerAt,
  isConditionTrue,
  itemsAt,
  labels,
  NAME,
  type Printer,
  printer,
  reference,
  scalar,
  scalarText,
  selected,
  selectorText,
  since,
  text,
  textAt,
  WIDE,
} from "./columns.ts";
import { containerColumns, REPLICA_COLUMNS } from "./core_printers.ts";

const TEMPLATE = "spec.template";

function selector(path: string): CellColumn {
  return ["Selector", "The labels of its pods.", selected(path), WIDE];
}

const readyOfDesired: Cell = (object) =>
  `${integerAt(object, "status.readyReplicas")}/${integerAt(object, "spec.replicas")}`;

// The first that applies.
const JOB_STATES = [
  ["Complete", "Complete"],
  ["Failed", "Failed"],
  ["", "Terminating"],
  ["Suspended", "Suspended"],
  ["FailureTarget", "FailureTarget"],
  ["SuccessCriteriaMet", "SuccessCriteriaMet"],
];

const jobStatus: Cell = (job) => {
  const isNow = (condition: string) =>
    condition === "" ? job.metadata?.deletionTimestamp : isConditionTrue(job, condition);
  return JOB_STATES.find(([condition]) => isNow(condition))?.[1] ?? "Running";
};

function completions(job: unknown): string {
  const succeeded = integerAt(job, "status.succeeded");
  const wanted = at(job, "spec.completions");
  if (typeof wanted === "number") return `${succeeded}/${wanted}`;
  const parallelism = integerAt(job, "spec.parallelism");
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: unknown, nowMs: number): unknown {
  const start = textAt(job, "status.startTime");
  if (start === "") return "";
  const end = textAt(job, "status.completionTime");
  if (end === "") return since(start, nowMs);
  return new Duration(Date.parse(end) - Date.parse(start));
}

function suspend(cronJob: unknown): string {
  const value = at(cronJob, "spec.suspend");
  return typeof value !== "boolean" ? "<unset>" : value ? "True" : "False";
}

const controller: Cell = (object) => {
  const owner = object.metadata?.ownerReferences?.find((reference) => reference.controller);
  if (owner === undefined) return "<none>";
  const { apiVersion, kind, name } = owner;
  const group = apiVersion.includes("/") ? `.${apiVersion.slice(0, apiVersion.indexOf("/"))}` : "";
  return `${(kind + group).toLowerCase()}/${name}`;
};

export const WORKLOAD_PRINTERS: Readonly<Record<string, Printer>> = {
  "apps/controllerrevisions": printer(
    NAME,
    ["Controller", "The owner of the revision.", controller],
    ["Revision", "The number of the revision.", integer("revision")],
    AGE,
  ),
  "apps/daemonsets": printer(
    NAME,
    ["Desired", "The number of nodes that should run it.", integer("status.desiredNumberScheduled"), INTEGER],
    ["Current", "The number of those that run it.", integer("status.currentNumberScheduled"), INTEGER],
    ["Ready", "The number of nodes with a ready pod.", integer("status.numberReady"), INTEGER],
    ["Up-to-date", "The number of nodes with a new pod.", integer("status.updatedNumberScheduled"), INTEGER],
    ["Available", "The number of nodes with an available pod.", integer("status.numberAvailable"), INTEGER],
    ["Node Selector", "The labels of nodes that run the pod.", labels(`${TEMPLATE}.spec.nodeSelector`)],
    AGE,
    ...containerColumns(TEMPLATE),
    selector("spec.selector"),
  ),
  "apps/deployments": printer(
    NAME,
    ["Ready", "The number of ready pods, of the wanted ones.", readyOfDesired],
    ["Up-to-date", "The number of pods of the present template.", integer("status.updatedReplicas")],
    ["Available", "The number of pods that are ready long enough.", integer("status.availableReplicas")],
    AGE,
    ...containerColumns(TEMPLATE),
    ["Selector", "The labels of its pods.", (one) => selectorText(one, "spec.selector", "<invalid>"), WIDE],
  ),
  "apps/replicasets": printer(...REPLICA_COLUMNS, selector("spec.selector")),
  "autoscaling/scales": printer(
    [NAME[0], NAME[1], NAME[2]],
    ["Desired", "The wanted number of pods.", integer("spec.replicas"), INTEGER],
    ["Available", "The number of pods.", integer("status.replicas"), INTEGER],
    AGE,
  ),
  "apps/statefulsets": printer(
    NAME,
    ["Ready", "The number of ready pods, of the wanted ones.", readyOfDesired],
    AGE,
    ...containerColumns(TEMPLATE),
  ),
  "autoscaling/horizontalpodautoscalers": printer(
    NAME,
    ["Reference", "What is scaled.", reference("spec.scaleTargetRef")],
    ["Targets", "The metrics: present and target values.", metricsText],
    ["MinPods", "The lowest number of pods.", scalar("spec.minReplicas", "<unset>")],
    ["MaxPods", "The highest number of pods.", integer("spec.maxReplicas")],
    ["Replicas", "The number of pods.", integer("status.currentReplicas")],
    AGE,
  ),
  "batch/cronjobs": printer(
    NAME,
    ["Schedule", "When jobs are started.", text("spec.schedule")],
    ["Timezone", "The time zone of the schedule.", text("spec.timeZone", "<none>")],
    ["Suspend", "Whether no more jobs are started.", suspend, BOOLEAN],
    ["Active", "The number of running jobs.", count("status.active"), INTEGER],
    ["Last Schedule", "The time since a job was last started.", ageAt("status.lastScheduleTime", "<none>")],
    AGE,
    ...containerColumns("spec.jobTemplate.spec.template"),
    selector("spec.jobTemplate.spec.selector"),
  ),
  "batch/jobs": printer(
    NAME,
    ["Status", "The state of the job.", jobStatus],
    ["Completions", "The number of pods that succeeded, of the wanted ones.", completions],
    ["Duration", "How long the job has run.", jobDuration],
    AGE,
    ...containerColumns(TEMPLATE),
    selector("spec.selector"),
  ),
};

/** The first two metrics of an autoscaler: present and target values. */
function metricsText(autoscaler: unknown): string {
  const [specs, statuses] = at(autoscaler, "spec.metrics") === undefined
    ? metricsOfV1(autoscaler)
    : [itemsAt(autoscaler, "spec.metrics"), itemsAt(autoscaler, "status.currentMetrics")];
  const shown = specs.map((spec, i) => metric(spec, statuses[i]));
  return shown.length === 0 ? "<none>" : firstOf(shown, { most: 2, separator: ", " });
}

function metric(spec: unknown, status: unknown): string {
  const type = textAt(spec, "type");
  const field = sourceField(type);
  const wanted = at(spec, `${field}.target`);
  const present = at(status, `${field}.current`);
  const quantity = (value: unknown) => scalarText(value, "<nil>");
  const average = scalarText(at(wanted, "averageValue"), "");
  switch (type) {
    case "Pods":
      return `${present === undefined ? "<unknown>" : quantity(at(present, "averageValue"))}/${
        average || "<nil>"
      }`;
    case "External":
    case "Object": {
      if (average !== "") {
        return `${scalarText(at(present, "averageValue"), "<unknown>")}/${average} (avg)`;
      }
      const current = present === undefined ? "<unknown>" : quantity(at(present, "value"));
      return `${current}/${quantity(at(wanted, "value"))}`;
    }
    case "Resource":
    case "ContainerResource": {
      const name = textAt(spec, `${field}.name`);
      if (average !== "") {
        const current = present === undefined ? "<unknown>" : quantity(at(present, "averageValue"));
        return `${name}: ${current}/${average}`;
      }
      const percent = (of: unknown, absent: string) => {
        const value = at(of, "averageUtilization");
        return typeof value === "number" ? `${value}%` : absent;
      };
      return `${name}: ${percent(present, "<unknown>")}/${percent(wanted, "<auto>")}`;
    }
    default:
      return "<unknown type>";
  }
}

/**
 * Specs and statuses of autoscaling/v1 in the form of autoscaling/v2. That version has one metric in fields
 * of its own, and the others in annotations, see
 * https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/autoscaling/v1/conversion.go
 */
function metricsOfV1(autoscaler: unknown): [specs: unknown[], statuses: unknown[]] {
  const specs = annotated(autoscaler, "metrics").map((one) => inV2(one, "target"));
  const target = at(autoscaler, "spec.targetCPUUtilizationPercentage");
  if (typeof target === "number") specs.push(cpu("target", target));
  const statuses = annotated(autoscaler, "current-metrics").map((one) => inV2(one, "current"));
  const current = at(autoscaler, "status.currentCPUUtilizationPercentage");
  if (statuses.length === 0 && typeof current === "number") statuses.push(cpu("current", current));
  return [specs, statuses];
}

function annotated(autoscaler: unknown, name: string): unknown[] {
  try {
    const json = entryAt(autoscaler, "metadata.annotations", `autoscaling.alpha.kubernetes.io/${name}`);
    const found: unknown = JSON.parse(json ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function cpu(field: "target" | "current", averageUtilization: number): unknown {
  return { type: "Resource", resource: { name: "cpu", [field]: { averageUtilization } } };
}

function inV2(metric: unknown, field: "target" | "current"): unknown {
  const type = textAt(metric, "type");
  const source = sourceField(type);
  const value = (name: string) => at(metric, `${source}.${field}${name}`);
  const values = {
    averageValue: value("AverageValue") ?? at(metric, `${source}.averageValue`),
    averageUtilization: value("AverageUtilization"),
    value: value("Value"),
  };
  return { type, [source]: { name: at(metric, `${source}.name`), [field]: values } };
}

/** `ContainerResource` is in the field `containerResource`. */
function sourceField(type: string): string {
  return type.charAt(0).toLowerCase() + type.slice(1);
}
