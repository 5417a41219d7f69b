/**
 * Pods as an API server would send them: fields in the order in which Go writes them, 4.5 KB each, of which
 * managedFields are about 40 %. The same number always gives the same pod.
 *
 * @module
 */

import { seededRandom } from "../../src/testing/seeded_random.ts";
import { type PodTraits, variedTraits } from "./variety.ts";

/** Names and numbers of a cluster of some size. */
export interface PodPopulation {
  /** How many pods there are. */
  readonly objects: number;
  readonly namespaces: number;
  readonly nodes: number;
  /** Whether workloads have names, labels, images and environments of their own, as in a real cluster. */
  readonly isVaried?: boolean;
  /** How many variables each container's environment has besides those: some 75 bytes each. */
  readonly variables?: number;
}

/** A cluster with about 40 pods a node, and namespaces that grow with its size. */
export function populationOf(objects: number, isVaried = false, variables = 0): PodPopulation {
  return {
    objects,
    isVaried,
    variables,
    namespaces: Math.max(4, Math.round(Math.sqrt(objects) / 2)),
    nodes: Math.max(3, Math.ceil(objects / 40)),
  };
}

/** What a pod's JSON depends on besides its number. */
export interface PodVersion {
  readonly resourceVersion: string;
  /** How often it was changed: shows in its status, and in when the kubelet wrote that. */
  readonly revision: number;
  /** How often its container was restarted; as often as it was changed by default. */
  readonly restarts?: number;
  /** Whether it names its `kind` and `apiVersion`, as in an event; items of a list do not. */
  readonly isTyped: boolean;
  /** Whether it comes without managedFields. Default: false. */
  readonly isBare?: boolean;
}

/** The JSON text of pod number `index`. */
export function podJson(population: PodPopulation, index: number, version: PodVersion): string {
  const random = seededRandom(index + 1);
  const pod = buildPod(population, index, version, random);
  // Go escapes these three in every string.
  return JSON.stringify(pod).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}

type Json = Record<string, unknown>;

const APPS = [
  "checkout",
  "payments-api",
  "catalog-search",
  "inventory-sync",
  "notifications",
  "session-gateway",
  "report-builder",
  "image-resizer",
];
const TEAMS = ["storefront", "payments", "platform", "data"];
const CHARACTERS = "bcdfghjklmnpqrstvwxz2456789";

/** The pods' numbers in the order of their keys, in which an API server lists them. */
export function numbersByKey(population: PodPopulation): number[] {
  const keys = Array.from({ length: population.objects }, (_, index) => {
    const { namespace, name } = identityOf(population, index);
    return `${namespace}/${name}`;
  });
  return Array.from(keys.keys()).sort((a, b) => keys[a] < keys[b] ? -1 : 1);
}

/** What a pod is called, and what it shares with others. */
function identityOf(population: PodPopulation, index: number) {
  // Six pods share a replica set, and with it their namespace, release, hash and owner.
  const shared = seededRandom(
    -1 - (index % APPS.length) - APPS.length * Math.floor(index / (6 * APPS.length)),
  );
  const team = TEAMS[index % TEAMS.length];
  const traits = population.isVaried ? variedTraits(team, shared) : undefined;
  const app = traits?.app ?? APPS[index % APPS.length];
  const namespace = `${team}-${Math.floor(shared() * population.namespaces)}`;
  const release = `2026.${1 + Math.floor(shared() * 11)}.${Math.floor(shared() * 40)}`;
  const hash = letters(10, shared);
  // No two pods have the same suffix: the factor has no divisor in common with 27 ** 5.
  const suffix = numbered((index * 7_654_321) % 27 ** 5);
  const isApplied = index % 10 === 3;
  const name = isApplied ? `${app}-${suffix}` : `${app}-${hash}-${suffix}`;
  return { shared, team, traits, app, namespace, name, release, hash, isApplied };
}

function buildPod(population: PodPopulation, index: number, version: PodVersion, random: Random): Json {
  const { shared, team, traits, app, namespace, name, release, hash, isApplied } = identityOf(
    population,
    index,
  );
  const nodeNumber = Math.floor(random() * population.nodes);
  const node = `ip-10-${nodeNumber % 7}-${nodeNumber}.eu-west-1.compute.internal`;
  const created = timestamp(index * 97);
  const changed = timestamp(index * 97 + 45 + version.revision * 60);
  const image = traits?.image ?? `registry.example.com/${team}/${app}:${release}`;

  const labels: Json = {
    "app.kubernetes.io/name": app,
    "app.kubernetes.io/version": release,
    ...traits?.labels,
    ...(!isApplied && { "pod-template-hash": hash }),
  };
  const spec = podSpec(app, image, node, index, random, traits?.env);
  for (let i = 0; i < (population.variables ?? 0); i++) {
    const value = `http://${app}-${i}.${namespace}.svc.cluster.local`;
    spec.containers[0].env.push({ name: `${team.toUpperCase()}_SETTING_${i}`, value });
  }
  const annotations: Json = {
    "checksum/config": hex(40, random),
    ...(isApplied && { "kubectl.kubernetes.io/last-applied-configuration": "" }),
    "prometheus.io/scrape": "true",
  };
  if (isApplied) {
    const applied = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { annotations: {}, labels, name, namespace },
      spec: { containers: spec.containers },
    };
    annotations["kubectl.kubernetes.io/last-applied-configuration"] = `${JSON.stringify(applied)}\n`;
  }
  const owner = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    name: `${app}-${hash}`,
    uid: uuid(shared),
    controller: true,
    blockOwnerDeletion: true,
  };
  const metadata: Json = {
    name,
    ...(!isApplied && { generateName: `${app}-${hash}-` }),
    namespace,
    uid: uuid(random),
    resourceVersion: version.resourceVersion,
    generation: 1,
    creationTimestamp: created,
    labels,
    annotations,
    ...(!isApplied && { ownerReferences: [owner] }),
  };
  const status = podStatus(app, image, index, {
    created,
    changed,
    restarts: version.restarts ?? version.revision,
  }, random);
  const { name: _, namespace: __, uid: ___, resourceVersion: ____, generation: _____, ...owned } = metadata;
  delete owned.creationTimestamp;
  delete owned.generateName;
  metadata.managedFields = [
    {
      manager: isApplied ? "kubectl-client-side-apply" : "kube-controller-manager",
      operation: "Update",
      apiVersion: "v1",
      time: created,
      fieldsType: "FieldsV1",
      fieldsV1: fieldsOf({ metadata: owned, spec: { ...spec, volumes: 0 } }),
    },
    {
      manager: "kubelet",
      operation: "Update",
      apiVersion: "v1",
      time: changed,
      fieldsType: "FieldsV1",
      fieldsV1: fieldsOf({
        status: {
          conditions: (status.conditions as Json[]).map(({ type, status, lastTransitionTime }) => ({
            type,
            status,
            lastTransitionTime,
          })),
          containerStatuses: 0,
          hostIP: 0,
          phase: 0,
          podIP: 0,
          startTime: 0,
        },
      }),
      subresource: "status",
    },
  ];
  if (version.isBare) delete metadata.managedFields;
  return { ...(version.isTyped && { kind: "Pod", apiVersion: "v1" }), metadata, spec, status };
}

function podSpec(
  app: string,
  image: string,
  node: string,
  index: number,
  random: Random,
  env?: PodTraits["env"],
) {
  const token = `kube-api-access-${letters(5, random)}`;
  return {
    volumes: [
      {
        name: token,
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
          ],
          defaultMode: 420,
        },
      },
    ],
    containers: [
      {
        name: app,
        image,
        ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
        env: [
          ...env ?? [
            { name: "LOG_LEVEL", value: index % 5 === 0 ? "debug" : "info" },
            { name: "DATABASE_URL", value: `postgres://${app}@db-${index % 11}:5432/${app}?ssl=on&pool=20` },
          ],
        ],
        resources: { limits: { memory: "512Mi" }, requests: { cpu: "250m", memory: "256Mi" } },
        volumeMounts: [
          { name: token, readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
        ],
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        imagePullPolicy: "IfNotPresent",
      },
    ],
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    serviceAccountName: app,
    serviceAccount: app,
    nodeName: node,
    securityContext: {},
    schedulerName: "default-scheduler",
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: "PreemptLowerPriority",
  };
}

function podStatus(
  app: string,
  image: string,
  index: number,
  { created, changed, restarts }: { created: string; changed: string; restarts: number },
  random: Random,
): Json {
  const ip = `10.${index % 7}.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}`;
  const host = `10.${index % 7}.0.${Math.floor(random() * 256)}`;
  const condition = (type: string, time: string) => ({
    type,
    status: "True",
    lastTransitionTime: time,
  });
  return {
    observedGeneration: 1,
    phase: "Running",
    conditions: [
      condition("Initialized", created),
      condition("Ready", changed),
      condition("PodScheduled", created),
    ],
    hostIP: host,
    podIP: ip,
    startTime: created,
    containerStatuses: [
      {
        name: app,
        state: { running: { startedAt: changed } },
        ready: true,
        restartCount: restarts,
        image,
        imageID: `sha256:${hex(64, random)}`,
        containerID: `containerd://${hex(64, random)}`,
        started: true,
      },
    ],
    qosClass: "Burstable",
  };
}

/** Keys of lists that are merged by key; items of other lists are one value. */
const LIST_KEYS: Record<string, string[]> = {
  conditions: ["type"],
  containers: ["name"],
  env: ["name"],
  ownerReferences: ["uid"],
  ports: ["containerPort", "protocol"],
  volumeMounts: ["mountPath"],
  volumes: ["name"],
};

/** The `fieldsV1` of who owns these fields. */
function fieldsOf(value: Json): Json {
  const fields: Json = {};
  for (const [name, field] of Object.entries(value)) fields[`f:${name}`] = ownedBy(name, field);
  return fields;
}

function ownedBy(name: string, value: unknown): Json {
  const keys = LIST_KEYS[name];
  if (Array.isArray(value)) {
    if (keys === undefined) return {};
    const fields: Json = { ".": {} };
    for (const item of value as Json[]) {
      const key = Object.fromEntries(keys.map((key) => [key, item[key]]));
      // An owner is one value, whatever its fields.
      fields[`k:${JSON.stringify(key)}`] = name === "ownerReferences" ? {} : { ".": {}, ...fieldsOf(item) };
    }
    return fields;
  }
  return typeof value === "object" && value !== null ? fieldsOf(value as Json) : {};
}

type Random = () => number;

function letters(count: number, random: Random): string {
  let text = "";
  for (let i = 0; i < count; i++) text += CHARACTERS[Math.floor(random() * CHARACTERS.length)];
  return text;
}

function numbered(value: number): string {
  let text = "";
  for (let i = 0; i < 5; i++) {
    text += CHARACTERS[value % CHARACTERS.length];
    value = Math.floor(value / CHARACTERS.length);
  }
  return text;
}

function hex(count: number, random: Random): string {
  let text = "";
  while (text.length < count) text += Math.floor(random() * 2 ** 32).toString(16).padStart(8, "0");
  return text.slice(0, count);
}

function uuid(random: Random): string {
  const text = hex(32, random);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-a${text.slice(17, 20)}-${
    text.slice(20)
  }`;
}

/** The timestamp so many seconds after the first day of 2026, or a time before its end. */
function timestamp(seconds: number): string {
  return `${new Date(Date.UTC(2026, 0, 1) + (seconds % 20_000_000) * 1000).toISOString().slice(0, 19)}Z`;
}
