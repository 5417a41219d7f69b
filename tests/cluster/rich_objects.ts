/**
 * Objects of every kind that kube-apiserver lists, with what its Tables show of them.
 * @module
 */

import { pem } from "../sockets/certificates.ts";

/** An object to create, and its status, which is written afterwards. */
export interface RichObject {
  /** The resource, such as `apps/v1/deployments`. */
  readonly resource: string;
  readonly name: string;
  readonly spec: Record<string, unknown>;
  readonly status?: Record<string, unknown>;
  /** More metadata. */
  readonly metadata?: Record<string, unknown>;
  /** Deletes it after its creation; a finalizer keeps it. */
  readonly isDeleted?: boolean;
}

const SIGNING_REQUEST =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlId01JR1dBZ0VBTURReEd6QVpCZ05WQkFNTUVuTjVjM1JsYlRwdWIyUmxPblJoWW14bGN6RVZNQk1HQTFVRQpDZ3dNYzNsemRHVnRPbTV2WkdWek1Ga3dFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRWpLMzcrVnl3ClFKMEtUenY5SmVQUVpPMUttNXM3WTd2UzZoRllXMUQ3aGJIYWYrczJQQWpVZmkzSVRXT094UmxRRGlOTUhDbkUKZ04rWTZ4bHdpQm81UmFBQU1Bb0dDQ3FHU000OUJBTUNBMGtBTUVZQ0lRQ3IyOFNHTllITlZPNStEY2xYbi9BRQpsek0yUVAreTEzeUhlQ1ZvUE5IZDhRSWhBUEFVTmFQQUR3QnhJOGdYRHVMS3ZFckJhOW8rU0RUZlMremFiSHEyCkhrcWkKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

const START = "2026-01-02T03:04:05Z";
const END = "2026-01-02T04:10:09Z";
const LABELS = { app: "web", tier: "front" };
const SELECTOR = {
  matchLabels: LABELS,
  matchExpressions: [{ key: "zone", operator: "NotIn", values: ["b", "a"] }],
};
const CONTAINERS = [{ name: "main", image: "web:1" }, { name: "side", image: "side:2" }];
const TEMPLATE = { metadata: { labels: { ...LABELS, zone: "c" } }, spec: { containers: CONTAINERS } };

const condition = (type: string, more: Record<string, unknown> = {}) => ({ type, status: "True", ...more });
const running = { state: { running: { startedAt: START } }, ready: true, restartCount: 0 };
const status = (name: string, more: Record<string, unknown>) => ({
  name,
  image: "web:1",
  imageID: "",
  ready: false,
  restartCount: 0,
  ...more,
});
const ended = (exitCode: number, more: Record<string, unknown> = {}) => ({
  terminated: { exitCode, startedAt: START, finishedAt: END, ...more },
});

const PODS: Record<
  string,
  { spec?: Record<string, unknown>; status?: Record<string, unknown>; isDeleted?: boolean }
> = {
  "pending": {},
  "running": {
    spec: {
      nodeName: "node-1",
      readinessGates: [{ conditionType: "example.com/a" }, { conditionType: "example.com/b" }],
    },
    status: {
      phase: "Running",
      podIPs: [{ ip: "10.1.2.3" }],
      podIP: "10.1.2.3",
      conditions: [condition("Ready"), condition("example.com/a")],
      containerStatuses: [
        status("main", { ...running, restartCount: 3, lastState: ended(1) }),
        status("side", { ...running }),
      ],
    },
  },
  "crashing": {
    status: {
      phase: "Running",
      containerStatuses: [
        status("main", {
          state: { waiting: { reason: "CrashLoopBackOff" } },
          restartCount: 7,
          lastState: ended(2),
        }),
        status("side", running),
      ],
    },
  },
  "succeeded": {
    status: {
      phase: "Succeeded",
      containerStatuses: [status("main", { state: ended(0, { reason: "Completed" }) })],
    },
  },
  "failed": { status: { phase: "Failed", reason: "Evicted", message: "The node had no memory left." } },
  "killed": {
    status: { phase: "Failed", containerStatuses: [status("main", { state: ended(137, { signal: 9 }) })] },
  },
  "gated": { spec: { schedulingGates: [{ name: "example.com/wait" }] } },
  "initializing": {
    spec: { initContainers: [{ name: "first", image: "i:1" }, { name: "second", image: "i:2" }] },
    status: {
      phase: "Pending",
      initContainerStatuses: [
        status("first", { state: ended(0) }),
        status("second", { state: { waiting: { reason: "ImagePullBackOff" } } }),
      ],
    },
  },
  "sidecar": {
    spec: { initContainers: [{ name: "proxy", image: "p:1", restartPolicy: "Always" }] },
    status: {
      phase: "Running",
      conditions: [condition("Ready"), condition("Initialized")],
      initContainerStatuses: [
        status("proxy", { ...running, started: true, restartCount: 2, lastState: ended(1) }),
      ],
      containerStatuses: [
        status("main", running),
        status("side", { state: ended(0, { reason: "Completed" }) }),
      ],
    },
  },
  "terminating": { spec: { nodeName: "node-1" }, status: { phase: "Running" }, isDeleted: true },
};

const quantity = (value: string) => ({ type: "Value", value });
const average = (averageValue: string) => ({ type: "AverageValue", averageValue });
const utilization = (averageUtilization: number) => ({ type: "Utilization", averageUtilization });
const target = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const metric = (name: string) => ({ name });
const cpuOf = (field: "target" | "current", value: unknown) => ({
  type: "Resource",
  resource: { name: "cpu", [field]: value },
});

const AUTOSCALERS: Record<string, [metrics: unknown[], statuses: unknown[]]> = {
  "cpu": [[cpuOf("target", utilization(80))], [cpuOf("current", { averageUtilization: 42 })]],
  "unmeasured": [
    [
      cpuOf("target", average("500m")),
      { type: "External", external: { metric: metric("queue"), target: average("30") } },
      { type: "Object", object: { metric: metric("rate"), describedObject: target, target: quantity("2k") } },
    ],
    [],
  ],
  "measured": [
    [
      { type: "Pods", pods: { metric: metric("packets"), target: average("1k") } },
      { type: "External", external: { metric: metric("queue"), target: quantity("30") } },
    ],
    [
      { type: "Pods", pods: { metric: metric("packets"), current: { averageValue: "900" } } },
      { type: "External", external: { metric: metric("queue"), current: { value: "12" } } },
    ],
  ],
  "containers": [
    [
      {
        type: "ContainerResource",
        containerResource: { name: "memory", container: "main", target: utilization(60) },
      },
      { type: "Object", object: { metric: metric("rate"), describedObject: target, target: average("2k") } },
    ],
    [{
      type: "ContainerResource",
      containerResource: {
        name: "memory",
        container: "main",
        current: { averageUtilization: 9, averageValue: "3Mi" },
      },
    }],
  ],
};

const rule = {
  apiGroups: ["tables.example.com"],
  apiVersions: ["v1"],
  operations: ["CREATE"],
  resources: ["nothing"],
};
const webhook = (name: string) => ({
  name: `${name}.tables.example.com`,
  admissionReviewVersions: ["v1"],
  sideEffects: "None",
  failurePolicy: "Ignore",
  rules: [{ ...rule, scope: "*" }],
  clientConfig: { url: "https://127.0.0.1:1/none" },
});
const matchConstraints = { resourceRules: [rule] };
const paramKind = { apiVersion: "v1", kind: "ConfigMap" };
const mutation = { patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object{}" } };
const paramSelector = {
  matchLabels: { b: "2", a: "1" },
  matchExpressions: [{ key: "c", operator: "In", values: ["x", "y"] }, { key: "d", operator: "Exists" }],
};
const PARAM_REFS: Record<string, Record<string, unknown> | undefined> = {
  "none": undefined,
  "named": { name: "settings", parameterNotFoundAction: "Deny" },
  "placed": { name: "settings", namespace: "default", parameterNotFoundAction: "Deny" },
  "selected": { selector: paramSelector, parameterNotFoundAction: "Deny" },
};

const SUBJECTS = [
  { kind: "User", name: "jane", apiGroup: "rbac.authorization.k8s.io" },
  { kind: "User", name: "joe", apiGroup: "rbac.authorization.k8s.io" },
  { kind: "Group", name: "staff", apiGroup: "rbac.authorization.k8s.io" },
  { kind: "ServiceAccount", name: "robot", namespace: "default" },
];
const RULES = [{ apiGroups: ["tables.example.com"], resources: ["nothing"], verbs: ["get"] }];

const addresses = (count: number) => Array.from({ length: count }, (_, i) => ({ ip: `10.9.0.${i + 1}` }));
const endpoint = (...texts: string[]) => ({ addresses: texts });
const ports = [{ name: "http", port: 80, protocol: "TCP" }, { name: "dns", port: 53, protocol: "UDP" }];

/**
 * The objects. `prefix` makes the names of cluster-scoped objects unique.
 */
export function richObjects(namespace: string, prefix: string): RichObject[] {
  const objects: RichObject[] = [];
  const add = (resource: string, name: string, spec: object, more: Partial<RichObject> = {}) =>
    objects.push({ resource, name, spec: spec as Record<string, unknown>, ...more });
  const many = <V>(resource: string, values: Record<string, V>, of: (value: V) => object) => {
    for (const [name, value] of Object.entries(values)) add(resource, name, of(value));
  };

  add("v1/configmaps", "both", { data: { a: "1", b: "2" }, binaryData: { c: "AA==" } });
  add("v1/configmaps", "empty", {});
  add("v1/secrets", "opaque", { data: { a: "MQ==" } });
  add("v1/secrets", "empty", { type: "example.com/none" });
  add("v1/serviceaccounts", "robot", {});
  add("v1/limitranges", "limits", {
    spec: { limits: [{ type: "PersistentVolumeClaim", max: { storage: "100Gi" } }] },
  });
  add("v1/podtemplates", "template", { template: TEMPLATE });
  for (const [name, pod] of Object.entries(PODS)) {
    const { spec, ...more } = pod;
    add("v1/pods", name, { spec: { containers: CONTAINERS, ...spec } }, more);
  }
  add("v1/endpoints", "none", {});
  add("v1/endpoints", "few", { subsets: [{ addresses: addresses(2), ports: [{ port: 80 }] }] });
  add("v1/endpoints", "many", {
    subsets: [{ addresses: addresses(2), ports }, { addresses: [{ ip: "fd00::1" }], ports: [{ port: 1 }] }],
  });
  add("v1/endpoints", "headless", { subsets: [{ addresses: addresses(5) }] });
  add("v1/endpoints", "unready", { subsets: [{ notReadyAddresses: addresses(1), ports: [{ port: 80 }] }] });
  add("v1/services", "plain", { spec: { selector: LABELS, ports, externalIPs: ["192.0.2.8"] } });
  add("v1/services", "headless", { spec: { clusterIP: "None", ports: [{ port: 1 }] } });
  add("v1/services", "named", { spec: { type: "ExternalName", externalName: "x.example.com" } });
  add("v1/services", "node-port", { spec: { type: "NodePort", ports: [{ port: 8080 }] } });
  add("v1/services", "waiting", { spec: { type: "LoadBalancer", ports: [{ port: 443 }] } });
  add("v1/services", "balanced", {
    spec: { type: "LoadBalancer", ports: [{ port: 443 }], externalIPs: ["192.0.2.9"] },
  }, {
    status: {
      loadBalancer: { ingress: [{ hostname: "lb.example.com" }, { ip: "192.0.2.1" }, { ip: "192.0.2.1" }] },
    },
  });
  add("v1/replicationcontrollers", "old", { spec: { replicas: 3, selector: LABELS, template: TEMPLATE } }, {
    status: { replicas: 2, readyReplicas: 1 },
  });
  const hard = { "requests.cpu": "4", "limits.cpu": "8", "limits.memory": "1Gi", pods: "10" };
  add("v1/resourcequotas", "quota", { spec: { hard } }, {
    status: { hard, used: { "requests.cpu": "1500m", "limits.memory": "512Mi", pods: "2" } },
  });
  add("v1/resourcequotas", "unused", { spec: { hard: { pods: "1" } } });
  const event = (name: string, fields: object) =>
    add("v1/events", name, {
      involvedObject: { kind: "Pod", namespace, name: "running", fieldPath: "spec.containers{main}" },
      reason: "Started",
      type: "Normal",
      message: "  Started the container.\n",
      ...fields,
    });
  event("classic", {
    firstTimestamp: START,
    lastTimestamp: END,
    count: 4,
    source: { component: "kubelet", host: "n1" },
  });
  event("series", {
    eventTime: "2026-01-02T03:04:05.123456Z",
    reportingComponent: "example.com/operator",
    reportingInstance: "operator-0",
    action: "Start",
    series: { count: 9, lastObservedTime: "2026-01-03T03:04:05.000000Z" },
  });
  event("single", {
    eventTime: "2026-01-02T03:04:05.123456Z",
    reportingComponent: "example.com/operator",
    reportingInstance: "operator-0",
    action: "Start",
    type: "Warning",
  });
  add("v1/nodes", prefix, { spec: { unschedulable: true } }, {
    metadata: {
      labels: {
        "node-role.kubernetes.io/worker": "",
        "kubernetes.io/role": "gpu",
      },
    },
    status: {
      conditions: [condition("MemoryPressure", { status: "False" }), condition("Ready")],
      addresses: [{ type: "Hostname", address: "n" }, { type: "InternalIP", address: "10.0.0.5" }, {
        type: "ExternalIP",
        address: "192.0.2.5",
      }],
      nodeInfo: {
        kubeletVersion: "v1.37.2",
        osImage: "Linux",
        kernelVersion: "6.12",
        architecture: "arm64",
        containerRuntimeVersion: "containerd://2.1",
        kubeProxyVersion: "",
        machineID: "",
        systemUUID: "",
        bootID: "",
        operatingSystem: "linux",
      },
    },
  });
  add("v1/nodes", `${prefix}-new`, {});
  add("v1/persistentvolumes", `${prefix}-bound`, {
    spec: {
      capacity: { storage: "10Gi" },
      accessModes: ["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "fast",
      claimRef: { namespace, name: "bound" },
      hostPath: { path: "/none" },
    },
  }, { status: { phase: "Bound", reason: "Because" } });
  add("v1/persistentvolumes", `${prefix}-raw`, {
    spec: {
      capacity: { storage: "1500M" },
      accessModes: ["ReadWriteOncePod"],
      volumeMode: "Block",
      hostPath: { path: "/none" },
    },
  }, { metadata: { annotations: { "volume.beta.kubernetes.io/storage-class": "old" } } });
  const request = { resources: { requests: { storage: "5Gi" } }, accessModes: ["ReadWriteOnce"] };
  add("v1/persistentvolumeclaims", "bound", {
    spec: {
      ...request,
      volumeName: `${prefix}-bound`,
      storageClassName: "fast",
      volumeAttributesClassName: "gold",
    },
  }, { status: { phase: "Bound", capacity: { storage: "10Gi" }, accessModes: ["ReadWriteOnce"] } });
  add("v1/persistentvolumeclaims", "waiting", { spec: request });

  const workload = { replicas: 3, selector: SELECTOR, template: TEMPLATE };
  add("apps/v1/deployments", "web", { spec: workload }, {
    status: { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1 },
  });
  add("apps/v1/replicasets", "web", { spec: workload }, { status: { replicas: 3, readyReplicas: 2 } });
  add("apps/v1/statefulsets", "web", { spec: { ...workload, serviceName: "web" } }, {
    status: { replicas: 3, readyReplicas: 2 },
  });
  const onNodes = { ...TEMPLATE, spec: { ...TEMPLATE.spec, nodeSelector: { disk: "ssd", arch: "arm64" } } };
  add("apps/v1/daemonsets", "agent", { spec: { selector: SELECTOR, template: onNodes } }, {
    status: {
      desiredNumberScheduled: 5,
      currentNumberScheduled: 4,
      numberReady: 3,
      updatedNumberScheduled: 2,
      numberAvailable: 1,
      numberMisscheduled: 0,
    },
  });
  add("apps/v1/controllerrevisions", "orphan", { revision: 7, data: {} });
  add("apps/v1/controllerrevisions", "owned", { revision: 8, data: {} }, {
    metadata: {
      ownerReferences: [{
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        name: "web",
        uid: "u",
        controller: true,
      }],
    },
  });
  const jobSpec = { template: { spec: { containers: CONTAINERS, restartPolicy: "Never" } } };
  const times = { startTime: START, completionTime: END };
  add("batch/v1/jobs", "complete", { spec: { ...jobSpec, completions: 2 } }, {
    status: { ...times, succeeded: 2, conditions: [condition("SuccessCriteriaMet"), condition("Complete")] },
  });
  add("batch/v1/jobs", "failed", { spec: { ...jobSpec, parallelism: 3 } }, {
    status: { startTime: START, failed: 1, conditions: [condition("FailureTarget"), condition("Failed")] },
  });
  add("batch/v1/jobs", "running", { spec: jobSpec }, { status: { startTime: START, active: 1, ready: 0 } });
  add("batch/v1/jobs", "suspended", { spec: { ...jobSpec, suspend: true } }, {
    status: { conditions: [condition("Suspended")] },
  });
  const jobTemplate = { spec: jobSpec };
  add("batch/v1/cronjobs", "nightly", {
    spec: { schedule: "0 3 * * *", timeZone: "Europe/Berlin", suspend: true, jobTemplate },
  }, { status: { lastScheduleTime: START, active: [{ kind: "Job", name: "running" }] } });
  add("batch/v1/cronjobs", "new", { spec: { schedule: "@hourly", jobTemplate } });
  for (const [name, [metrics, currentMetrics]] of Object.entries(AUTOSCALERS)) {
    add("autoscaling/v2/horizontalpodautoscalers", name, {
      spec: { scaleTargetRef: target, minReplicas: 2, maxReplicas: 9, metrics },
    }, { status: { currentReplicas: 4, desiredReplicas: 4, currentMetrics } });
  }
  many("policy/v1/poddisruptionbudgets", {
    "least": { minAvailable: "50%" },
    "most": { maxUnavailable: 1 },
  }, (spec) => ({ spec: { selector: SELECTOR, ...spec } }));

  add("networking.k8s.io/v1/ingressclasses", prefix, {
    spec: {
      controller: "example.com/c",
      parameters: { apiGroup: "example.com", kind: "Settings", name: "s", scope: "Cluster" },
    },
  });
  add("networking.k8s.io/v1/ingressclasses", `${prefix}-plain`, { spec: { controller: "example.com/c" } });
  const http = {
    paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { number: 80 } } } }],
  };
  const rules = (...hosts: string[]) => hosts.map((host) => ({ ...(host && { host }), http }));
  add("networking.k8s.io/v1/ingresses", "many", {
    spec: {
      ingressClassName: prefix,
      rules: rules("a.example.com", "", "b.example.com", "c.example.com", "d.example.com"),
      tls: [{ hosts: ["a.example.com"] }],
    },
  }, {
    status: {
      loadBalancer: { ingress: [{ ip: "192.0.2.7" }, { hostname: "a-very-long-name.lb.example.com" }] },
    },
  });
  add("networking.k8s.io/v1/ingresses", "any", { spec: { rules: rules("") } });
  add("networking.k8s.io/v1/ingresses", "three", { spec: { rules: rules("a.b", "b.b", "c.b") } });
  add("networking.k8s.io/v1/networkpolicies", "some", { spec: { podSelector: SELECTOR } });
  add("networking.k8s.io/v1/networkpolicies", "all", { spec: { podSelector: {} } });
  add("networking.k8s.io/v1/servicecidrs", prefix, { spec: { cidrs: ["10.77.0.0/24", "fd77::/112"] } });
  add("discovery.k8s.io/v1/endpointslices", "many", {
    addressType: "IPv4",
    ports: [...ports, { name: "c", port: 9 }, { name: "d", port: 10 }],
    endpoints: [endpoint("10.1.0.1", "10.1.0.2"), endpoint("10.1.0.3"), endpoint("10.1.0.4")],
  });
  add("discovery.k8s.io/v1/endpointslices", "none", { addressType: "IPv6", endpoints: [] });
  add("discovery.k8s.io/v1/endpointslices", "any-port", {
    addressType: "FQDN",
    ports: [{ name: "web" }],
    endpoints: [endpoint("a.example.com")],
  });
  add("coordination.k8s.io/v1/leases", "held", {
    spec: { holderIdentity: "node-1", leaseDurationSeconds: 40 },
  });
  add("coordination.k8s.io/v1/leases", "free", {});

  add("rbac.authorization.k8s.io/v1/roles", "reader", { rules: RULES });
  add("rbac.authorization.k8s.io/v1/clusterroles", prefix, { rules: RULES });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: prefix };
  add("rbac.authorization.k8s.io/v1/rolebindings", "readers", { roleRef, subjects: SUBJECTS });
  add("rbac.authorization.k8s.io/v1/rolebindings", "empty", {
    roleRef: { ...roleRef, kind: "Role", name: "reader" },
  });
  add("rbac.authorization.k8s.io/v1/clusterrolebindings", prefix, {
    roleRef,
    subjects: SUBJECTS.slice(0, 1),
  });

  const admission = "admissionregistration.k8s.io/v1";
  for (const kind of ["mutating", "validating"]) {
    add(`${admission}/${kind}webhookconfigurations`, prefix, { webhooks: [webhook("a"), webhook("b")] });
    for (const [name, paramRef] of Object.entries(PARAM_REFS)) {
      add(`${admission}/${kind}admissionpolicybindings`, `${prefix}-${name}`, {
        spec: {
          policyName: `${prefix}-none`,
          ...(paramRef && { paramRef }),
          ...(kind === "validating" && { validationActions: ["Audit"] }),
        },
      });
    }
  }
  const validations = [{ expression: "true" }, { expression: "1 < 2" }];
  add(`${admission}/validatingadmissionpolicies`, prefix, {
    spec: { matchConstraints, validations, paramKind },
  });
  add(`${admission}/validatingadmissionpolicies`, `${prefix}-plain`, {
    spec: { matchConstraints, validations },
  });
  const mutating = { matchConstraints, mutations: [mutation], reinvocationPolicy: "Never" };
  add(`${admission}/mutatingadmissionpolicies`, prefix, { spec: { ...mutating, paramKind } });
  add(`${admission}/mutatingadmissionpolicies`, `${prefix}-plain`, { spec: mutating });
  add("apiextensions.k8s.io/v1/customresourcedefinitions", `things.${prefix}.example.com`, {
    spec: {
      group: `${prefix}.example.com`,
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing" },
      versions: [{
        name: "v1",
        served: false,
        storage: true,
        schema: { openAPIV3Schema: { type: "object" } },
      }],
    },
  });
  const signing = { request: SIGNING_REQUEST, signerName: "example.com/signer", usages: ["client auth"] };
  const requests = "certificates.k8s.io/v1/certificatesigningrequests";
  add(requests, prefix, { spec: { ...signing, expirationSeconds: 5400 } });
  add("certificates.k8s.io/v1/clustertrustbundles", prefix, { spec: { trustBundle: pem("ca.crt") } });
  add("certificates.k8s.io/v1/podcertificaterequests", "pending", {
    spec: {
      signerName: "example.com/signer",
      podName: "running",
      podUID: "u",
      serviceAccountName: "default",
      serviceAccountUID: "u",
      nodeName: "node-1",
      nodeUID: "u",
      maxExpirationSeconds: 86_400,
      stubPKCS10Request: atob(SIGNING_REQUEST).replace(/-----.*-----|\n/g, ""),
    },
  });
  add("storagemigration.k8s.io/v1/storageversionmigrations", prefix, {
    spec: { resource: { group: "example.com", resource: "widgets" } },
  });
  const apf = "flowcontrol.apiserver.k8s.io/v1";
  add(`${apf}/prioritylevelconfigurations`, prefix, {
    spec: {
      type: "Limited",
      limited: {
        nominalConcurrencyShares: 1,
        limitResponse: { type: "Queue", queuing: { queues: 8, handSize: 2, queueLengthLimit: 5 } },
      },
    },
  });
  add(`${apf}/prioritylevelconfigurations`, `${prefix}-reject`, {
    spec: { type: "Limited", limited: { nominalConcurrencyShares: 0, limitResponse: { type: "Reject" } } },
  });
  add(`${apf}/flowschemas`, prefix, {
    spec: {
      priorityLevelConfiguration: { name: prefix },
      matchingPrecedence: 9876,
      distinguisherMethod: { type: "ByUser" },
      rules: [{
        subjects: [{ kind: "User", user: { name: "no-user" } }],
        nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/none"] }],
      }],
    },
  });
  add(`${apf}/flowschemas`, `${prefix}-early`, {
    spec: { priorityLevelConfiguration: { name: `${prefix}-reject` }, matchingPrecedence: 9870 },
  });
  add("node.k8s.io/v1/runtimeclasses", prefix, { handler: "runsc" });
  add("scheduling.k8s.io/v1/priorityclasses", prefix, { value: -5, preemptionPolicy: "Never" });

  add("resource.k8s.io/v1/deviceclasses", prefix, {});
  add("resource.k8s.io/v1/devicetaintrules", prefix, {
    spec: { deviceSelector: { driver: "gpu.example.com" }, taint: { key: "broken", effect: "None" } },
  });
  const devices = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: prefix } }] } };
  add("resource.k8s.io/v1/resourceclaims", "pending", { spec: devices });
  const allocation = {
    devices: { results: [{ request: "gpu", driver: "gpu.example.com", pool: "p", device: "d" }] },
  };
  add("resource.k8s.io/v1/resourceclaims", "allocated", { spec: devices }, { status: { allocation } });
  add("resource.k8s.io/v1/resourceclaims", "reserved", { spec: devices }, {
    status: { allocation, reservedFor: [{ resource: "pods", name: "running", uid: "u" }] },
  });
  add("resource.k8s.io/v1/resourceclaimtemplates", "template", { spec: { spec: devices } });
  const pool = { name: "p", generation: 1, resourceSliceCount: 1 };
  add("resource.k8s.io/v1/resourceslices", prefix, {
    spec: { driver: "gpu.example.com", pool, nodeName: "node-1", devices: [{ name: "d" }] },
  });
  add("resource.k8s.io/v1/resourceslices", `${prefix}-all`, {
    spec: { driver: "gpu.example.com", pool, allNodes: true, devices: [] },
  });

  add("storage.k8s.io/v1/csidrivers", `${prefix}.example.com`, {
    spec: {
      attachRequired: false,
      podInfoOnMount: true,
      storageCapacity: true,
      requiresRepublish: true,
      volumeLifecycleModes: ["Persistent", "Ephemeral"],
      tokenRequests: [{ audience: "a" }, { audience: "b" }],
    },
  });
  add("storage.k8s.io/v1/csidrivers", `${prefix}-plain.example.com`, { spec: {} });
  add("storage.k8s.io/v1/csinodes", prefix, { spec: { drivers: [{ name: "a.example.com", nodeID: "n" }] } });
  add("storage.k8s.io/v1/csistoragecapacities", "room", { storageClassName: "fast", capacity: "10Gi" });
  add("storage.k8s.io/v1/storageclasses", prefix, {
    provisioner: "example.com/p",
    reclaimPolicy: "Retain",
    volumeBindingMode: "WaitForFirstConsumer",
    allowVolumeExpansion: true,
  });
  add("storage.k8s.io/v1/storageclasses", `${prefix}-plain`, { provisioner: "example.com/p" });
  add("storage.k8s.io/v1/volumeattachments", prefix, {
    spec: {
      attacher: "p.example.com",
      nodeName: "node-1",
      source: { persistentVolumeName: `${prefix}-bound` },
    },
  }, { status: { attached: true } });
  add("storage.k8s.io/v1/volumeattributesclasses", prefix, {
    driverName: "example.com/p",
    parameters: { iops: "1" },
  });
  return objects;
}
