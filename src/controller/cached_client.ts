import type { DeleteOptions, ObjectRequestOptions } from "../client/resource_client.ts";
import { formatObjectName, type KubernetesObject, type OwnerReference } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import { isNotFound } from "../meta/status.ts";
import { listAllByNamespace } from "../informer/lister.ts";
import { listAllPages } from "../reflector/lists.ts";
import { checkedValues } from "../store/store_index.ts";
import { parseLabelSelector } from "../meta/labels.ts";
import { abortable } from "../util/abort.ts";
import { isRecord } from "../util/json.ts";
import { appliedConfig, isApplied } from "./applied_config.ts";
import { type CachedResource, OWNER_INDEX, type OwnWrites } from "./cached_resource.ts";
import { controllerOf, isPatched, mergePatch } from "./objects.ts";

/** The namespace of a read or a write; that of the reconciled object by default. */
export interface InNamespace {
  readonly namespace?: string;
}

/**
 * Reads of a resource's cache. None is older than what the reconciles of this key have written: a read waits
 * until the cache has it, and goes to the server if that takes too long. Objects are shared: read-only.
 */
export interface CachedReader<T extends KubernetesObject, I extends string = string> {
  readonly resource: GroupVersionResource;
  /** The object of a name; `undefined` if there is none. */
  get(name: string, options?: InNamespace): Promise<T | undefined>;
  /**
   * The objects of a namespace, of all for `""`, that have the labels selected (`app=web,tier!=db`).
   *
   * @throws {SelectorParseError} The selector does not parse.
   */
  list(options?: InNamespace & { readonly labelSelector?: string }): Promise<T[]>;
  /**
   * The objects of all namespaces under a value of an index; see `indexed`.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  byIndex(index: I, value: string): Promise<T[]>;
  /** The objects whose controlling owner is the reconciled object. */
  owned(): Promise<T[]>;
}

/** The result of {@linkcode CachedClient.apply}. */
export interface Applied<T> {
  readonly object: T;
  /**
   * Whether the object was created or changed; if not, there may have been no request, or the server took
   * what it was sent for the same.
   */
  readonly changed: boolean;
}

/**
 * A client and a cache in one: reads as {@linkcode CachedReader} says, writes go to the server. Every request
 * has the deadline of the reconcile, and none is sent after the lease was lost.
 *
 * Writes throw what those of a `ResourceClient` throw; the namespace is that of the reconciled object
 * unless the object or the options name another.
 */
export interface CachedClient<T extends KubernetesObject, I extends string = string>
  extends CachedReader<T, I> {
  /** Creates an object. */
  create(object: T): Promise<T>;
  /** Replaces an object as a whole; a conflict if it changed since its `resourceVersion`. */
  replace(object: T): Promise<T>;
  /** Changes an object by a JSON merge patch. */
  patch(name: string, patch: unknown, options?: InNamespace): Promise<T>;
  /**
   * Applies a configuration on the server under the controller's name as field manager; its fields are
   * taken over from others (`force: false`: a conflict then). Nothing is sent if the object is so
   * already. `apiVersion` and `kind` may be left out.
   *
   * @throws {TypeError} Another object is the controlling owner of the present one.
   * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
   */
  apply(config: T, options?: { readonly force?: boolean }): Promise<Applied<T>>;
  /**
   * Makes an object as `change` says: `change` gets a copy of the present one, or one with the name only,
   * and returns it changed, or another. It is created, or changed by a patch that the server refuses if the
   * object has changed since; nothing is sent if nothing differs. A status that `change` has changed is not
   * written where it is a subresource: `patchStatus` does that. Mirrors controller-runtime's `CreateOrPatch`,
   * but for the status, and with the object's version.
   *
   * @throws {TypeError} `change` returned no object, or one with another controlling owner than the present
   * one has.
   */
  createOrUpdate(
    name: string,
    change: (present: T) => T | Promise<T>,
    options?: InNamespace,
  ): Promise<Applied<T>>;
  /** Writes fields of the status, if they differ, by a merge patch as `Result.status` says. */
  patchStatus(name: string, status: unknown, options?: InNamespace): Promise<Applied<T>>;
  /** Asks for an object to be deleted. */
  delete(name: string, options?: DeleteOptions): Promise<void>;
  /** Deletes an object; `false` if there is no such object. */
  deleteIfExists(name: string, options?: DeleteOptions): Promise<boolean>;
}

/** The access that the clients of one reconcile share. */
export interface ReconcileAccess {
  readonly object: KubernetesObject;
  readonly manager: string;
  readonly writes: OwnWrites;
  readonly started: StartedWrites;
  readonly readTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Throws if this process may not write any more. */
  readonly checkLease: () => void;
}

/**
 * The writes that one reconcile has started. It is over when they are, although it may have failed with one
 * of several at once: the next one of the key must know of all of them, and no two may write.
 */
export class StartedWrites {
  readonly #open = new Set<Promise<unknown>>();
  #hasEnded = false;

  /** @throws {Error} The reconcile has ended. */
  async during<R>(write: () => Promise<R>): Promise<R> {
    if (this.#hasEnded) {
      throw new Error("Cannot write after the reconcile has ended: await all that it does");
    }
    const open = write();
    this.#open.add(open);
    try {
      return await open;
    } finally {
      this.#open.delete(open);
    }
  }

  /** Resolves when all have their answers; none is started from then on. */
  async ended(): Promise<void> {
    // deno-lint-ignore no-await-in-loop -- an answer may lead to another write
    while (this.#open.size > 0) await Promise.allSettled(this.#open);
    this.#hasEnded = true;
  }
}

/** Stops a write, also one whose credentials were awaited, or that is on its way. */
type Gate = Pick<ObjectRequestOptions, "signal" | "check">;

const PAGE_SIZE = 500;

export class ReconcileClient<T extends KubernetesObject> implements CachedClient<T, string> {
  readonly resource: GroupVersionResource;
  readonly #resource: CachedResource;
  readonly #access: ReconcileAccess;
  /** The last answers to writes, by uid. */
  readonly #answers = new Map<string, T>();

  constructor(resource: CachedResource, access: ReconcileAccess) {
    this.resource = resource.client.resource;
    this.#resource = resource;
    this.#access = access;
  }

  async get(name: string, options: InNamespace = {}): Promise<T | undefined> {
    const namespace = await this.#namespace(options.namespace);
    if (this.#resource.covers(namespace) && await this.#readsCache()) {
      return this.#resource.informer.indexer.getByKey(formatObjectName({ namespace, name })) as T | undefined;
    }
    try {
      return await this.#resource.client.get(name, { namespace, signal: this.#access.signal }) as T;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async list(options: InNamespace & { readonly labelSelector?: string } = {}): Promise<T[]> {
    const namespace = await this.#namespace(options.namespace);
    const selector = parseLabelSelector(options.labelSelector ?? "");
    const { indexer } = this.#resource.informer;
    const isCached = namespace === "" || this.#resource.covers(namespace);
    if (isCached && await this.#readsCache()) return listAllByNamespace(indexer, namespace, selector) as T[];
    const all = await this.#listThrough(namespace);
    return all.filter(({ metadata = {} }) => selector.matches(metadata.labels));
  }

  async byIndex(index: string, value: string): Promise<T[]> {
    const { indexer } = this.#resource.informer;
    if (await this.#readsCache() || !Object.hasOwn(indexer.getIndexers(), index)) {
      return indexer.byIndex(index, value) as T[];
    }
    const indexFunc = indexer.getIndexers()[index];
    return (await this.#listThrough("")).filter((object) => checkedValues(indexFunc(object)).includes(value));
  }

  async owned(): Promise<T[]> {
    const uid = this.#access.object.metadata?.uid ?? "";
    return (await this.byIndex(OWNER_INDEX, uid)).filter((object) => controllerOf(object)?.uid === uid);
  }

  create(object: T): Promise<T> {
    return this.#access.started.during(() => this.#writeWhole("create", object));
  }

  replace(object: T): Promise<T> {
    return this.#access.started.during(() => this.#writeWhole("replace", object));
  }

  async #writeWhole(verb: "create" | "replace", object: T): Promise<T> {
    const namespace = await this.#namespace(object.metadata?.namespace);
    const complete = await this.#withKind(object, namespace);
    return await this.#write((request) =>
      this.#resource.client[verb](complete, { ...inOne(namespace), ...request })
    );
  }

  patch(name: string, patch: unknown, options: InNamespace = {}): Promise<T> {
    return this.#access.started.during(() => this.#patch(name, patch, options, {}));
  }

  apply(config: T, options: { readonly force?: boolean } = {}): Promise<Applied<T>> {
    return this.#access.started.during(async () => {
      const { name = "" } = config.metadata ?? {};
      const namespace = await this.#namespace(config.metadata?.namespace);
      const complete = await this.#withKind(config, namespace);
      const { manager } = this.#access;
      const { applied } = this.#resource;
      const key = formatObjectName({ namespace, name });
      const live = await this.get(name, { namespace });
      if (
        live !== undefined && isApplied(complete, live, { manager, remembered: applied.get(manager, key) })
      ) {
        return { object: live, changed: false };
      }
      requireOwner(complete, live, key);
      const { force = true } = options;
      const object = await this.#write((request) =>
        this.#resource.client.apply(complete, {
          ...inOne(namespace),
          fieldManager: manager,
          force,
          ...request,
        })
      );
      applied.set(manager, key, appliedConfig(complete, object));
      return answered(object, live);
    });
  }

  createOrUpdate(
    name: string,
    change: (present: T) => T | Promise<T>,
    options: InNamespace = {},
  ): Promise<Applied<T>> {
    return this.#access.started.during(async () => {
      const changed = async (object: T): Promise<T> => {
        // What ignores the signal must not hold up the end of the reconcile.
        const returned = await abortable(Promise.resolve(change(object)), this.#access.signal);
        if (isRecord(returned)) return asSent(returned);
        throw new TypeError(
          `Cannot change ${JSON.stringify(name)}: the function has returned no object; return it`,
        );
      };
      const namespace = await this.#namespace(options.namespace);
      const present = await this.get(name, { namespace });
      if (present === undefined) {
        const { apiVersion, kind } = await this.#resource.description(this.#access.signal);
        const bare = { apiVersion, kind, metadata: { name, ...inOne(namespace) } };
        return { object: await this.create(await changed(bare as unknown as T)), changed: true };
      }
      const copy = asSent(present); // the cache's is shared
      const wanted = await changed(copy);
      requireOwner(wanted, present, formatObjectName({ namespace, name }));
      const patch = mergePatch(present, wanted);
      if (patch === undefined) return { object: present, changed: false };
      return answered(await this.#patchVersion(present, patch as object, {}), present);
    });
  }

  patchStatus(name: string, status: unknown, options: InNamespace = {}): Promise<Applied<T>> {
    return this.#access.started.during(async () => {
      const object = await this.get(name, options);
      if (object !== undefined) return await this.patchStatusOf(object, status);
      return {
        object: await this.#patch(name, { status }, options, { subresource: "status" }),
        changed: true,
      };
    });
  }

  /** Writes the status of an object in the state that was read. */
  async patchStatusOf(object: T, given: unknown): Promise<Applied<T>> {
    const status = asSent(given);
    if (isPatched(status, (object as { readonly status?: unknown }).status)) {
      return { object, changed: false };
    }
    return answered(await this.#patchVersion(object, { status }, { subresource: "status" }), object);
  }

  /** Writes the finalizers of an object in the state that was read. */
  setFinalizers(object: T, finalizers: readonly string[]): Promise<T> {
    return this.#patchVersion(object, { metadata: { finalizers } }, {});
  }

  delete(name: string, options: DeleteOptions = {}): Promise<void> {
    return this.#access.started.during(async () => {
      const namespace = await this.#namespace(options.namespace);
      const present = await this.get(name, { namespace });
      const uid = present?.metadata?.uid;
      // The very object that was seen, so that the cache can show that it is deleted.
      const preconditions = { uid, ...options.preconditions };
      await this.#send((request) =>
        this.#resource.client.delete(name, { ...options, ...inOne(namespace), preconditions, ...request })
      );
      const { writes } = this.#access;
      if (uid) writes.deleted(this.#resource, formatObjectName({ namespace, name }), uid);
      else writes.unseen(this.#resource);
    });
  }

  async deleteIfExists(name: string, options: DeleteOptions = {}): Promise<boolean> {
    try {
      await this.delete(name, options);
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /** An object in the state that this client wrote; as it is given if it did not. */
  lastWritten(object: T): T {
    return this.#answers.get(object.metadata?.uid ?? "") ?? object;
  }

  /** Patches an object, unless it has changed since it was read. */
  #patchVersion(object: T, patch: object, options: { readonly subresource?: string }): Promise<T> {
    const { name = "", namespace = "", resourceVersion } = object.metadata ?? {};
    const metadata = { ...(patch as KubernetesObject).metadata, resourceVersion };
    return this.#patch(name, { ...patch, metadata }, { namespace }, options);
  }

  async #patch(
    name: string,
    patch: unknown,
    options: InNamespace,
    { subresource }: { readonly subresource?: string },
  ): Promise<T> {
    const namespace = await this.#namespace(options.namespace);
    return await this.#write((request) =>
      this.#resource.client.patch(name, patch, { ...inOne(namespace), subresource, ...request }) as Promise<T>
    );
  }

  async #write(write: (request: Gate) => Promise<KubernetesObject>): Promise<T> {
    const object = await this.#send(write);
    const { resourceVersion = "", uid = "", namespace } = object.metadata ?? {};
    this.#access.writes.wrote(this.#resource, resourceVersion, namespace);
    this.#answers.set(uid, object as T);
    return object as T;
  }

  async #send<R>(send: (request: Gate) => Promise<R>): Promise<R> {
    const { signal, checkLease: check, writes } = this.#access;
    signal.throwIfAborted();
    check();
    try {
      return await send({ signal, check });
    } catch (error) {
      writes.failed(this.#resource, error);
      throw error;
    }
  }

  /** Whether the cache is read, once it has what was written; otherwise the server is. */
  async #readsCache(): Promise<boolean> {
    const { writes, signal, readTimeoutMs } = this.#access;
    signal.throwIfAborted();
    if (writes.readsThrough(this.#resource) || !this.#resource.isCaughtUp) return false;
    await writes.settle({ resource: this.#resource, timeoutMs: readTimeoutMs, signal });
    return !writes.readsThrough(this.#resource);
  }

  /** Lists a namespace on the server; all that the client has for `""`. */
  async #listThrough(namespace: string): Promise<T[]> {
    const { signal } = this.#access;
    const { client } = this.#resource;
    const of = namespace === "" ? client : client.inNamespace(namespace);
    return (await listAllPages(of, { limit: PAGE_SIZE }, { signal })).items as T[];
  }

  async #namespace(given: string | undefined): Promise<string> {
    const { isNamespaced } = await this.#resource.description(this.#access.signal);
    if (!isNamespaced) return "";
    return given ?? this.#access.object.metadata?.namespace ?? this.#resource.client.namespace;
  }

  async #withKind(object: T, namespace: string): Promise<T> {
    const { name = "", namespace: of, uid } = this.#access.object.metadata ?? {};
    if (of && of !== namespace && object.metadata?.ownerReferences?.some((owner) => owner.uid === uid)) {
      const owner = JSON.stringify(formatObjectName({ namespace: of, name }));
      const owned = JSON.stringify(formatObjectName({ namespace, name: object.metadata.name ?? "" }));
      throw new TypeError(
        `Cannot make ${owner} the owner of ${owned}: an owner is of the same namespace, or of none; the ` +
          "server would delete the object, so find it by a label",
      );
    }
    const { apiVersion, kind } = await this.#resource.description(this.#access.signal);
    return { ...object, apiVersion, kind };
  }
}

/**
 * The result of a write, by the answer: the server may have left the object as it was, as what it was given
 * is the same in its form (quantities), or is not in the schema.
 */
function answered<T extends KubernetesObject>(object: T, before: T | undefined): Applied<T> {
  return { object, changed: object.metadata?.resourceVersion !== before?.metadata?.resourceVersion };
}

/**
 * As controller-runtime's `SetControllerReference`: an owner that was created again may have the object.
 *
 * @throws {TypeError} Another object controls it. Each would take it from the other, for ever.
 */
function requireOwner(wanted: KubernetesObject, live: KubernetesObject | undefined, key: string): void {
  const [ours, theirs] = [controllerOf(wanted), live && controllerOf(live)];
  if (ours === undefined || theirs === undefined || isSameOwner(ours, theirs)) return;
  throw new TypeError(
    `Cannot take ${JSON.stringify(key)} from ${theirs.kind} ${theirs.name}, which is its controlling ` +
      "owner: give it another name",
  );
}

const groupOf = ({ apiVersion }: OwnerReference) => apiVersion.split("/").at(-2);

function isSameOwner(a: OwnerReference, b: OwnerReference): boolean {
  return a.kind === b.kind && a.name === b.name && groupOf(a) === groupOf(b);
}

/** A value as the server reads it: a `Date` is a text there, and what is `undefined` is not there. */
function asSent<V>(value: V): V {
  return value === undefined ? value : JSON.parse(JSON.stringify(value));
}

function inOne(namespace: string): InNamespace {
  return namespace === "" ? {} : { namespace };
}
