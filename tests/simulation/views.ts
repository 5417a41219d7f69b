/**
 * What an informer keeps of an object.
 * @module
 */

import type { KubernetesObject } from "@listwatch/cache";
import type { SimObject } from "./cluster_model.ts";

/** The fields that an informer has. */
export type ViewName = "ordinary" | "everything" | "names" | "args" | "lean" | "metadata";

/** One way to select fields: the options for the client, and the expected result. */
export interface View {
  /** The options for the client. */
  readonly options: {
    readonly keep?: readonly string[] | "everything";
    readonly drop?: readonly string[];
    readonly metadataOnly?: boolean;
  };
  /** What an informer must have of a whole object. */
  readonly of: (object: SimObject) => KubernetesObject;
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** The ways. */
export const VIEWS: Readonly<Record<ViewName, View>> = {
  ordinary: {
    options: {},
    of: (object) => ({ ...object, metadata: ordinaryMetadata(object) }),
  },
  everything: { options: { keep: "everything" }, of: (object) => object },
  names: {
    options: { keep: ["spec.node", "spec.value", "spec.containers[].name"] },
    of: ({ spec: { node, value, containers }, ...object }) => ({
      ...object,
      metadata: ordinaryMetadata(object),
      spec: {
        node,
        value,
        ...(containers && { containers: containers.map(({ name }) => name === undefined ? {} : { name }) }),
      },
    }),
  },
  args: {
    options: { keep: ["spec.containers[].args", "spec.bad"], drop: ["metadata.annotations"] },
    of: ({ spec: { bad, containers }, ...object }) => {
      const { annotations: _, managedFields: _managed, ...metadata } = object.metadata;
      return {
        ...object,
        metadata,
        spec: {
          ...(bad === undefined ? {} : { bad }),
          ...(containers && { containers: containers.map(({ args }) => args === undefined ? {} : { args }) }),
        },
      };
    },
  },
  lean: {
    options: {
      drop: [
        "spec.containers[].args",
        'metadata.annotations["example.com/notes"]',
        "spec.note",
      ],
    },
    of: ({ spec: { note: _note, ...spec }, ...object }) => {
      const metadata = ordinaryMetadata(object);
      const { "example.com/notes": _notes, ...annotations } = metadata.annotations ?? {};
      const containers = spec.containers?.map(({ args: _args, ...container }) => container);
      return {
        ...object,
        metadata: { ...metadata, ...(metadata.annotations && { annotations }) },
        spec: { ...spec, ...(containers && { containers }) },
      };
    },
  },
  metadata: {
    options: { metadataOnly: true },
    of: (object) => ({
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1",
      metadata: ordinaryMetadata(object),
    }),
  },
};

function ordinaryMetadata({ metadata }: Pick<SimObject, "metadata">): SimObject["metadata"] {
  const { managedFields: _, ...rest } = metadata;
  if (rest.annotations === undefined || !(LAST_APPLIED in rest.annotations)) return rest;
  const { [LAST_APPLIED]: _applied, ...annotations } = rest.annotations;
  return { ...rest, annotations };
}

/** Whether two JSON values are the same, whatever the order of their members. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as Readonly<Record<string, unknown>>;
  const right = b as Readonly<Record<string, unknown>>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && isSameValue(left[key], right[key]));
}
