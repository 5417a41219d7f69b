/** The resources of Kubernetes itself. */

import type { ApiResource } from "./api_resource.ts";
import { type GroupVersionResource, parseResource } from "../meta/resource.ts";

const ENDPOINTS_WARNING = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

// As kube-apiserver 1.37 describes them: below a group and version, of each resource its name, kind and
// scope, its short names, categories, and the fields that its selectors accept; a row that is indented
// further continues the one above. Fields: those of the conversion functions, such as
// https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/v1/conversion.go
const TABLE = /* @__PURE__ */ read(`
v1
  configmaps ConfigMap ns cm
  endpoints Endpoints ns ep
  events Event ns ev - involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid
    involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason
    reportingComponent source type metadata.namespace metadata.name
  limitranges LimitRange ns limits
  namespaces Namespace cluster ns - status.phase metadata.name
  nodes Node cluster no - metadata.name spec.unschedulable
  persistentvolumeclaims PersistentVolumeClaim ns pvc
  persistentvolumes PersistentVolume cluster pv
  pods Pod ns po all metadata.name metadata.namespace spec.nodeName spec.host spec.restartPolicy
    spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs
    status.nominatedNodeName
  podtemplates PodTemplate ns
  replicationcontrollers ReplicationController ns rc all metadata.name metadata.namespace status.replicas
  resourcequotas ResourceQuota ns quota
  secrets Secret ns - - type metadata.namespace metadata.name
  serviceaccounts ServiceAccount ns sa
  services Service ns svc all metadata.namespace metadata.name spec.clusterIP spec.type
apps/v1
  controllerrevisions ControllerRevision ns
  daemonsets DaemonSet ns ds all
  deployments Deployment ns deploy all
  replicasets ReplicaSet ns rs all
  statefulsets StatefulSet ns sts all
batch/v1
  cronjobs CronJob ns cj all
  jobs Job ns - all metadata.name metadata.namespace status.successful
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler ns hpa all
networking.k8s.io/v1
  ingressclasses IngressClass cluster
  ingresses Ingress ns ing
  ipaddresses IPAddress cluster ip
  networkpolicies NetworkPolicy ns netpol
  servicecidrs ServiceCIDR cluster
policy/v1
  poddisruptionbudgets PodDisruptionBudget ns pdb
rbac.authorization.k8s.io/v1
  clusterrolebindings ClusterRoleBinding cluster
  clusterroles ClusterRole cluster
  rolebindings RoleBinding ns
  roles Role ns
storage.k8s.io/v1
  csidrivers CSIDriver cluster
  csinodes CSINode cluster
  csistoragecapacities CSIStorageCapacity ns
  storageclasses StorageClass cluster sc
  volumeattachments VolumeAttachment cluster
  volumeattributesclasses VolumeAttributesClass cluster vac
coordination.k8s.io/v1
  leases Lease ns
discovery.k8s.io/v1
  endpointslices EndpointSlice ns
admissionregistration.k8s.io/v1
  mutatingadmissionpolicies MutatingAdmissionPolicy cluster - api-extensions
  mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding cluster - api-extensions
  mutatingwebhookconfigurations MutatingWebhookConfiguration cluster - api-extensions
  validatingadmissionpolicies ValidatingAdmissionPolicy cluster - api-extensions
  validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding cluster - api-extensions
  validatingwebhookconfigurations ValidatingWebhookConfiguration cluster - api-extensions
apiextensions.k8s.io/v1
  customresourcedefinitions CustomResourceDefinition cluster crd,crds api-extensions
apiregistration.k8s.io/v1
  apiservices APIService cluster - api-extensions
certificates.k8s.io/v1
  certificatesigningrequests CertificateSigningRequest cluster csr - metadata.name spec.signerName
  clustertrustbundles ClusterTrustBundle cluster - - metadata.name spec.signerName
  podcertificaterequests PodCertificateRequest ns - - metadata.name spec.signerName spec.podName spec.nodeName
flowcontrol.apiserver.k8s.io/v1
  flowschemas FlowSchema cluster
  prioritylevelconfigurations PriorityLevelConfiguration cluster
node.k8s.io/v1
  runtimeclasses RuntimeClass cluster
resource.k8s.io/v1
  deviceclasses DeviceClass cluster
  devicetaintrules DeviceTaintRule cluster
  resourceclaims ResourceClaim ns
  resourceclaimtemplates ResourceClaimTemplate ns
  resourceslices ResourceSlice cluster - - metadata.name spec.nodeName spec.driver spec.pool.name
scheduling.k8s.io/v1
  priorityclasses PriorityClass cluster pc
storagemigration.k8s.io/v1
  storageversionmigrations StorageVersionMigration cluster
`);

// The same objects as above, at other paths.
const OTHER_VERSIONS = /* @__PURE__ */ read(`
autoscaling/v1
  horizontalpodautoscalers HorizontalPodAutoscaler ns hpa all
events.k8s.io/v1
  events Event ns ev - reason regarding.kind regarding.namespace regarding.name regarding.uid
    regarding.apiVersion regarding.resourceVersion regarding.fieldPath reportingController type
    metadata.namespace metadata.name
`);

function read(table: string): readonly ApiResource[] {
  const resources: ApiResource[] = [];
  let [version, group = ""]: string[] = [];
  for (const row of table.replace(/\n {4}/g, " ").trim().split("\n")) {
    const [resource, kind, scope, shortNames = "-", categories = "-", ...fieldSelectors] = row.trim().split(
      " ",
    );
    if (kind === undefined) {
      [version, group = ""] = resource.split("/").reverse();
      continue;
    }
    resources.push({
      group,
      version,
      resource,
      kind,
      namespaced: scope === "ns",
      ...(shortNames !== "-" && { shortNames: shortNames.split(",") }),
      ...(categories !== "-" && { categories: [categories] }),
      ...(fieldSelectors.length > 0 && { fieldSelectors }),
      ...(kind === "Endpoints" && { deprecationWarning: ENDPOINTS_WARNING }),
    });
  }
  return resources;
}

/** The description of a built-in resource, or `undefined` for every other. */
export function builtinResource({ group, version, resource }: GroupVersionResource): ApiResource | undefined {
  const isIt = (one: ApiResource) =>
    one.group === group && one.version === version && one.resource === resource;
  return TABLE.find(isIt) ?? OTHER_VERSIONS.find(isIt);
}

/** The description of a resource that is an option: itself, or that of a built-in resource by its name. */
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
  return TABLE.slice();
}
