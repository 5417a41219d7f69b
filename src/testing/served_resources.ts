import { builtinResource, builtinResources } from "../protocol/builtin_resources.ts";
import { type ApiResource, words } from "../protocol/api_resource.ts";
import { subresourcesOf } from "../protocol/subresources.ts";
import { formatResource, type GroupVersionResource, parseResource } from "../meta/resource.ts";

/** A custom resource, as a CustomResourceDefinition defines it. */
export interface CustomResource extends ApiResource {
  /** Whether `status` can be written through its own path only; `true` by default. */
  readonly statusSubresource?: boolean;
}

export interface ServedResource extends ApiResource {
  readonly id: string;
  /** The id of the resource in whose form its objects are stored: its own, unless they have two forms. */
  readonly storage: string;
  readonly statusSubresource: boolean;
  readonly hasGeneration: boolean;
  /** Whether the resource is custom: items of lists have their kind. */
  readonly isCustom: boolean;
  readonly returnsDeleted: boolean;
  /** Whether an update of an object that does not exist creates it. */
  readonly createsOnUpdate: boolean;
  /** Whether an update needs a resourceVersion. */
  readonly needsVersion: boolean;
}

const VERBS: readonly string[] = words("create delete deletecollection get list patch update watch");

// As kube-apiserver 1.36 registers them.
const WITH_GENERATION: ReadonlySet<string> = new Set(words(`
  pods podtemplates replicationcontrollers daemonsets deployments replicasets statefulsets cronjobs
  jobs endpointslices ingresses ingressclasses networkpolicies poddisruptionbudgets
  customresourcedefinitions mutatingadmissionpolicies mutatingadmissionpolicybindings
  mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings
  validatingwebhookconfigurations flowschemas prioritylevelconfigurations deviceclasses devicetaintrules
  resourceslices priorityclasses csidrivers
`));

const RETURNS_DELETED: ReadonlySet<string> = new Set(words(`
  namespaces persistentvolumeclaims persistentvolumes pods podtemplates resourcequotas serviceaccounts
  services deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourceslices csidrivers
  csinodes storageclasses volumeattachments volumeattributesclasses
`));

// The resources whose strategies answer `AllowCreateOnUpdate` with true, and `AllowUnconditionalUpdate` with
// false: https://github.com/kubernetes/kubernetes/tree/master/pkg/registry
const CREATES_ON_UPDATE: ReadonlySet<string> = new Set(words(`
  clusterrolebindings clusterroles endpoints events leasecandidates leases limitranges rolebindings roles
  runtimeclasses services
`));
const NEEDS_VERSION: ReadonlySet<string> = new Set(words(`
  apiservices clustertrustbundles csidrivers csinodes csistoragecapacities customresourcedefinitions
  devicetaintrules leasecandidates leases mutatingadmissionpolicies mutatingadmissionpolicybindings
  mutatingwebhookconfigurations podcertificaterequests poddisruptionbudgets runtimeclasses
  storageversionmigrations validatingadmissionpolicies validatingadmissionpolicybindings
  validatingwebhookconfigurations volumeattachments
`));

function servedResource(resource: CustomResource, isCustom: boolean): ServedResource {
  const { resource: name, statusSubresource = true } = resource;
  const id = formatResource(resource);
  return {
    verbs: VERBS,
    ...resource,
    id,
    storage: id,
    statusSubresource: isCustom ? statusSubresource : subresourcesOf(resource).includes("status"),
    hasGeneration: isCustom || WITH_GENERATION.has(name),
    isCustom,
    returnsDeleted: !isCustom && RETURNS_DELETED.has(name),
    createsOnUpdate: !isCustom && CREATES_ON_UPDATE.has(name),
    needsVersion: isCustom || NEEDS_VERSION.has(name),
  };
}

// The built-in resources are the same for every server; a simulation makes thousands.
let builtins: readonly ServedResource[] | undefined;

function readBuiltins(): ServedResource[] {
  const read = builtinResources().map((resource) => servedResource(resource, false));
  const newEvents = builtinResource(parseResource("events.k8s.io/v1/events"))!;
  return [...read, { ...servedResource(newEvents, false), storage: "v1/events" }];
}

/** The resources of a server, by name; they can be added and removed. */
export class ResourceTable {
  readonly #byName = new Map<string, ServedResource>();
  #all: readonly ServedResource[] | undefined;
  /** Called with each resource that is not served any more. */
  onRemoval: (resource: ServedResource) => void = () => {};

  constructor(customResources: readonly CustomResource[] = []) {
    builtins ??= readBuiltins();
    for (const served of builtins) this.#byName.set(served.id, served);
    for (const resource of customResources) this.addCustom(resource);
  }

  /** All of them, in discovery's order. */
  get all(): readonly ServedResource[] {
    return this.#all ??= Array.from(this.#byName.values());
  }

  find(gvr: GroupVersionResource): ServedResource | undefined {
    return this.#byName.get(formatResource(gvr));
  }

  /**
   * The resource named by a text such as `v1/pods`.
   * @throws {TypeError} There is no such resource.
   */
  named(name: string): ServedResource {
    const found = this.find(parseResource(name));
    if (found !== undefined) return found;
    const tail = name.slice(name.lastIndexOf("/"));
    const similar = this.all.map(({ id }) => id).filter((id) => id.endsWith(tail));
    const hint = similar.length > 0
      ? `did you mean ${similar.map((id) => JSON.stringify(id)).join(" or ")}?`
      : "name it in the option customResources";
    throw new TypeError(
      `Cannot find the resource ${JSON.stringify(name)}: this server does not serve it; ${hint}`,
    );
  }

  addCustom(resource: CustomResource): ServedResource {
    const served = servedResource(resource, true);
    this.#byName.set(served.id, served);
    this.#all = undefined;
    return served;
  }

  remove(gvr: GroupVersionResource): void {
    const removed = this.find(gvr);
    if (removed === undefined) return;
    this.#byName.delete(removed.id);
    this.#all = undefined;
    this.onRemoval(removed);
  }
}
