/**
 * The Table columns of each kind, as in kube-apiserver.
 * @module
 */

import type { ApiResource } from "../protocol/api_resource.ts";
import { labelSelectorFromSpec, type LabelSelectorSpec } from "../meta/labels.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { age, AGE_COLUMN, column, NAME_COLUMN, type Printer } from "./table_columns.ts";
import { podPrinter } from "./table_pods.ts";

/** The printer of a resource; one with name and age for unknown kinds. */
export function printerOf(resource: ApiResource): Printer {
  const name = resource.group === "" ? resource.resource : `${resource.group}/${resource.resource}`;
  return PRINTERS.get(name) ?? NAME_AND_AGE;
}

interface Container {
  readonly name?: string;
  readonly image?: string;
}

interface Deployment extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: LabelSelectorSpec;
    readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } };
  };
  readonly status?: {
    readonly readyReplicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

const deploymentPrinter: Printer = {
  columns: [
    NAME_COLUMN,
    column("Ready", "Number of the pod with ready state"),
    column("Up-to-date", "How many pods have the desired template."),
    column("Available", "How many pods have been ready for at least minReadySeconds."),
    AGE_COLUMN,
    column("Containers", "Names of each container in the template.", 1),
    column("Images", "Images referenced by each container in the template.", 1),
    column("Selector", "Which pods belong to it.", 1),
  ],
  cells(object, nowMs) {
    const { metadata, spec, status } = object as Deployment;
    const containers = spec?.template?.spec?.containers ?? [];
    return [
      metadata?.name ?? "",
      `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
      status?.updatedReplicas ?? 0,
      status?.availableReplicas ?? 0,
      age(object, nowMs),
      containers.map((container) => container.name).join(","),
      containers.map((container) => container.image).join(","),
      labelSelectorFromSpec(spec?.selector).toString(),
    ];
  },
};

interface Node extends KubernetesObject {
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly nodeInfo?: {
      readonly kubeletVersion?: string;
      readonly osImage?: string;
      readonly kernelVersion?: string;
      readonly containerRuntimeVersion?: string;
      readonly architecture?: string;
    };
  };
}

const ROLE_PREFIX = "node-role.kubernetes.io/";

const nodePrinter: Printer = {
  columns: [
    NAME_COLUMN,
    column("Status", "The status of the node"),
    column("Roles", "The roles of the node"),
    AGE_COLUMN,
    column("Version", "Kubelet Version reported by the node."),
    column("Internal-IP", "The node's address inside the cluster.", 1),
    column("External-IP", "The node's address outside the cluster.", 1),
    column("OS-Image", "OS Image reported by the node.", 1),
    column("Kernel-Version", "Kernel Version reported by the node.", 1),
    column("Container-Runtime", "Container Runtime Version reported by the node.", 1),
  ],
  cells(object, nowMs) {
    const { metadata, spec, status } = object as Node;
    const ready = status?.conditions?.findLast((condition) => condition.type === "Ready");
    const states = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
    if (spec?.unschedulable) states.push("SchedulingDisabled");
    const roles = new Set<string>();
    for (const [key, value] of Object.entries(metadata?.labels ?? {})) {
      if (key.startsWith(ROLE_PREFIX) && key.length > ROLE_PREFIX.length) {
        roles.add(key.slice(ROLE_PREFIX.length));
      } else if (key === "kubernetes.io/role" && value !== "") roles.add(value);
    }
    const address = (type: string) =>
      status?.addresses?.find((candidate) => candidate.type === type)?.address ?? "<none>";
    const info = status?.nodeInfo;
    return [
      metadata?.name ?? "",
      states.join(","),
      Array.from(roles).sort().join(",") || "<none>",
      age(object, nowMs),
      info?.kubeletVersion ?? "",
      address("InternalIP"),
      address("ExternalIP"),
      info?.osImage || "<unknown>",
      (info?.kernelVersion || "<unknown>") + (info?.architecture ? ` (${info.architecture})` : ""),
      info?.containerRuntimeVersion || "<unknown>",
    ];
  },
};

const namespacePrinter: Printer = {
  columns: [NAME_COLUMN, column("Status", "The status of the namespace"), AGE_COLUMN],
  cells(object, nowMs) {
    const { status } = object as { status?: { phase?: string } };
    return [object.metadata?.name ?? "", status?.phase ?? "", age(object, nowMs)];
  },
};

interface Service extends KubernetesObject {
  readonly spec?: {
    readonly type?: string;
    readonly clusterIPs?: readonly string[];
    readonly externalIPs?: readonly string[];
    readonly externalName?: string;
    readonly ports?: readonly {
      readonly port: number;
      readonly protocol?: string;
      readonly nodePort?: number;
    }[];
    readonly selector?: Readonly<Record<string, string>>;
  };
  readonly status?: {
    readonly loadBalancer?: {
      readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[];
    };
  };
}

const servicePrinter: Printer = {
  columns: [
    NAME_COLUMN,
    column("Type", "How the service is exposed."),
    column("Cluster-IP", "The service's address inside the cluster."),
    column("External-IP", "The service's addresses outside the cluster."),
    column("Port(s)", "The ports the service exposes."),
    AGE_COLUMN,
    column("Selector", "Which pods the service sends traffic to.", 1),
  ],
  cells(object, nowMs) {
    const { metadata, spec } = object as Service;
    const ports = spec?.ports?.map(({ port, protocol, nodePort }) =>
      nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`
    );
    return [
      metadata?.name ?? "",
      spec?.type ?? "",
      spec?.clusterIPs?.[0] ?? "<none>",
      externalIP(object as Service),
      ports?.join(",") || "<none>",
      age(object, nowMs),
      formatLabels(spec?.selector),
    ];
  },
};

function externalIP({ spec, status }: Service): string {
  const externalIPs = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ClusterIP":
    case "NodePort":
      return externalIPs.join(",") || "<none>";
    case "LoadBalancer": {
      const ingress = new Set<string>();
      for (const { ip, hostname } of status?.loadBalancer?.ingress ?? []) {
        const address = ip || hostname;
        if (address) ingress.add(address);
      }
      return Array.from(ingress).sort().concat(externalIPs).join(",") || "<pending>";
    }
    case "ExternalName":
      return spec.externalName ?? "";
    default:
      return "<unknown>";
  }
}

function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.sort().join(",") || "<none>";
}

const count = (map: object | null | undefined) => Object.keys(map ?? {}).length;

const configMapPrinter: Printer = {
  columns: [NAME_COLUMN, column("Data", "How many values it holds."), AGE_COLUMN],
  cells(object, nowMs) {
    const { data, binaryData } = object as { data?: object; binaryData?: object };
    return [object.metadata?.name ?? "", count(data) + count(binaryData), age(object, nowMs)];
  },
};

const secretPrinter: Printer = {
  columns: [
    NAME_COLUMN,
    column("Type", "What the secret is used for."),
    column("Data", "How many values it holds."),
    AGE_COLUMN,
  ],
  cells(object, nowMs) {
    const { type, data } = object as { type?: string; data?: object };
    return [object.metadata?.name ?? "", type ?? "", count(data), age(object, nowMs)];
  },
};

const NAME_AND_AGE: Printer = {
  columns: [NAME_COLUMN, { ...AGE_COLUMN, type: "date" }],
  cells: (object, nowMs) => [object.metadata?.name ?? "", age(object, nowMs)],
};

const PRINTERS: ReadonlyMap<string, Printer> = new Map<string, Printer>([
  ["pods", podPrinter],
  ["nodes", nodePrinter],
  ["namespaces", namespacePrinter],
  ["services", servicePrinter],
  ["configmaps", configMapPrinter],
  ["secrets", secretPrinter],
  ["apps/deployments", deploymentPrinter],
]);
