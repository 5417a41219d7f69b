/** The subresources of objects: those that are read from the object itself, and those that no cache has. */

import { labelSelectorFromSet, labelSelectorFromSpec, type LabelSelectorSpec } from "../meta/labels.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { errorMessage } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import { type GroupResource, isStatus } from "./statuses.ts";
import { type ApiResource, isBuiltinGroup, words } from "./api_resource.ts";
import { valueAt } from "./selectable_fields.ts";

/** The description of a `Scale`. */
export const SCALE: ApiResource = {
  group: "autoscaling",
  version: "v1",
  resource: "scales",
  kind: "Scale",
  namespaced: true,
};

/** The subresources of a resource that are read from the object itself, in the order of discovery. */
export function subresourcesOf(resource: ApiResource): readonly string[] {
  const { group, resource: name, subresources } = resource;
  const found: string[] = [];
  if (!isBuiltinGroup(group)) {
    // In the order of a definition.
    if (subresources?.status === true) found.push("status");
    if (subresources?.scale !== undefined) found.push("scale");
    return found;
  }
  // A built-in resource has them in the order of their names.
  found.push(...(HAS_MORE.get(`${group}/${name}`) ?? []));
  if (HAS_SCALE.has(`${group}/${name}`)) found.push("scale");
  if (HAS_STATUS.has(`${group}/${name}`)) found.push("status");
  return found;
}

// As kube-apiserver v1.37 lists them in its discovery documents.
const HAS_STATUS: ReadonlySet<string> = new Set(words(`
  /namespaces /nodes /persistentvolumeclaims /persistentvolumes /pods /replicationcontrollers
  /resourcequotas /services admissionregistration.k8s.io/validatingadmissionpolicies
  apiextensions.k8s.io/customresourcedefinitions apiregistration.k8s.io/apiservices apps/daemonsets
  apps/deployments apps/replicasets apps/statefulsets autoscaling/horizontalpodautoscalers batch/cronjobs
  batch/jobs certificates.k8s.io/certificatesigningrequests certificates.k8s.io/podcertificaterequests
  flowcontrol.apiserver.k8s.io/flowschemas flowcontrol.apiserver.k8s.io/prioritylevelconfigurations
  networking.k8s.io/ingresses networking.k8s.io/servicecidrs policy/poddisruptionbudgets
  resource.k8s.io/devicetaintrules resource.k8s.io/resourceclaims storage.k8s.io/csinodes
  storage.k8s.io/volumeattachments storagemigration.k8s.io/storageversionmigrations
`));
const HAS_SCALE: ReadonlySet<string> = new Set(words(`
  /replicationcontrollers apps/deployments apps/replicasets apps/statefulsets
`));
// A GET of these is the object: they are for writes of a part of it.
const HAS_MORE: ReadonlyMap<string, readonly string[]> = new Map([
  ["/pods", ["ephemeralcontainers", "resize"]],
  ["certificates.k8s.io/certificatesigningrequests", ["approval"]],
]);

/** Whether an API server has a Table of a subresource: not if it writes a part of the object. */
export function hasTable(subresource: string): boolean {
  return subresource === "scale" || subresource === "status";
}

// Writes, and connections to a node.
const ACTIONS: ReadonlySet<string> = new Set(words(`
  /namespaces/finalize /nodes/proxy /pods/attach /pods/binding /pods/ephemeralcontainers /pods/eviction
  /pods/exec /pods/log /pods/portforward /pods/proxy /pods/resize /serviceaccounts/token /services/proxy
  certificates.k8s.io/certificatesigningrequests/approval
`));

/** Whether an API server has a subresource of that name for more than reads of the object and its status. */
export function isAction({ group, resource }: GroupResource, subresource: string): boolean {
  return ACTIONS.has(`${group}/${resource}/${subresource}`);
}

/**
 * The `Scale` of an object, or the Status of one that has none: 500, where a custom resource has no number of
 * replicas at the path of its definition.
 */
export function scaleOf(resource: ApiResource, object: KubernetesObject): KubernetesObject | Status {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata ?? {};
  const scale = isBuiltinGroup(resource.group)
    ? builtinScale(resource, object)
    : customScale(resource, object);
  if (isStatus(scale)) return scale;
  const { replicas, current, selector } = scale;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: defined({ name, namespace, uid, resourceVersion, creationTimestamp }),
    // 0 and "" are left out, as by an API server.
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: current, ...(selector !== "" && { selector }) },
  } as KubernetesObject;
}

interface Scale {
  readonly replicas: number;
  readonly current: number;
  readonly selector: string;
}

function builtinScale(resource: ApiResource, object: KubernetesObject): Scale | Status {
  const { spec, status } = object as Fields;
  const { replicas = 1, selector } = spec ?? {};
  try {
    const labels = resource.group === ""
      ? labelSelectorFromSet((selector ?? {}) as Record<string, string>)
      : labelSelectorFromSpec((selector ?? {}) as LabelSelectorSpec);
    return { replicas: Number(replicas), current: Number(status?.replicas ?? 0), selector: String(labels) };
  } catch (error) {
    return internalError(errorMessage(error));
  }
}

interface Fields extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

function customScale({ subresources }: ApiResource, object: KubernetesObject): Scale | Status {
  const { specReplicasPath = "", statusReplicasPath = "", labelSelectorPath = "" } = subresources?.scale ??
    {};
  const replicas = valueOf(object, specReplicasPath);
  if (typeof replicas !== "number") {
    return internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);
  }
  const current = valueOf(object, statusReplicasPath);
  const selector = valueOf(object, labelSelectorPath);
  return {
    replicas,
    current: typeof current === "number" ? current : 0,
    selector: typeof selector === "string" ? selector : "",
  };
}

/** The value at a path such as `.spec.replicas`: names only, as the API server demands of these paths. */
function valueOf(object: KubernetesObject, path: string): unknown {
  return path.startsWith(".") ? valueAt(object, path.slice(1)) : undefined;
}

function internalError(message: string): Status {
  return newStatus(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });
}
