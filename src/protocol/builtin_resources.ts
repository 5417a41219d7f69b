/** The resources of Kubernetes itself. */

import { type ApiResource, words } from "./api_resource.ts";
import { type GroupVersionResource, parseResource } from "../meta/resource.ts";

type Row = readonly [
  resource: string,
  kind: string,
  scope: "Namespaced" | "Cluster",
  more?: Pick<
    ApiResource,
    "shortNames" | "categories" | "fieldSelectors" | "singularName" | "deprecationWarning"
  >,
];

const NAME = "metadata.name";
const NAMESPACE = "metadata.namespace";
const ALL = ["all"];
const EXTENSION = { categories: ["api-extensions"] };

// As kube-apiserver 1.36 describes them. Fields: those that its conversion functions accept, such as
// https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/v1/conversion.go
const TABLE: ReadonlyMap<string, readonly Row[]> = new Map<string, readonly Row[]>([
  ["v1", [
    ["configmaps", "ConfigMap", "Namespaced", { shortNames: ["cm"] }],
    ["endpoints", "Endpoints", "Namespaced", {
      shortNames: ["ep"],
      deprecationWarning: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    }],
    ["events", "Event", "Namespaced", {
      shortNames: ["ev"],
      fieldSelectors: words(`
        involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid
        involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason
        reportingComponent source type metadata.namespace metadata.name
      `),
    }],
    ["limitranges", "LimitRange", "Namespaced", { shortNames: ["limits"] }],
    ["namespaces", "Namespace", "Cluster", { shortNames: ["ns"], fieldSelectors: ["status.phase", NAME] }],
    ["nodes", "Node", "Cluster", { shortNames: ["no"], fieldSelectors: [NAME, "spec.unschedulable"] }],
    ["persistentvolumeclaims", "PersistentVolumeClaim", "Namespaced", { shortNames: ["pvc"] }],
    ["persistentvolumes", "PersistentVolume", "Cluster", { shortNames: ["pv"] }],
    ["pods", "Pod", "Namespaced", {
      shortNames: ["po"],
      categories: ALL,
      fieldSelectors: words(`
        metadata.name metadata.namespace spec.nodeName spec.host spec.restartPolicy spec.schedulerName
        spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs
        status.nominatedNodeName
      `),
    }],
    ["podtemplates", "PodTemplate", "Namespaced"],
    ["replicationcontrollers", "ReplicationController", "Namespaced", {
      shortNames: ["rc"],
      categories: ALL,
      fieldSelectors: [NAME, NAMESPACE, "status.replicas"],
    }],
    ["resourcequotas", "ResourceQuota", "Namespaced", { shortNames: ["quota"] }],
    ["secrets", "Secret", "Namespaced", { fieldSelectors: ["type", NAMESPACE, NAME] }],
    ["serviceaccounts", "ServiceAccount", "Namespaced", { shortNames: ["sa"] }],
    ["services", "Service", "Namespaced", {
      shortNames: ["svc"],
      categories: ALL,
      fieldSelectors: [NAMESPACE, NAME, "spec.clusterIP", "spec.type"],
    }],
  ]],
  ["apps/v1", [
    ["controllerrevisions", "ControllerRevision", "Namespaced"],
    ["daemonsets", "DaemonSet", "Namespaced", { shortNames: ["ds"], categories: ALL }],
    ["deployments", "Deployment", "Namespaced", { shortNames: ["deploy"], categories: ALL }],
    ["replicasets", "ReplicaSet", "Namespaced", { shortNames: ["rs"], categories: ALL }],
    ["statefulsets", "StatefulSet", "Namespaced", { shortNames: ["sts"], categories: ALL }],
  ]],
  ["batch/v1", [
    ["cronjobs", "CronJob", "Namespaced", { shortNames: ["cj"], categories: ALL }],
    ["jobs", "Job", "Namespaced", {
      categories: ALL,
      fieldSelectors: [NAME, NAMESPACE, "status.successful"],
    }],
  ]],
  ["autoscaling/v2", [
    ["horizontalpodautoscalers", "HorizontalPodAutoscaler", "Namespaced", {
      shortNames: ["hpa"],
      categories: ALL,
    }],
  ]],
  ["networking.k8s.io/v1", [
    ["ingressclasses", "IngressClass", "Cluster"],
    ["ingresses", "Ingress", "Namespaced", { shortNames: ["ing"] }],
    ["ipaddresses", "IPAddress", "Cluster", { shortNames: ["ip"] }],
    ["networkpolicies", "NetworkPolicy", "Namespaced", { shortNames: ["netpol"] }],
    ["servicecidrs", "ServiceCIDR", "Cluster"],
  ]],
  ["policy/v1", [["poddisruptionbudgets", "PodDisruptionBudget", "Namespaced", { shortNames: ["pdb"] }]]],
  ["rbac.authorization.k8s.io/v1", [
    ["clusterrolebindings", "ClusterRoleBinding", "Cluster"],
    ["clusterroles", "ClusterRole", "Cluster"],
    ["rolebindings", "RoleBinding", "Namespaced"],
    ["roles", "Role", "Namespaced"],
  ]],
  ["storage.k8s.io/v1", [
    ["csidrivers", "CSIDriver", "Cluster"],
    ["csinodes", "CSINode", "Cluster"],
    ["csistoragecapacities", "CSIStorageCapacity", "Namespaced"],
    ["storageclasses", "StorageClass", "Cluster", { shortNames: ["sc"] }],
    ["volumeattachments", "VolumeAttachment", "Cluster"],
    ["volumeattributesclasses", "VolumeAttributesClass", "Cluster", { shortNames: ["vac"] }],
  ]],
  ["coordination.k8s.io/v1", [["leases", "Lease", "Namespaced"]]],
  ["discovery.k8s.io/v1", [["endpointslices", "EndpointSlice", "Namespaced"]]],
  ["admissionregistration.k8s.io/v1", [
    ["mutatingadmissionpolicies", "MutatingAdmissionPolicy", "Cluster", EXTENSION],
    ["mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "Cluster", EXTENSION],
    ["mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "Cluster", EXTENSION],
    ["validatingadmissionpolicies", "ValidatingAdmissionPolicy", "Cluster", EXTENSION],
    ["validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "Cluster", EXTENSION],
    ["validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "Cluster", EXTENSION],
  ]],
  ["apiextensions.k8s.io/v1", [
    ["customresourcedefinitions", "CustomResourceDefinition", "Cluster", {
      shortNames: ["crd", "crds"],
      ...EXTENSION,
    }],
  ]],
  ["apiregistration.k8s.io/v1", [["apiservices", "APIService", "Cluster", EXTENSION]]],
  ["certificates.k8s.io/v1", [
    ["certificatesigningrequests", "CertificateSigningRequest", "Cluster", {
      shortNames: ["csr"],
      fieldSelectors: [NAME, "spec.signerName"],
    }],
  ]],
  ["flowcontrol.apiserver.k8s.io/v1", [
    ["flowschemas", "FlowSchema", "Cluster"],
    ["prioritylevelconfigurations", "PriorityLevelConfiguration", "Cluster"],
  ]],
  ["node.k8s.io/v1", [["runtimeclasses", "RuntimeClass", "Cluster"]]],
  ["resource.k8s.io/v1", [
    ["deviceclasses", "DeviceClass", "Cluster"],
    ["resourceclaims", "ResourceClaim", "Namespaced"],
    ["resourceclaimtemplates", "ResourceClaimTemplate", "Namespaced"],
    ["resourceslices", "ResourceSlice", "Cluster", {
      fieldSelectors: [NAME, "spec.nodeName", "spec.driver"],
    }],
  ]],
  ["scheduling.k8s.io/v1", [["priorityclasses", "PriorityClass", "Cluster", { shortNames: ["pc"] }]]],
]);

// The same objects as above, at other paths.
const OTHER_VERSIONS: ReadonlyMap<string, readonly Row[]> = new Map<string, readonly Row[]>([
  ["autoscaling/v1", [
    ["horizontalpodautoscalers", "HorizontalPodAutoscaler", "Namespaced", {
      shortNames: ["hpa"],
      categories: ALL,
    }],
  ]],
  ["events.k8s.io/v1", [
    ["events", "Event", "Namespaced", {
      shortNames: ["ev"],
      fieldSelectors: words(`
        reason regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion
        regarding.resourceVersion regarding.fieldPath reportingController type metadata.namespace metadata.name
      `),
    }],
  ]],
]);

/** The description of a built-in resource, or `undefined` for every other. */
export function builtinResource(gvr: GroupVersionResource): ApiResource | undefined {
  const { group, version } = gvr;
  const groupVersion = group === "" ? version : `${group}/${version}`;
  const rows = TABLE.get(groupVersion) ?? OTHER_VERSIONS.get(groupVersion);
  const row = rows?.find(([resource]) => resource === gvr.resource);
  return row === undefined ? undefined : apiResource(group, version, row);
}

/**
 * The description of a resource that is given as an option: itself, or that of a built-in resource by its
 * name.
 *
 * @param purpose What it is for, for the error: `serve`, say.
 * @throws {TypeError} It is the name of no built-in resource.
 */
export function describedResource(resource: string | ApiResource, purpose: string): ApiResource {
  if (typeof resource !== "string") return resource;
  const found = builtinResource(parseResource(resource));
  if (found !== undefined) return found;
  throw new TypeError(
    `Cannot ${purpose} ${
      JSON.stringify(resource)
    }: it is none of Kubernetes' own resources that are known here; ` +
      'describe it: { group, version, resource, kind: "...", namespaced: true }',
  );
}

/** All built-in resources that this library knows, each in one version. */
export function builtinResources(): ApiResource[] {
  const resources: ApiResource[] = [];
  for (const [groupVersion, rows] of TABLE) {
    const [version, group = ""] = groupVersion.split("/").reverse();
    for (const row of rows) resources.push(apiResource(group, version, row));
  }
  return resources;
}

function apiResource(group: string, version: string, row: Row): ApiResource {
  const [resource, kind, scope, more] = row;
  return { group, version, resource, kind, namespaced: scope === "Namespaced", ...more };
}
