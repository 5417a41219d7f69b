/**
 * Random requests for writes, and for reads of what they made: what `in_memory_server_test.ts` sends to two
 * servers.
 *
 * Left out is what the server in memory does not do, and says so: defaults and validation of objects. Objects
 * have the fields with which a real server changes nothing.
 *
 * @module
 */

/** Any JSON. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** What a server has answered about objects, for requests that build on it. */
export interface Known {
  /** The object as answered last, by its path. */
  readonly last: ReadonlyMap<string, Json>;
  /** The versions of an object by its path, oldest first. */
  readonly versions: ReadonlyMap<string, readonly string[]>;
}

/** A request to one of the servers, made of what that has answered. */
export interface Write {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly isDryRun: boolean;
  body(known: Known): unknown;
}

/** A kind of objects. */
export interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  /** A selector of a watch. */
  readonly fieldSelector: string;
  readonly isCustom?: boolean;
  body(random: Random): Json;
  patch(random: Random): Json;
  status?(random: Random): Json;
}

/** A source of choices. */
export class Random {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#next() * choices.length)];
  }

  happens(probability: number): boolean {
    return this.#next() < probability;
  }
}

const OTHER_UID = "12345678-1234-4234-8234-123456789012";
const MANAGERS = ["one", "two", "three"];

export const KINDS: readonly Kind[] = [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    resource: "configmaps",
    fieldSelector: "metadata.name=a",
    body: (random) => ({ data: { a: random.pick(["1", "2"]), b: random.pick(["1", "2"]) } }),
    patch: (random) => ({ data: { c: random.pick(["1", "2"]) } }),
  },
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    resource: "leases",
    fieldSelector: "metadata.name=b",
    body: (random) => ({ spec: { holderIdentity: random.pick(["x", "y"]), leaseDurationSeconds: 15 } }),
    patch: (random) => ({ spec: { holderIdentity: random.pick(["x", "z"]) } }),
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    resource: "deployments",
    fieldSelector: "metadata.name!=a",
    body: (random) => ({
      spec: {
        replicas: random.pick([1, 2]),
        selector: { matchLabels: { app: "web" } },
        template: {
          metadata: { labels: { app: "web" } },
          spec: { containers: [{ name: "main", image: random.pick(["i:1", "i:2"]) }] },
        },
      },
    }),
    patch: (random) => ({
      spec: {
        template: {
          spec: { containers: [{ name: random.pick(["main", "side"]), image: random.pick(["i:1", "i:3"]) }] },
        },
      },
    }),
    status: (random) => ({
      replicas: random.pick([1, 2]),
      conditions: [{
        type: random.pick(["Available", "Progressing"]),
        status: random.pick(["True", "False"]),
      }],
    }),
  },
  {
    apiVersion: "example.com/v1",
    kind: "Widget",
    resource: "widgets",
    fieldSelector: "metadata.namespace!=x",
    isCustom: true,
    body: (random) => ({
      spec: {
        size: random.pick([1, 2]),
        list: random.pick([["a"], ["a", "b"]]),
        at: { x: random.pick([1, 2]) },
      },
    }),
    patch: (random) => ({ spec: random.pick<Json>([{ size: null }, { at: { y: 1 } }, { list: ["c"] }]) }),
    status: (random) => ({ phase: random.pick(["A", "B"]), seen: random.pick([1, 2]) }),
  },
];

function owner(name: string, more: object = {}) {
  return { apiVersion: "v1", kind: "Node", name, uid: `uid-of-${name}`, ...more };
}

function metadata(random: Random): Json {
  return {
    ...(random.happens(0.7) && { labels: { app: random.pick(["web", "db"]) } }),
    ...(random.happens(0.3) && { annotations: { note: random.pick(["x", "y"]) } }),
    ...(random.happens(0.25) && { finalizers: random.pick([["x.io/a"], ["x.io/a", "x.io/b"]]) }),
    ...(random.happens(0.2) && {
      ownerReferences: random.pick([[owner("n")], [owner("n", { controller: true })]]),
    }),
  };
}

function metadataPatch(random: Random): Json {
  return {
    metadata: random.pick<Json>([
      { labels: { app: random.pick(["web", null]) } },
      { labels: null },
      { annotations: { note: random.pick(["x", null]) } },
      { finalizers: random.pick([null, [], ["x.io/a"]]) },
      { ownerReferences: random.pick([null, [owner("m")]]) },
      { uid: OTHER_UID },
      { name: "other" },
      { resourceVersion: "1" },
      {},
    ]),
  };
}

const JSON_PATCHES: readonly Json[] = [
  [{ op: "add", path: "/metadata/labels", value: { app: "db" } }],
  [{ op: "remove", path: "/metadata/labels/app" }],
  [{ op: "test", path: "/metadata/labels", value: null }],
  [{ op: "remove", path: "/metadata/finalizers/0" }],
  [{ op: "add", path: "/metadata/finalizers/-", value: "x.io/c" }],
  [{ op: "none", path: "/metadata" }],
  [],
];

/** A random request about one of three objects; with `applies`, all objects are made by server-side apply. */
export function randomWrite(
  random: Random,
  kind: Kind,
  { root, applies }: { readonly root: string; readonly applies: boolean },
): Write {
  const name = random.pick(["a", "b", "c"]);
  const path = `${root}/${name}`;
  const type = { apiVersion: kind.apiVersion, kind: kind.kind };
  const query = new URLSearchParams({ fieldManager: random.pick(MANAGERS) });
  const isDryRun = random.happens(0.1);
  if (isDryRun) query.set("dryRun", "All");
  const content = kind.body(random);
  const made = { ...type, metadata: { name, ...metadata(random) }, ...content };
  const request = (
    method: string,
    body: Write["body"],
    more: { path?: string; type?: string } = {},
  ): Write => ({
    method,
    isDryRun,
    body,
    ...(more.type !== undefined && { type: more.type }),
    path: `${more.path ?? path}?${query}`,
  });
  const patchOf = (form: string, body: Json, at = path) =>
    request("PATCH", () => body, { path: at, type: `application/${form}` });
  const what = random.pick([
    "make",
    "make",
    "make",
    "replace",
    "replace",
    "merge",
    "strategic",
    "json",
    "status",
    "delete",
    "delete",
    "deleteAll",
    "get",
  ]);
  switch (what) {
    case "make": {
      if (!applies) return request("POST", () => made, { path: root });
      if (random.happens(0.4)) query.set("force", "true");
      return patchOf("apply-patch+yaml", made);
    }
    case "replace": {
      // A Lease that a PUT creates has managed fields on a real server alone.
      if (applies && kind.resource === "leases") return request("GET", () => undefined);
      const change = random.pick<Json>([
        {},
        { labels: undefined },
        { finalizers: undefined },
        metadata(random),
      ]);
      const form = random.pick(["kept", "kept", "unversioned", "version 0", "old", "another uid"]);
      return request("PUT", ({ last, versions }) => {
        const object = last.get(path) ?? { ...made, metadata: { name } };
        const other = {
          kept: {},
          unversioned: { resourceVersion: undefined },
          "version 0": { resourceVersion: "0" },
          old: { resourceVersion: versions.get(path)?.at(-2) ?? "1" },
          "another uid": { uid: OTHER_UID },
        }[form];
        return { ...made, ...object, ...content, metadata: { ...object.metadata, ...change, ...other } };
      });
    }
    case "merge":
      return patchOf(
        "merge-patch+json",
        random.happens(0.6) ? metadataPatch(random) : kindPatch(kind, random),
      );
    case "strategic":
      return patchOf(
        "strategic-merge-patch+json",
        random.happens(0.4) ? metadataPatch(random) : kind.patch(random),
      );
    case "json":
      return patchOf("json-patch+json", random.pick(JSON_PATCHES));
    case "status": {
      const status = kind.status?.(random);
      if (status === undefined) return request("GET", () => undefined);
      if (!applies) return patchOf("merge-patch+json", { status }, `${path}/status`);
      if (random.happens(0.4)) query.set("force", "true");
      return patchOf("apply-patch+yaml", { ...type, metadata: { name }, status }, `${path}/status`);
    }
    case "delete": {
      query.delete("fieldManager");
      const precondition = random.pick(["none", "none", "uid", "another uid", "old version"]);
      const options = random.pick<Json>([undefined, { gracePeriodSeconds: -5 }, { dryRun: ["All"] }]);
      if (random.happens(0.2)) query.set("gracePeriodSeconds", random.pick(["0", "-1", "x"]));
      return {
        ...request("DELETE", ({ last, versions }) => {
          const preconditions = {
            none: undefined,
            uid: { uid: last.get(path)?.metadata.uid },
            "another uid": { uid: OTHER_UID },
            "old version": { resourceVersion: versions.get(path)?.at(-2) ?? "1" },
          }[precondition];
          return options || preconditions ? { ...options, preconditions } : undefined;
        }, { type: "application/json" }),
        isDryRun: isDryRun || options?.dryRun !== undefined,
      };
    }
    case "deleteAll":
      query.delete("fieldManager");
      query.set("labelSelector", random.pick(["app=web", "app!=web"]));
      return request("DELETE", () => undefined, { path: root });
    default:
      return request("GET", () => undefined);
  }
}

// A merge patch replaces lists, and Deployments need their containers.
function kindPatch(kind: Kind, random: Random): Json {
  return kind.kind === "Deployment" ? { spec: { replicas: random.pick([1, 2]) } } : kind.patch(random);
}
