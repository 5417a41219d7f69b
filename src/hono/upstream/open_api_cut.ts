/** OpenAPI documents, cut to what is served. */

import type { ApiResource } from "../../protocol/api_resource.ts";

/** The index at `/openapi/v3`. */
export interface OpenApiIndex {
  readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The name of a resource's document in the index: `api/v1`, `apis/apps/v1`. */
export function groupVersionPath({ group, version }: Pick<ApiResource, "group" | "version">): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

/**
 * Cuts a document of version 2 or 3: only the paths of the resources, and what they and the kinds of the
 * resources refer to. For GET, and for PATCH, where kubectl reads whether the server validates fields;
 * without it, it sends no write, and does not print why a cache refuses it:
 * https://github.com/kubernetes/cli-runtime/blob/master/pkg/resource/query_param_verifier_v3.go
 */
export function cutOpenApi(document: JsonObject, resources: readonly ApiResource[]): JsonObject {
  const isServed = newPathFilter(resources);
  const paths: Record<string, unknown> = {};
  for (const [path, operations] of Object.entries(objectOf(document.paths))) {
    if (!isServed(path)) continue;
    const { get, patch, parameters } = objectOf(operations);
    if (get === undefined) continue;
    paths[path] = {
      get,
      ...(patch !== undefined && { patch }),
      ...(parameters !== undefined && { parameters }),
    };
  }
  const needed = new References(document);
  needed.addAllIn(paths);
  const kinds = new Set(resources.map(({ group, version, kind }) => `${group}/${version}/${kind}`));
  for (const section of SCHEMA_SECTIONS) {
    for (const [name, schema] of Object.entries(sectionOf(document, section))) {
      const named = objectOf(schema)["x-kubernetes-group-version-kind"];
      const isKind = Array.isArray(named) &&
        named.some(({ group, version, kind }) => kinds.has(`${group}/${version}/${kind}`));
      if (isKind) needed.add([...section, name]);
    }
  }
  return needed.cut({ ...document, paths });
}

const SCHEMA_SECTIONS: readonly (readonly string[])[] = [["definitions"], ["components", "schemas"]];
// What others refer to; the rest of a document is kept as it is.
const SECTIONS: readonly (readonly string[])[] = [...SCHEMA_SECTIONS, ["parameters"]];

class References {
  readonly #document: JsonObject;
  readonly #names = new Map<string, Set<string>>();

  constructor(document: JsonObject) {
    this.#document = document;
  }

  add(pointer: readonly string[]): void {
    const pending = [pointer];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const section = next.slice(0, -1);
      const name = next.at(-1)!;
      const names = this.#namesOf(section);
      if (names.has(name)) continue;
      names.add(name);
      pending.push(...referencesIn(sectionOf(this.#document, section)[name]));
    }
  }

  addAllIn(value: unknown): void {
    for (const pointer of referencesIn(value)) this.add(pointer);
  }

  /** A document with only these of the parts that can be referred to. */
  cut(document: JsonObject): JsonObject {
    let result = document;
    for (const section of SECTIONS) {
      const names = this.#namesOf(section);
      const parts = Object.entries(sectionOf(document, section)).filter(([name]) => names.has(name));
      if (Object.keys(sectionOf(document, section)).length === 0) continue;
      const kept = Object.fromEntries(parts);
      const [first, second] = section;
      result = {
        ...result,
        [first]: second === undefined ? kept : { ...objectOf(result[first]), [second]: kept },
      };
    }
    return result;
  }

  #namesOf(section: readonly string[]): Set<string> {
    const key = section.join("/");
    let names = this.#names.get(key);
    if (names === undefined) this.#names.set(key, names = new Set());
    return names;
  }
}

function referencesIn(value: unknown): string[][] {
  const found: string[][] = [];
  const pending = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== "object" || next === null) continue;
    for (const [name, field] of Object.entries(next)) {
      if (name === "$ref" && typeof field === "string" && field.startsWith("#/")) {
        found.push(field.slice(2).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")));
      } else {
        pending.push(field);
      }
    }
  }
  return found;
}

function sectionOf(document: JsonObject, section: readonly string[]): JsonObject {
  return section.reduce<JsonObject>((value, name) => objectOf(value[name]), document);
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? value as JsonObject : {};
}

/** Whether a path of a document is one of discovery or of a resource. */
function newPathFilter(resources: readonly ApiResource[]): (path: string) => boolean {
  const served = new Set<string>(["/api/", "/apis/", "/version/"]);
  for (const resource of resources) {
    const root = `/${groupVersionPath(resource)}`;
    served.add(`${root}/`);
    if (resource.group !== "") served.add(`/apis/${resource.group}/`);
    const places = resource.namespaced ? ["", "/namespaces/{namespace}"] : [""];
    for (const place of places) {
      for (const watch of ["", "/watch"]) {
        const collection = `${root}${watch}${place}/${resource.resource}`;
        served.add(collection).add(`${collection}/{name}`);
      }
      for (const subresource of ["status", "scale"]) {
        served.add(`${root}${place}/${resource.resource}/{name}/${subresource}`);
      }
    }
  }
  return (path) => served.has(path);
}
