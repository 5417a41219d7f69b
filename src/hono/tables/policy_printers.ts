/**
 * Columns of the kinds that rule an API server: admission, access, certificates, priorities, extensions.
 * @module
 */

import {
  AGE,
  BOOLEAN,
  type Cell,
  type CellColumn,
  count,
  CREATED_AT,
  flag,
  INTEGER,
  integer,
  NAME,
  type Printer,
  printer,
  text,
  WIDE,
} from "./columns.ts";
import {
  at,
  conditionOf,
  countOf,
  firstOf,
  integerAt,
  isConditionTrue,
  itemsAt,
  labelsText,
  scalarText,
  textAt,
} from "./fields.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { humanDuration } from "./human_duration.ts";

const WEBHOOKS: CellColumn = ["Webhooks", "The number of webhooks.", count("webhooks"), INTEGER];
const POLICY_NAME: CellColumn = ["PolicyName", "The policy that is bound.", text("spec.policyName")];

const PARAM_KIND: CellColumn = ["ParamKind", "The kind of the policy's parameters.", (policy) => {
  const kind = at(policy, "spec.paramKind");
  return kind === undefined ? "<unset>" : `${textAt(kind, "apiVersion")}/${textAt(kind, "kind")}`;
}];

const PARAM_REF: CellColumn = ["ParamRef", "The parameters.", (binding) => {
  const reference = at(binding, "spec.paramRef");
  const name = textAt(reference, "name");
  if (name !== "") return `${textAt(reference, "namespace") || "*"}/${name}`;
  const selector = at(reference, "selector");
  return selector === undefined ? "<unset>" : goLabelSelector(selector);
}];

// As Go prints the struct.
function goLabelSelector(selector: unknown): string {
  const labels = Object.entries(at(selector, "matchLabels") ?? {}).sort(([a], [b]) => a < b ? -1 : 1);
  const requirements = itemsAt(selector, "matchExpressions").map((one) =>
    `LabelSelectorRequirement{Key:${textAt(one, "key")},Operator:${textAt(one, "operator")},` +
    `Values:[${itemsAt(one, "values").join(" ")}],},`
  );
  return `&LabelSelector{MatchLabels:map[string]string{${
    labels.map(([key, value]) => `${key}: ${value},`).join("")
  }},MatchExpressions:[]LabelSelectorRequirement{${requirements.join("")}},}`;
}

function apiService(object: unknown): string {
  const service = at(object, "spec.service");
  return service ? `${textAt(service, "namespace")}/${textAt(service, "name")}` : "Local";
}

function available(object: unknown): string {
  const condition = conditionOf(object, "Available");
  const [status, reason] = [textAt(condition, "status", "Unknown"), textAt(condition, "reason")];
  return status === "True" || reason === "" ? status : `${status} (${reason})`;
}

const subjects = (kind: string): Cell => (binding) =>
  itemsAt(binding, "subjects").filter((subject) => at(subject, "kind") === kind).map((subject) => {
    const name = textAt(subject, "name");
    return kind === "ServiceAccount" ? `${textAt(subject, "namespace")}/${name}` : name;
  }).join(", ");

const roleBindings = printer(
  NAME,
  ["Role", "The role.", (object) => `${textAt(object, "roleRef.kind")}/${textAt(object, "roleRef.name")}`],
  AGE,
  ["Users", "The users that have the role.", subjects("User"), WIDE],
  ["Groups", "The groups that have the role.", subjects("Group"), WIDE],
  ["ServiceAccounts", "The service accounts that have the role.", subjects("ServiceAccount"), WIDE],
);

function signingState(request: unknown): string {
  const has = (type: string) => conditionOf(request, type) !== undefined;
  const decision = has("Denied") ? "Denied" : has("Approved") ? "Approved" : "Pending";
  return decision + (has("Failed") ? ",Failed" : "") + (textAt(request, "status.certificate") && ",Issued");
}

function requestedDuration(request: unknown): string {
  const seconds = at(request, "spec.expirationSeconds");
  return typeof seconds === "number" ? humanDuration(seconds) : "<none>";
}

function certificateState(request: unknown): string {
  const states = itemsAt(request, "status.conditions").map((condition) => textAt(condition, "type"));
  return states.findLast((type) => ["Issued", "Denied", "Failed"].includes(type)) ?? "Pending";
}

const SIGNER: CellColumn = ["SignerName", "The signer.", text("spec.signerName", "<none>")];

const numberOrNone = (path: string): Cell => (object) => {
  const value = at(object, path);
  return typeof value === "number" ? value : "<none>";
};

function podGroupStatus(group: unknown): string {
  const disruption = conditionOf(group, "DisruptionTarget");
  if (disruption !== undefined) return textAt(disruption, "reason");
  if (conditionOf(group, "PodGroupScheduled") === undefined) return "Pending";
  return isConditionTrue(group, "PodGroupScheduled") ? "Scheduled" : "Unschedulable";
}

const storageVersions: Cell = (object) =>
  firstOf(
    itemsAt(object, "status.storageVersions").map((version) =>
      `${textAt(version, "apiServerID")}=${textAt(version, "encodingVersion")}`
    ),
    { most: 3 },
  ) || "<unset>";

const flowSchemas = printer(
  NAME,
  ["PriorityLevel", "The priority level.", text("spec.priorityLevelConfiguration.name")],
  ["MatchingPrecedence", "The order; the lowest number is first.", integer("spec.matchingPrecedence")],
  ["DistinguisherMethod", "What makes a flow.", text("spec.distinguisherMethod.type", "<none>")],
  AGE,
  [
    "MissingPL",
    "Whether the priority level is missing.",
    (schema) => textAt(conditionOf(schema, "Dangling"), "status", "?"),
  ],
);

function byPrecedence(a: KubernetesObject, b: KubernetesObject): number {
  const precedence = (schema: unknown) => integerAt(schema, "spec.matchingPrecedence");
  return precedence(a) - precedence(b) || (textAt(a, "metadata.name") < textAt(b, "metadata.name") ? -1 : 1);
}

const QUEUING = "spec.limited.limitResponse.queuing";

/** Printers by group and resource. */
export const POLICY_PRINTERS: Readonly<Record<string, Printer>> = {
  "admissionregistration.k8s.io/mutatingadmissionpolicies": printer(
    NAME,
    ["Mutations", "The number of mutations.", count("spec.mutations"), INTEGER],
    PARAM_KIND,
    AGE,
  ),
  "admissionregistration.k8s.io/mutatingadmissionpolicybindings": printer(NAME, POLICY_NAME, PARAM_REF, AGE),
  "admissionregistration.k8s.io/mutatingwebhookconfigurations": printer(NAME, WEBHOOKS, AGE),
  "admissionregistration.k8s.io/validatingadmissionpolicies": printer(
    NAME,
    ["Validations", "The number of rules.", count("spec.validations"), INTEGER],
    PARAM_KIND,
    AGE,
  ),
  "admissionregistration.k8s.io/validatingadmissionpolicybindings": printer(
    NAME,
    POLICY_NAME,
    PARAM_REF,
    AGE,
  ),
  "admissionregistration.k8s.io/validatingwebhookconfigurations": printer(NAME, WEBHOOKS, AGE),
  "apiextensions.k8s.io/customresourcedefinitions": printer(NAME, CREATED_AT),
  "apiregistration.k8s.io/apiservices": printer(
    NAME,
    ["Service", "The service that answers, or Local.", apiService],
    ["Available", "Whether the service is available.", available],
    AGE,
  ),
  "certificates.k8s.io/certificatesigningrequests": printer(
    NAME,
    AGE,
    SIGNER,
    ["Requestor", "Who sent the request.", text("spec.username")],
    ["RequestedDuration", "How long the certificate should be valid.", requestedDuration],
    ["Condition", "Whether the request is approved, and the certificate issued.", signingState],
  ),
  "certificates.k8s.io/clustertrustbundles": printer(NAME, SIGNER),
  "certificates.k8s.io/podcertificaterequests": printer(
    NAME,
    ["PodName", "The pod.", text("spec.podName")],
    ["ServiceAccountName", "The pod's service account.", text("spec.serviceAccountName")],
    ["NodeName", "The pod's node.", text("spec.nodeName")],
    ["SignerName", "The signer.", text("spec.signerName")],
    ["State", "Whether the certificate is issued.", certificateState],
    [
      "UnverifiedUserAnnotations",
      "What the pod says, unverified.",
      (request) => labelsText(request, "spec.unverifiedUserAnnotations"),
    ],
  ),
  "flowcontrol.apiserver.k8s.io/flowschemas": { ...flowSchemas, order: byPrecedence },
  "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": printer(
    NAME,
    ["Type", "Exempt or Limited.", text("spec.type")],
    [
      "NominalConcurrencyShares",
      "The level's share of the server's seats.",
      numberOrNone("spec.limited.nominalConcurrencyShares"),
    ],
    ["Queues", "The number of queues.", numberOrNone(`${QUEUING}.queues`)],
    ["HandSize", "The number of queues of one flow.", numberOrNone(`${QUEUING}.handSize`)],
    ["QueueLengthLimit", "The number of requests of one queue.", numberOrNone(`${QUEUING}.queueLengthLimit`)],
    AGE,
  ),
  "internal.apiserver.k8s.io/storageversions": printer(
    NAME,
    [
      "CommonEncodingVersion",
      "The version that all API servers write.",
      text("status.commonEncodingVersion", "<unset>"),
    ],
    ["StorageVersions", "The version that each API server writes.", storageVersions],
    AGE,
  ),
  "node.k8s.io/runtimeclasses": printer(NAME, ["Handler", "The runtime that is used.", text("handler")], AGE),
  "rbac.authorization.k8s.io/clusterrolebindings": roleBindings,
  "rbac.authorization.k8s.io/clusterroles": printer(NAME, CREATED_AT),
  "rbac.authorization.k8s.io/rolebindings": roleBindings,
  "rbac.authorization.k8s.io/roles": printer(NAME, CREATED_AT),
  "scheduling.k8s.io/podgroups": printer(
    NAME,
    [
      "Policy",
      "Gang or Basic.",
      (group) => countOf(group, "spec.schedulingPolicy.gang") > 0 ? "Gang" : "Basic",
    ],
    [
      "Workload",
      "The workload.",
      (group) => scalarText(at(group, "spec.podGroupTemplateRef.workload.workloadName"), "<none>"),
    ],
    ["Status", "Whether the group is scheduled.", podGroupStatus],
    AGE,
  ),
  "scheduling.k8s.io/priorityclasses": printer(
    NAME,
    ["Value", "The priority.", (object) => integerAt(object, "value"), INTEGER],
    ["Global-Default", "Whether pods without a class have this one.", flag("globalDefault"), BOOLEAN],
    AGE,
    ["PreemptionPolicy", "Whether pods of lower priority are evicted.", text("preemptionPolicy")],
  ),
  "scheduling.k8s.io/workloads": printer(NAME, AGE),
};
