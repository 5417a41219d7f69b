/**
 * Objects of many kinds, for comparisons of what clients print.
 * @module
 */

import type { Cluster, KubernetesObject } from "@listwatch/cache";
import { eventually } from "./eventually.ts";

/** The API group of the custom resources. */
export const GROUP = "clients.example.com";

interface Manifest extends KubernetesObject {
  readonly [field: string]: unknown;
}

/** What is created, in this order: the path of a collection, and its objects. */
const MANIFESTS: readonly (readonly [path: string, objects: readonly Manifest[]])[] = [
  ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions", [
    definition({ plural: "gadgets", singular: "gadget", kind: "Gadget", scope: "Namespaced" }),
    definition({ plural: "moons", singular: "moon", kind: "Moon", scope: "Cluster" }),
  ]],
  ["/api/v1/namespaces", [
    { metadata: { name: "shop", labels: { team: "red" } } },
    { metadata: { name: "back", labels: { team: "blue" } } },
    { metadata: { name: "empty" } },
  ]],
  ["/api/v1/nodes", [node("node-1", { zone: "a" }), node("node-2", { zone: "b" })]],
  ["/api/v1/namespaces/shop/pods", [
    pod("web-1", { app: "web", tier: "front" }, "node-1"),
    pod("web-2", { app: "web", tier: "front" }, "node-2"),
    pod("web-10", { app: "web" }, undefined),
    pod("db-0", { app: "db", tier: "back" }, "node-1"),
  ]],
  ["/api/v1/namespaces/back/pods", [pod("batch-1", { app: "batch" }, "node-2")]],
  ["/api/v1/namespaces/shop/services", [
    {
      metadata: { name: "web", labels: { app: "web" } },
      spec: { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
    },
    {
      metadata: { name: "db" },
      spec: { clusterIP: "None", selector: { app: "db" }, ports: [{ port: 5432 }] },
    },
    { metadata: { name: "outside" }, spec: { type: "ExternalName", externalName: "db.example.com" } },
  ]],
  ["/api/v1/namespaces/shop/configmaps", [
    {
      metadata: { name: "settings", labels: { app: "web" } },
      data: { mode: "fast", text: "naïve 日本語 🙂\nline 2\n" },
    },
    { metadata: { name: "empty" } },
    { metadata: { name: "binary" }, binaryData: { blob: "AAECAwQ=" } },
  ]],
  ["/api/v1/namespaces/shop/secrets", [
    { metadata: { name: "password" }, stringData: { password: "correct horse" } },
    {
      metadata: { name: "login" },
      type: "kubernetes.io/basic-auth",
      stringData: { username: "u", password: "p" },
    },
  ]],
  ["/api/v1/namespaces/shop/serviceaccounts", [{ metadata: { name: "web" } }]],
  ["/api/v1/namespaces/shop/replicationcontrollers", [{
    metadata: { name: "old" },
    spec: { replicas: 1, selector: { app: "old" }, template: template({ app: "old" }) },
  }]],
  ["/api/v1/namespaces/shop/resourcequotas", [{
    metadata: { name: "quota" },
    spec: { hard: { pods: "10", cpu: "4" } },
  }]],
  ["/api/v1/namespaces/shop/limitranges", [{
    metadata: { name: "limits" },
    spec: { limits: [{ type: "Container", default: { memory: "64Mi" } }] },
  }]],
  ["/api/v1/persistentvolumes", [{
    metadata: { name: "disk" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "slow",
      hostPath: { path: "/data" },
    },
  }]],
  ["/api/v1/namespaces/shop/persistentvolumeclaims", [{
    metadata: { name: "data" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "slow",
      resources: { requests: { storage: "1Gi" } },
    },
  }]],
  ["/apis/storage.k8s.io/v1/storageclasses", [{
    metadata: { name: "slow" },
    provisioner: "example.com/slow",
  }]],
  ["/apis/apps/v1/namespaces/shop/deployments", [{
    metadata: { name: "web", labels: { app: "web" } },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template({ app: "web" }) },
  }]],
  ["/apis/apps/v1/namespaces/shop/replicasets", [{
    metadata: { name: "web-5d9", labels: { app: "web" } },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template({ app: "web" }) },
  }]],
  ["/apis/apps/v1/namespaces/shop/statefulsets", [{
    metadata: { name: "db" },
    spec: {
      replicas: 1,
      serviceName: "db",
      selector: { matchLabels: { app: "db" } },
      template: template({ app: "db" }),
    },
  }]],
  ["/apis/apps/v1/namespaces/shop/daemonsets", [{
    metadata: { name: "agent" },
    spec: { selector: { matchLabels: { app: "agent" } }, template: template({ app: "agent" }) },
  }]],
  ["/apis/batch/v1/namespaces/back/jobs", [{
    metadata: { name: "report" },
    spec: {
      completions: 3,
      template: { spec: { ...template({}).spec, restartPolicy: "Never" } },
    },
  }]],
  ["/apis/batch/v1/namespaces/back/cronjobs", [{
    metadata: { name: "nightly" },
    spec: {
      schedule: "0 3 * * *",
      jobTemplate: { spec: { template: { spec: { ...template({}).spec, restartPolicy: "Never" } } } },
    },
  }]],
  ["/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers", [{
    metadata: { name: "web" },
    spec: {
      minReplicas: 1,
      maxReplicas: 5,
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      metrics: [{
        type: "Resource",
        resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
      }],
    },
  }]],
  ["/apis/policy/v1/namespaces/shop/poddisruptionbudgets", [{
    metadata: { name: "web" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
  }]],
  ["/apis/networking.k8s.io/v1/namespaces/shop/ingresses", [{
    metadata: { name: "web" },
    spec: {
      ingressClassName: "public",
      rules: [{
        host: "shop.example.com",
        http: {
          paths: [{
            path: "/",
            pathType: "Prefix",
            backend: { service: { name: "web", port: { number: 80 } } },
          }],
        },
      }],
    },
  }]],
  ["/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies", [{
    metadata: { name: "deny" },
    spec: { podSelector: { matchLabels: { app: "web" } }, policyTypes: ["Ingress"] },
  }]],
  ["/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", [{
    metadata: { name: "web-x", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.1.0.1"] }, { addresses: ["10.1.0.2"] }],
    ports: [{ name: "http", port: 8080 }],
  }]],
  ["/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles", [{
    metadata: { name: "reader" },
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }],
  }]],
  ["/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings", [{
    metadata: { name: "reader" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
    subjects: [{ kind: "ServiceAccount", name: "web", namespace: "shop" }],
  }]],
  ["/api/v1/namespaces/shop/events", [
    event("web-1", "Scheduled", "assigned shop/web-1 to node-1"),
    event("web-1", "Pulled", 'Container image "registry.example/web:1" already present'),
  ]],
  [`/apis/${GROUP}/v1/namespaces/shop/gadgets`, [
    gadget("alpha", { size: 3, color: "red", note: "first" }),
    gadget("beta", { size: 12, color: "blue" }),
  ]],
  [`/apis/${GROUP}/v1/moons`, [{
    apiVersion: `${GROUP}/v1`,
    kind: "Moon",
    metadata: { name: "io" },
    spec: { size: 7 },
  }]],
];

/** Creates the objects, in an API server of the test's own. */
export async function populate(cluster: Cluster): Promise<void> {
  for (const [path, objects] of MANIFESTS) {
    for (const body of objects) {
      // A new definition is served only after a moment.
      await eventually(() => cluster.request(path, { method: "POST", body }));
    }
  }
  const status = (name: string, body: unknown) =>
    cluster.request(`/api/v1/namespaces/shop/pods/${name}/status`, {
      method: "PATCH",
      headers: { "Content-Type": "application/merge-patch+json" },
      body: { status: body },
    });
  const startTime = "2024-01-02T03:04:05Z";
  await status("web-1", {
    phase: "Running",
    podIP: "10.1.0.1",
    podIPs: [{ ip: "10.1.0.1" }],
    startTime,
    conditions: [{ type: "Ready", status: "True", lastTransitionTime: startTime }],
    containerStatuses: [
      containerStatus({ ready: true, restartCount: 2, state: { running: { startedAt: startTime } } }),
    ],
  });
  await status("web-2", {
    phase: "Running",
    startTime,
    conditions: [{ type: "Ready", status: "False", lastTransitionTime: startTime }],
    containerStatuses: [
      containerStatus({ ready: false, restartCount: 7, state: { waiting: { reason: "CrashLoopBackOff" } } }),
    ],
  });
  await status("db-0", {
    phase: "Failed",
    reason: "Evicted",
    message: "The node was low on memory.",
    startTime,
  });
}

function definition(
  { plural, singular, kind, scope }: { plural: string; singular: string; kind: string; scope: string },
): Manifest {
  return {
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope,
      names: {
        plural,
        singular,
        kind,
        listKind: `${kind}List`,
        shortNames: [plural.slice(0, 2)],
        categories: ["clients"],
      },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: "Size", type: "integer", jsonPath: ".spec.size" },
          { name: "Color", type: "string", jsonPath: ".spec.color", description: "Its color." },
          { name: "Note", type: "string", jsonPath: ".spec.note", priority: 1 },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        ],
        selectableFields: [{ jsonPath: ".spec.color" }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            description: `${kind} is a thing to print.`,
            properties: {
              spec: {
                type: "object",
                properties: {
                  size: { type: "integer", description: "How large it is." },
                  color: { type: "string" },
                  note: { type: "string" },
                },
              },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      }],
    },
  };
}

function gadget(name: string, spec: unknown): Manifest {
  return { apiVersion: `${GROUP}/v1`, kind: "Gadget", metadata: { name, labels: { name } }, spec };
}

function template(labels: Record<string, string>) {
  return { metadata: { labels }, spec: { containers: [{ name: "main", image: "registry.example/web:1" }] } };
}

function pod(name: string, labels: Record<string, string>, nodeName: string | undefined): Manifest {
  return { metadata: { name, labels }, spec: { ...template(labels).spec, ...(nodeName && { nodeName }) } };
}

function node(name: string, labels: Record<string, string>): Manifest {
  return {
    metadata: { name, labels: { ...labels, "node-role.kubernetes.io/worker": "" } },
    status: {
      capacity: { cpu: "4", memory: "8Gi", pods: "110" },
      allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      nodeInfo: {
        kubeletVersion: "v1.36.3",
        osImage: "Linux",
        kernelVersion: "6.1",
        containerRuntimeVersion: "containerd://2.0.0",
        architecture: "amd64",
        operatingSystem: "linux",
        bootID: "",
        machineID: "",
        systemUUID: "",
        kubeProxyVersion: "",
      },
      addresses: [{ type: "InternalIP", address: "192.0.2.10" }, { type: "Hostname", address: name }],
    },
  };
}

function containerStatus(state: Record<string, unknown>): Record<string, unknown> {
  return { name: "main", image: "registry.example/web:1", imageID: "", ...state };
}

function event(name: string, reason: string, message: string): Manifest {
  const timestamp = "2024-01-02T03:04:05Z";
  return {
    metadata: { name: `${name}.${reason.toLowerCase()}` },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "shop", name },
    reason,
    message,
    type: "Normal",
    source: { component: "test" },
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
  };
}
