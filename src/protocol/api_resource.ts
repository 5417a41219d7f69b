/** Descriptions of resources, as discovery has them. */

import type { GroupVersionResource } from "../meta/resource.ts";

/** A resource, as discovery describes it. */
export interface ApiResource extends GroupVersionResource {
  /** The kind of its objects, such as `Pod`. */
  readonly kind: string;
  /** Whether the resource's objects live in namespaces. */
  readonly namespaced: boolean;
  /** The kind in lower case by default. */
  readonly singularName?: string;
  /** Short names for the command line, such as `po`. */
  readonly shortNames?: readonly string[];
  /** Names for groups of resources on the command line, such as `all`. */
  readonly categories?: readonly string[];
  /** `get`, `list` and `watch` by default. */
  readonly verbs?: readonly string[];
  /**
   * The fields that a field selector may name, as dotted paths; `metadata.name` and `metadata.namespace` by
   * default. For a custom resource these are its `selectableFields`, too. Read at each request.
   */
  readonly fieldSelectors?: readonly string[];
  /** The subresources in a custom resource's definition. Those of built-in resources are known. */
  readonly subresources?: {
    readonly status?: boolean;
    readonly scale?: {
      /** The path of the wanted replicas, such as `.spec.replicas`. */
      readonly specReplicasPath: string;
      readonly statusReplicasPath: string;
      readonly labelSelectorPath?: string;
    };
  };
  /**
   * The columns of Tables after the name, for custom resources: `additionalPrinterColumns` of the
   * definition's version. Without them, the age is shown. Read at each request.
   */
  readonly printerColumns?: readonly PrinterColumn[];
  /**
   * Why clients should not use it any more, such as `v1 Endpoints is deprecated in v1.33+`: every response
   * carries it as a `Warning` header, which kubectl prints. Read at each request.
   */
  readonly deprecationWarning?: string | undefined;
}

/** A column of Tables, as a CustomResourceDefinition describes it in `additionalPrinterColumns`. */
export interface PrinterColumn {
  readonly name: string;
  /** The type: `string`, `integer`, `number`, `boolean` or `date`; a `date` is shown as an age. */
  readonly type: string;
  /** The path of the value, as in kubectl's JSONPath. */
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  /** 0, the default: always shown; 1 and more: shown in wide output. */
  readonly priority?: number;
}

/** The singular name of a resource; its kind in lower case by default. */
export function singularName(resource: ApiResource): string {
  return resource.singularName ?? resource.kind.toLowerCase();
}

/** Whether a group is one of Kubernetes' own, so that its resources are not custom resources. */
export function isBuiltinGroup(group: string): boolean {
  return BUILTIN_GROUPS.has(group);
}

const BUILTIN_GROUPS: ReadonlySet<string> = new Set([
  "",
  ...words(`
  admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io apps autoscaling batch
  certificates.k8s.io coordination.k8s.io discovery.k8s.io events.k8s.io extensions
  flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io policy
  rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io storagemigration.k8s.io
`),
]);

/** The words of a text. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
