/** The requests of the client of one resource, and how their answers are read. */

import { DecodeError, EACH_EVENT, NOTHING_STALE } from "../meta/request.ts";
import {
  type ListOptions,
  type ListPage,
  type NamespaceNames,
  sentAgeMs,
  type WatchStream,
} from "../meta/list_watch.ts";
import type { ListWatchContext, ObjectsAsText } from "../text/object_text_reader.ts";
import { type KubernetesObject, layoutOf, metaOf } from "../meta/object.ts";
import {
  formatGroupResource,
  groupVersion,
  type GroupVersionResource,
  resourcePath,
} from "../meta/resource.ts";
import { newStatus, StatusError, statusErrorOf } from "../meta/status.ts";
import { checkList, eventCheck, objectCheck } from "../schema/checks.ts";
import { decodeWatch } from "../watch/decode_watch.ts";
import { decodeList } from "../watch/list_decoder.ts";
import { Projection } from "../text/field_tree.ts";
import type {
  ApplyOptions,
  ClientSource,
  DeleteOptions,
  ObjectRequestOptions,
  RequestOptions,
  Requests,
  ResourceClient,
  ResourceDescription,
  ResourceOptions,
  TypedResourceOptions,
} from "./resource_client.ts";
import { acceptJson, asMetadata, isMetadata, metadataOf, metadataOfEvent } from "./metadata_only.ts";
import { loadSchemas } from "./schemas.ts";
import { unknownResourceHint } from "./discovery.ts";
import { wholeSteps } from "./whole_steps.ts";

/** The options of a client, and whether it keeps managed fields although it drops others. */
type ClientOptions<T> = ResourceOptions<T> & { readonly managedFields?: boolean };

/** The fields that lists and watches keep and leave out, by the options of a client. */
function projectionOf(
  { keep, drop = [], managedFields }: Pick<ClientOptions<never>, "keep" | "drop" | "managedFields">,
): { readonly keep?: readonly string[]; readonly drop: readonly string[] } {
  if (keep === "everything") return { drop };
  if (typeof keep === "string") {
    throw new TypeError(
      `Cannot use keep: ${JSON.stringify(keep)}: it must be a list of paths, or "everything"`,
    );
  }
  return { ...(keep && { keep }), drop: managedFields ? drop : [MANAGED_FIELDS, ...drop] };
}

/** The only path that kube-apiserver leaves out if `Accept` asks for it, since 1.38 (KEP-5958). */
const MANAGED_FIELDS = "metadata.managedFields";

/**
 * The headers of watches. Since 1.37 kube-apiserver compresses a streamed list where the client takes gzip,
 * in a gzip member for each flush (`perFlushGzipWriter` in apiserver/pkg/endpoints/handlers/watch.go):
 * `fetch` of Deno ends after the first one, and that of Chromium shows nothing more.
 */
const STREAM_HEADERS: Readonly<Record<string, string>> = { ...EACH_EVENT, "Accept-Encoding": "identity" };

interface GroupVersionEntry {
  readonly name?: string;
  readonly kind?: string;
  readonly namespaced?: boolean;
}

export class RestResource<T extends KubernetesObject> implements ResourceClient<T> {
  readonly resource: GroupVersionResource;
  readonly namespace: string;
  readonly namespaces: NamespaceNames | undefined;
  readonly description: string;
  readonly identity: string;
  readonly selection: string;
  readonly #cluster: ClientSource & Requests;
  readonly #options: ClientOptions<T>;
  /** The cut of arriving objects. */
  readonly #cut: Projection | undefined;
  /** The parameter of `Accept` that asks the server for a part of the cut. */
  readonly #serverCut: string;
  readonly projection: Projection | undefined;
  readonly #title: string;
  readonly #path: string;

  constructor(cluster: ClientSource & Requests, resource: GroupVersionResource, options: ClientOptions<T>) {
    this.resource = resource;
    const namespace = this.namespace = options.namespace ?? "";
    this.#title = formatGroupResource(resource);
    const namespaces = this.namespaces = options.namespaces;
    if (namespaces !== undefined && (options.namespace !== undefined || Array.isArray(namespaces))) {
      const what = Array.isArray(namespaces)
        ? "a list as namespaces: give a NamespaceSet"
        : "namespace and namespaces: give one of them";
      throw new TypeError(`Cannot make a client of ${this.#title} with ${what}`);
    }
    this.#path = resourcePath(resource, { namespace });
    this.#cluster = cluster;
    this.#options = options;
    const { keep, drop } = projectionOf(options);
    if (keep !== undefined || drop.length > 0) this.#cut = new Projection({ ...(keep && { keep }), drop });
    this.#serverCut = drop.includes(MANAGED_FIELDS) ? `;drop=${MANAGED_FIELDS}` : "";
    const { labelSelector, fieldSelector, metadataOnly } = options;
    this.projection = metadataOnly ? new Projection({ keep: [], drop }) : this.#cut;
    this.selection = [labelSelector, fieldSelector, metadataOnly && "metadata only"].filter(Boolean).join(
      ", ",
    );
    this.identity = JSON.stringify({
      server: cluster.server,
      namespace,
      namespaces: namespaces?.names,
      labelSelector,
      fieldSelector,
      metadataOnly,
      keep,
      drop,
    });
    const where = namespaces === undefined ? namespace : `${namespaces.names.length} namespaces`;
    this.description = where === "" ? this.#title : `${this.#title} in ${where}`;
  }

  async clusterUid(signal?: AbortSignal): Promise<string> {
    const answer = await this.#cluster.request("/api/v1/namespaces/kube-system", {
      action: "identify the cluster by its namespace kube-system",
      signal,
    });
    const uid = metaOf(answer)?.uid;
    if (uid) return uid;
    throw new DecodeError("Cannot identify the cluster: its namespace kube-system has no uid");
  }

  get cluster(): ClientSource {
    return this.#cluster;
  }

  inNamespace(namespace: string): ResourceClient<T> {
    const { namespaces: _, ...options } = this.#options;
    return new RestResource<T>(this.#cluster, this.resource, { ...options, namespace });
  }

  on(cluster: ClientSource): ResourceClient<T> {
    return cluster.resource<T>(this.resource, this.#options as TypedResourceOptions<T>);
  }

  managedFields(): ResourceClient<T> {
    return new RestResource<T>(this.#cluster, this.resource, { ...this.#options, managedFields: true });
  }

  async describe(
    options: Pick<ObjectRequestOptions, "signal" | "timeoutMs"> = {},
  ): Promise<ResourceDescription> {
    const { group, resource } = this.resource;
    const apiVersion = groupVersion(this.resource);
    const action = `discover ${this.#subject("")}`;
    const path = group === "" ? `/api/${apiVersion}` : `/apis/${apiVersion}`;
    const answer = await this.#cluster.request(path, { ...options, action });
    // Go writes a list without elements as null.
    const { resources } = (answer ?? {}) as { readonly resources?: readonly GroupVersionEntry[] | null };
    const found = resources?.find(({ name }) => name === resource);
    if (found?.kind) return { apiVersion, kind: found.kind, isNamespaced: found.namespaced === true };
    const message = `Cannot ${action}: ${this.#cluster.server} serves ${apiVersion} without it`;
    throw new StatusError(newStatus(404, "NotFound", message), { message });
  }

  metadata(): ResourceClient<KubernetesObject> {
    const { schema: _, keep: _1, drop: _2, ...options } = this.#options;
    return new RestResource<KubernetesObject>(this.#cluster, this.resource, {
      ...options as ResourceOptions<KubernetesObject>,
      headers: { ...options.headers, ...NOTHING_STALE },
      metadataOnly: true,
    });
  }

  list(options: ListOptions = {}, context: Partial<ListWatchContext> = {}): Promise<ListPage<T>> {
    if (this.namespaces !== undefined) {
      const { limit: _, ...whole } = options;
      return this.namespaces.listEach((name) => this.inNamespace(name).list(whole, context));
    }
    const subject = this.#subject(this.namespace);
    const action = `list ${subject}`;
    return this.#cluster.withTimeout(action, { signal: context.signal }, async (signal) => {
      const [response, schemas] = await Promise.all([
        this.#open(options, false, action, signal),
        loadSchemas(),
      ]);
      const { maxItemBytes, maxListBytes, metadataOnly } = this.#options;
      const asText = this.#asText(context);
      const validate = objectCheck<T>(schemas, this.#options);
      const { intake = (item: unknown) => item, onBytes } = context;
      const list = await decodeList<T>(response.body ?? emptyBody(), {
        validateList: (list) => checkList(schemas, list, subject),
        validateItem: (item, index) => validate(item, `items[${index}]`),
        asText,
        intake: metadataOnly && !asText ? (item) => intake(metadataOf(item as T)) : intake,
        subject,
        clock: this.#cluster.clock,
        maxItemBytes,
        maxListBytes,
        projection: this.#cut,
        signal,
        onBytes,
      });
      const ageMs = sentAgeMs(response.headers.get("Age"), 1_000);
      return ageMs > 0 ? { ...list, ageMs } : list;
    });
  }

  async watch(options: ListOptions = {}, context: Partial<ListWatchContext> = {}): Promise<WatchStream<T>> {
    const { signal } = context;
    const subject = this.#subject(this.namespace);
    if (this.namespaces !== undefined) {
      throw new TypeError(
        `Cannot watch ${this.description} at once: give the client to an informer, or take inNamespace()`,
      );
    }
    const [response, schemas] = await Promise.all([
      this.#open(options, true, `watch ${subject}`, signal),
      loadSchemas(),
    ]);
    if (options.sendInitialEvents && mayEndUnseen(response)) {
      response.body?.cancel().catch(() => {});
      const message =
        `Cannot watch ${subject}: the streamed list may be compressed, and a page reads only its beginning`;
      throw new StatusError(newStatus(422, "Invalid", message), { message });
    }
    const asText = this.#asText(context);
    const validate = eventCheck<T>(schemas, this.#options);
    const { metadataOnly, maxFrameBytes } = this.#options;
    const stream = decodeWatch<T>(response.body ?? emptyBody(), {
      asText,
      validate: metadataOnly && !asText ? (frame) => metadataOfEvent(validate(frame)) : validate,
      subject,
      projection: this.#cut,
      maxFrameBytes,
      signal,
      onBytes: context.onBytes,
    });
    const { resourceVersion = "", sendInitialEvents } = options;
    return sendInitialEvents || layoutOf(resourceVersion) !== ""
      ? wholeSteps(stream, resourceVersion)
      : stream;
  }

  get(name: string, options: ObjectRequestOptions = {}): Promise<T> {
    return this.#send("get", name, options, {});
  }

  create(object: T, options: ObjectRequestOptions = {}): Promise<T> {
    return this.#send("create", "", inItsNamespace(object, options), { method: "POST", body: object });
  }

  replace(object: T, options: ObjectRequestOptions = {}): Promise<T> {
    const name = object.metadata?.name ?? "";
    return this.#send("replace", name, inItsNamespace(object, options), { method: "PUT", body: object });
  }

  patch(name: string, patch: unknown, options: ObjectRequestOptions = {}): Promise<T> {
    const kind = Array.isArray(patch) ? "json-patch" : "merge-patch";
    const headers = { "Content-Type": `application/${kind}+json` };
    return this.#send("patch", name, options, { method: "PATCH", body: patch, headers });
  }

  apply(config: T, { fieldManager, force, query, ...options }: ApplyOptions): Promise<T> {
    const { apiVersion, kind, metadata: { name = "" } = {} } = config;
    if (!apiVersion || !kind) {
      const action = this.#action("apply", name, options);
      throw new TypeError(`Cannot ${action}: a configuration has \`apiVersion\` and \`kind\``);
    }
    const headers = { "Content-Type": "application/apply-patch+yaml" }; // JSON is YAML
    const asked = { ...inItsNamespace(config, options), query: { ...query, fieldManager, force } };
    return this.#send("apply", name, asked, { method: "PATCH", body: config, headers });
  }

  async delete(name: string, options: DeleteOptions = {}): Promise<void> {
    const { gracePeriodSeconds, propagationPolicy, preconditions, query: { dryRun } = {} } = options;
    const given = { gracePeriodSeconds, propagationPolicy, preconditions, dryRun: dryRun && [dryRun] };
    // Beside a body, an API server does not read the query.
    const body = { kind: "DeleteOptions", apiVersion: "v1", ...given };
    await this.#request("delete", name, options, { method: "DELETE", body });
  }

  /** The reading of objects that are held as text; `undefined` where they are parsed. */
  #asText({ holdText }: Partial<ListWatchContext>): ObjectsAsText | undefined {
    if (holdText === undefined) return undefined;
    const { metadataOnly, schema } = this.#options;
    return {
      reader: holdText.reader,
      hold: metadataOnly
        ? (text, head, read) => {
          if (isMetadata(head)) return holdText.hold(text, head, read);
          const metadata = metadataOf(JSON.parse(text));
          return holdText.hold(JSON.stringify(metadata), metadata);
        }
        : holdText.hold,
      acceptsOrdinary: schema === undefined,
    };
  }

  async #open(
    options: ListOptions,
    watch: boolean,
    action: string,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { labelSelector, fieldSelector, metadataOnly } = this.#options;
    const parameters = (metadataOnly ? asMetadata(watch ? "" : "List") : "") + this.#serverCut;
    const headers = {
      ...(parameters && acceptJson(parameters)),
      ...(watch && STREAM_HEADERS),
      ...this.#options.headers,
    };
    const response = await this.#cluster.open(this.#path, {
      query: {
        ...options,
        labelSelector: options.labelSelector ?? labelSelector,
        fieldSelector: options.fieldSelector ?? fieldSelector,
        limit: options.limit || undefined, // 0 is the same as none
        timeoutSeconds: options.timeoutSeconds || undefined,
        watch,
      },
      action,
      headers,
      signal,
    }).catch((error) => this.#withHint(error, signal));
    const { status } = response;
    const type = response.headers.get("Content-Type") ?? "";
    let fault = "";
    if (type.includes("html")) {
      fault =
        `with a page of HTML (${type}), which no API server does; is there a login or a proxy before it?`;
    } else if (watch && status !== 200) {
      fault = `${status}, and a watch begins with 200`; // as in client-go (rest/request.go: Watch)
    }
    if (fault === "") return response;
    response.body?.cancel().catch(() => {});
    throw new DecodeError(`Cannot ${action}: ${this.#cluster.server} answered ${fault}`);
  }

  /**
   * Throws the error of an unknown resource with what the server has in its place, and any other as it is.
   */
  async #withHint(error: unknown, signal: AbortSignal | undefined): Promise<never> {
    const refusal = statusErrorOf(error);
    const isUnknown = refusal?.httpStatus === 404;
    const hint = isUnknown ? await unknownResourceHint(this.#cluster, this.resource, signal) : "";
    if (!isUnknown || hint === "") throw error;
    throw new StatusError(refusal.status, { message: refusal.message + hint, cause: error });
  }

  async #send(verb: string, name: string, options: ObjectRequestOptions, init: RequestOptions): Promise<T> {
    const { metadataOnly } = this.#options;
    if (metadataOnly && (verb === "create" || verb === "replace")) {
      const action = this.#action(verb, name, options);
      throw new TypeError(`Cannot ${action}: this client knows metadata only; take one without metadataOnly`);
    }
    const headers = { ...(metadataOnly && acceptJson(asMetadata(""))), ...init.headers };
    const object = await this.#request(verb, name, options, { ...init, headers });
    const fault = objectCheck<T>(await loadSchemas(), this.#options)(object, "");
    if (fault === undefined) return (metadataOnly ? metadataOf(object as T) : object) as T;
    const action = this.#action(verb, name, options);
    throw new DecodeError(
      `Cannot ${action}: the answer is not accepted: ${fault.path || "it"} ${fault.reason}`,
    );
  }

  async #request(
    verb: string,
    name: string,
    options: ObjectRequestOptions,
    init: RequestOptions,
  ): Promise<unknown> {
    const action = this.#action(verb, name, options);
    const { namespace = this.namespace, subresource, ...own } = options;
    // The path without a name is that of the whole collection: a delete there deletes everything.
    if (!name && verb !== "create") throw new TypeError(`Cannot ${action}: the name is empty`);
    const path = resourcePath(this.resource, { namespace, name }) + (subresource ? `/${subresource}` : "");
    const headers = { ...this.#options.headers, ...init.headers };
    return await this.#cluster.request(path, { ...own, ...init, headers, action });
  }

  #action(verb: string, name: string, { namespace = this.namespace }: ObjectRequestOptions): string {
    return `${verb} ${name === "" ? "" : `${JSON.stringify(name)} of `}${this.#subject(namespace)}`;
  }

  #subject(namespace: string): string {
    const title = JSON.stringify(this.#title);
    return namespace === "" ? title : `${title} in ${JSON.stringify(namespace)}`;
  }
}

function inItsNamespace(object: KubernetesObject, options: ObjectRequestOptions): ObjectRequestOptions {
  const namespace = options.namespace ?? object.metadata?.namespace;
  return namespace ? { ...options, namespace } : options;
}

/** Whether a stream may be compressed in a page, which cannot refuse that, and reads the beginning only. */
function mayEndUnseen({ type, headers }: Response): boolean {
  const isPage = !new Request("http://server.invalid", { headers: STREAM_HEADERS }).headers.has(
    "Accept-Encoding",
  );
  // The headers of another origin's answer are hidden.
  return isPage && (type === "cors" || headers.has("Content-Encoding"));
}

// Some fetch functions answer without a body where there is nothing in it.
function emptyBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.close() });
}
