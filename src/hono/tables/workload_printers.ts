/** Columns of workloads: the groups apps, autoscaling and batch. */

import {
  AGE,
  ageAt,
  BOOLEAN,
  type Cell,
  type CellColumn,
  count,
  humanDuration,
  INTEGER,
  integer,
  labels,
  NAME,
  type Printer,
  printer,
  reference,
  scalar,
  selected,
  since,
  text,
  WIDE,
} from "./columns.ts";
import { containerColumns } from "./core_printers.ts";
import { at, integerAt, isConditionTrue, selectorText, textAt } from "./fields.ts";
import { metricsText } from "./autoscaler_metrics.ts";

const TEMPLATE = "spec.template";

function selector(path: string): CellColumn {
  return ["Selector", "The labels of its pods.", selected(path), WIDE];
}

const strictSelector: Cell = (object) => selectorText(object, "spec.selector", "<invalid>");

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

function jobDuration(job: unknown, nowMs: number): string {
  const start = textAt(job, "status.startTime");
  if (start === "") return "";
  const end = textAt(job, "status.completionTime");
  if (end === "") return since(start, nowMs);
  return humanDuration(Math.trunc((Date.parse(end) - Date.parse(start)) / 1000));
}

function suspend(cronJob: unknown): string {
  const value = at(cronJob, "spec.suspend");
  return typeof value !== "boolean" ? "<unset>" : value ? "True" : "False";
}

/** How a controller revision's owner is shown: kind, group and name. */
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
    ["Selector", "The labels of its pods.", strictSelector, WIDE],
  ),
  "apps/replicasets": printer(
    NAME,
    ["Desired", "The wanted number of pods.", integer("spec.replicas"), INTEGER],
    ["Current", "The number of pods.", integer("status.replicas"), INTEGER],
    ["Ready", "The number of ready pods.", integer("status.readyReplicas"), INTEGER],
    AGE,
    ...containerColumns(TEMPLATE),
    selector("spec.selector"),
  ),
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
