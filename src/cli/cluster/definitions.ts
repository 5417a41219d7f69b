import type { Cluster } from "../../client/cluster.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { resourceOf } from "../../meta/resource.ts";
import { isForbidden, isNotFound } from "../../meta/status.ts";
import { compareVersions } from "../../protocol/discovery.ts";
import { type ApiResource, isBuiltinGroup, type PrinterColumn } from "../../protocol/api_resource.ts";
import { withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";

export interface DefinitionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The cluster does not respond: the definitions are not read before they run. */
  readonly isAway?: boolean;
  readonly onChange?: () => void;
  readonly signal: AbortSignal;
}

/**
 * Reads the definitions of those resources that have one, and writes into their descriptions what it says of
 * Tables, field selectors and names.
 */
export async function readDefinitions(
  cluster: Pick<Cluster, "resource">,
  resources: readonly ApiResource[],
  options: DefinitionOptions,
): Promise<{ run(signal: AbortSignal): Promise<void> }> {
  const { clock, signal } = options;
  const custom = resources.filter(({ group }) => !isBuiltinGroup(group));
  const found = await withTimeLimit(
    (deadline) =>
      Promise.all(custom.map((resource) => readDefinition(cluster, resource, { ...options, deadline }))),
    { ms: FIRST_RESPONSE_MS, newError: () => undefined, clock, signal },
  );
  const informers = found.filter((informer) => informer !== undefined);
  return { run: (signal) => Promise.all(informers.map((informer) => informer.run(signal))).then(() => {}) };
}

async function readDefinition(
  cluster: Pick<Cluster, "resource">,
  resource: ApiResource,
  { clock, logger, isAway, onChange = () => {}, signal, deadline }: DefinitionOptions & {
    readonly deadline: AbortSignal;
  },
): Promise<{ run(signal: AbortSignal): Promise<void> } | undefined> {
  const name = `${resource.resource}.${resource.group}`;
  const client = cluster.resource(DEFINITIONS, {
    fieldSelector: `metadata.name=${name}`,
    // Schemas can be large.
    drop: ["spec.versions[].schema", "status"],
  });
  try {
    if (!isAway) describe(resource, await client.get(name, { signal: deadline }));
  } catch (error) {
    signal.throwIfAborted();
    // An aggregated API server has no definitions.
    if (isNotFound(error)) return undefined;
    if (isForbidden(error)) {
      const text =
        "may not be read: its Tables show the age only, and its field selectors take the name only";
      logger.warn(`the definition of ${name} ${text}`, { error });
      return undefined;
    }
    // The informer tries again, and logs it.
  }
  const informer = new SharedIndexInformer(client, { name: `definition of ${name}`, clock, logger });
  const take = (definition: Definition) => {
    describe(resource, definition);
    onChange();
  };
  informer.addEventHandler({ onAdd: take, onUpdate: (_, definition) => take(definition) });
  return informer;
}

const FIRST_RESPONSE_MS = 15_000;

const DEFINITIONS = resourceOf<Definition>("apiextensions.k8s.io/v1/customresourcedefinitions");

interface Definition extends KubernetesObject {
  readonly spec?: {
    readonly names?: Names;
    readonly versions?: readonly DefinedVersion[];
  };
  readonly status?: unknown;
}

type Names = Pick<ApiResource, "shortNames" | "categories"> & { readonly singular?: string };

interface DefinedVersion {
  readonly schema?: unknown;
  readonly name?: string;
  readonly served?: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
  readonly subresources?: {
    readonly status?: unknown;
    readonly scale?: NonNullable<ApiResource["subresources"]>["scale"];
  };
}

/** Takes over what a definition says. A deleted one stays as it was. */
function describe(resource: ApiResource, definition: Definition | undefined): void {
  const { names, versions } = definition?.spec ?? {};
  const version = versions?.find(({ name }) => name === resource.version);
  if (version === undefined) return;
  const description: Partial<ApiResource> = {
    printerColumns: version.additionalPrinterColumns ?? [],
    fieldSelectors: [
      "metadata.name",
      ...(resource.namespaced ? ["metadata.namespace"] : []),
      ...(version.selectableFields ?? []).map(({ jsonPath }) => jsonPath.replace(/^\./, "")),
    ],
    subresources: {
      status: version.subresources?.status !== undefined,
      ...(version.subresources?.scale && { scale: version.subresources.scale }),
    },
    deprecationWarning: deprecationOf(resource, version, versions),
    shortNames: names?.shortNames ?? [],
    categories: names?.categories ?? [],
    ...(names?.singular && { singularName: names.singular }),
  };
  Object.assign(resource, description);
}

/**
 * The warning of a deprecated version: its own, or which version to use instead.
 * https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/apiserver/customresource_handler.go
 * (defaultDeprecationWarning)
 */
function deprecationOf(
  { group, kind }: ApiResource,
  { name = "", deprecated, deprecationWarning }: DefinedVersion,
  versions: readonly DefinedVersion[] = [],
): string | undefined {
  if (!deprecated) return undefined;
  if (deprecationWarning !== undefined) return deprecationWarning;
  const [instead] = versions.filter((other) => other.served && !other.deprecated)
    .map((other) => other.name ?? "").filter((other) => compareVersions(other, name) < 0).sort(
      compareVersions,
    );
  const use = instead === undefined ? "" : `; use ${group}/${instead} ${kind}`;
  return `${group}/${name} ${kind} is deprecated${use}`;
}
