import type { Context } from "hono";
import { newStatus, type Status } from "../../meta/status.ts";
import { matchesRoute, matchesTag, prefersGzip } from "../../protocol/representations.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { parseResourcePath } from "../../protocol/request_url.ts";
import { isStatus, quotedStart } from "../../protocol/statuses.ts";
import { subresourcesOf } from "../../protocol/subresources.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { wholeBody } from "../../util/byte_reader.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import { defined, recordOf } from "../../util/json.ts";
import { errorMessage } from "../../util/errors.ts";
import { textHash } from "../../util/hash.ts";
import { type Keeper, MOST_PIECE, type Reader, type Readers } from "../request/readers.ts";
import { GZIP_LEAST_BYTES, gzipBytes, gzipResponse } from "../send/gzip.ts";
import { tooManyRequests } from "../request/refusals.ts";
import { GUARD_HEADERS, textAnswer, VARY } from "../send/responses.ts";

/**
 * Fetches an OpenAPI document of the API server, with the credentials of the cache. Returns the response
 * whatever its status is, 304 included.
 */
export type FetchOpenApi = (
  /** `/openapi/v2`, `/openapi/v3` or a path below it. */
  path: string,
  init: { readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
) => Promise<Response>;

export interface OpenApiOptions {
  readonly fetch: FetchOpenApi | undefined;
  readonly resources: readonly ApiResource[];
  /** The readers among which kept bytes are counted. */
  readonly readers: Readers;
  readonly clock: Clock;
}

interface Kept {
  readonly upstreamTag: string | null;
  /** The tag, without quotation marks. */
  readonly tag: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  gzipped: Uint8Array<ArrayBuffer> | undefined;
  checkedMs: number;
  /** The bytes that are counted for the document; 0 while it is not kept. */
  keptBytes: number;
}

// How long a document is served before it is revalidated.
const FRESH_MS = 10_000;
const FETCH_TIMEOUT_MS = 30_000;
// kube-apiserver's document of version 2 has 2.3 MB; many custom resources make it several times as long.
const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024;

/**
 * Answers requests for OpenAPI documents: `/openapi/v2`, `/openapi/v3` and the documents that it names, as
 * JSON. Documents are fetched when they are requested, once for all readers, and revalidated with their
 * `ETag`. If the API server does not answer, the last known document is served.
 */
export class OpenApi implements Keeper {
  readonly #options: OpenApiOptions;
  /** The least recently used first. */
  readonly kept: Map<string, Kept> = new Map();
  readonly #pending = new Map<string, Promise<Kept | Status>>();
  readonly #groupVersions: ReadonlySet<string>;
  readonly #served: string;

  constructor(options: OpenApiOptions) {
    this.#options = options;
    options.readers.addKeeper(this);
    this.#groupVersions = new Set(options.resources.map(groupVersionPath));
    this.#served = JSON.stringify(options.resources.map((resource) => [
      groupVersionPath(resource),
      resource.resource,
    ]));
  }

  /** The answer to a request for a path below `/openapi/`; `undefined` if there is no such path. */
  async answer(
    c: Context,
    path: string,
    { mount, reader }: { readonly mount: string; readonly reader: Reader },
  ): Promise<Response | Status | undefined> {
    const groupVersion = /^\/openapi\/v3\/(.+)$/.exec(path)?.[1];
    const isDocument = path === "/openapi/v2" || groupVersion !== undefined;
    if (!isDocument && path !== "/openapi/v3") return undefined;
    if (this.#options.fetch === undefined) {
      return noDocument("no OpenAPI documents are served here: this cache was not given a source of them");
    }
    if (groupVersion !== undefined && !this.#groupVersions.has(groupVersion)) {
      return noDocument(`nothing of ${quotedStart(groupVersion)} is served here`);
    }
    const kept = await this.#get(path);
    if (isStatus(kept)) return kept;
    if (isDocument && !matchesRoute(c.req.header("Accept"), ["application/json", "application/*"])) {
      return newStatus(406, "NotAcceptable", "OpenAPI documents are served as application/json only");
    }
    const hash = c.req.query("hash");
    if (groupVersion !== undefined && hash && hash !== kept.tag) {
      const headers = { Location: `${mount}${path}?hash=${kept.tag}`, ...HEADERS };
      return new Response(null, { status: 301, headers });
    }
    const expires = new Date(this.#options.clock.now() + YEAR_MS).toUTCString();
    const headers = {
      ...HEADERS,
      ETag: `"${kept.tag}"`,
      ...(hash === kept.tag && { "Cache-Control": "private, immutable", "Expires": expires }),
    };
    if (matchesTag(c.req.header("If-None-Match"), headers.ETag)) {
      return new Response(null, { status: 304, headers });
    }
    const typed = { ...headers, "Content-Type": "application/json" };
    if (!isDocument && mount !== "") {
      const text = new TextDecoder().decode(kept.bytes);
      const own = text.replaceAll('"/openapi/v3/', `"${mount}/openapi/v3/`);
      return textAnswer(reader, own, { headers: typed });
    }
    // The reader holds one piece at a time.
    if (!reader.take(Math.min(kept.bytes.length, MOST_PIECE))) return tooManyRequests();
    if (kept.bytes.length < GZIP_LEAST_BYTES || !prefersGzip(c.req.header("Accept-Encoding"))) {
      return new Response(piecesOf(kept.bytes), { headers: typed });
    }
    const gzipped = kept.gzipped ?? await gzipBytes(kept.bytes);
    const { readers } = this.#options;
    if (kept.gzipped === undefined && kept.keptBytes > 0 && readers.keep(gzipped.length)) {
      // The document may have been dropped to make room for this.
      if (kept.keptBytes === 0) readers.unkeep(gzipped.length);
      else {
        kept.gzipped = gzipped;
        kept.keptBytes += gzipped.length;
      }
    }
    return gzipResponse(piecesOf(gzipped), typed);
  }

  #get(path: string): Promise<Kept | Status> | Kept {
    const kept = this.kept.get(path);
    if (kept !== undefined) {
      this.kept.delete(path);
      this.kept.set(path, kept);
      if (monotonicNow(this.#options.clock) - kept.checkedMs < FRESH_MS) return kept;
    }
    const fetched = () => this.#fetch(path, kept).finally(() => this.#pending.delete(path));
    return getOrMake(this.#pending, path, fetched);
  }

  async #fetch(path: string, kept: Kept | undefined): Promise<Kept | Status> {
    const { fetch, clock } = this.#options;
    const newError = () => new Error(`no answer within ${FETCH_TIMEOUT_MS / 1_000} s`);
    try {
      return await withTimeLimit(async (signal) => {
        const startMs = monotonicNow(clock);
        const condition = kept?.upstreamTag && { "If-None-Match": kept.upstreamTag };
        const response = await fetch!(path, {
          headers: { Accept: "application/json", ...condition },
          signal,
        });
        if (response.status === 304 && kept !== undefined) {
          kept.checkedMs = startMs;
          return kept;
        }
        if (response.status !== 200) {
          response.body?.cancel().catch(() => {});
          if (response.status === 404) return noDocument(`the API server has no OpenAPI document at ${path}`);
          throw new Error(`the API server answered ${response.status}`);
        }
        const text = await readText(response);
        const next = this.#cut(path, text, response.headers.get("ETag"), startMs);
        this.#keep(path, next);
        return next;
      }, { ms: FETCH_TIMEOUT_MS, newError, clock });
    } catch (error) {
      // An outage of the API server is no reason to forget what is known.
      if (kept !== undefined) {
        // An API server that is silent does not delay each reader.
        kept.checkedMs = monotonicNow(clock);
        return kept;
      }
      const message = `the OpenAPI document at ${path} cannot be fetched: ${errorMessage(error)}`;
      return newStatus(503, "ServiceUnavailable", message, { retryAfterSeconds: 1 });
    }
  }

  #cut(path: string, text: string, upstreamTag: string | null, checkedMs: number): Kept {
    const { resources } = this.#options;
    const document = JSON.parse(text);
    const cut = path === "/openapi/v3" ? this.#cutIndex(document) : cutOpenApi(document, resources);
    return {
      upstreamTag,
      tag: this.#tagOf(upstreamTag ?? hashOf(text)),
      bytes: encodeUtf8(JSON.stringify(cut)),
      gzipped: undefined,
      checkedMs,
      keptBytes: 0,
    };
  }

  #cutIndex({ paths }: OpenApiIndex): OpenApiIndex {
    const served: Record<string, { serverRelativeURL: string }> = {};
    for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
      if (!this.#groupVersions.has(path)) continue;
      const hash = new URL(serverRelativeURL, "http://upstream").searchParams.get("hash") ?? "";
      served[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${this.#tagOf(`"${hash}"`)}` };
    }
    return { paths: served };
  }

  /** The tag of a cut document: its hash in the index, too, where only the tag of the whole one is known. */
  #tagOf(upstreamTag: string): string {
    return hashOf(`${upstreamTag.replace(/^W\//, "")} ${this.#served}`);
  }

  #keep(path: string, next: Kept): void {
    this.#drop(path);
    const { length } = next.bytes;
    if (!this.#options.readers.keep(length)) return;
    next.keptBytes = length;
    this.kept.set(path, next);
  }

  #drop(path: string): void {
    const kept = this.kept.get(path);
    if (kept === undefined) return;
    this.kept.delete(path);
    this.#options.readers.unkeep(kept.keptBytes);
    kept.keptBytes = 0;
  }

  dropSome(): boolean {
    for (const path of this.kept.keys()) {
      this.#drop(path);
      return true;
    }
    return false;
  }
}

/** A document as it is read: an unread one takes the memory of a piece. */
function piecesOf(bytes: Uint8Array<ArrayBuffer>): BodyInit {
  if (bytes.length <= MOST_PIECE) return bytes.slice();
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (at === bytes.length) return controller.close();
      const piece = bytes.slice(at, at + MOST_PIECE);
      at += piece.length;
      controller.enqueue(piece);
    },
  }, { highWaterMark: 0 });
}

const YEAR_MS = 365 * 24 * 3_600_000;

const HEADERS: Readonly<Record<string, string>> = {
  "Cache-Control": "no-cache, private",
  ...VARY,
  ...GUARD_HEADERS,
};

function noDocument(message: string): Status {
  return newStatus(404, "NotFound", message, {});
}

function hashOf(text: string): string {
  return textHash(text).toUpperCase();
}

async function readText({ body }: Response): Promise<string> {
  if (body === null) return "";
  const bytes = await wholeBody(body, MAX_DOCUMENT_BYTES);
  if (bytes === undefined) throw new Error(`it has more than ${MAX_DOCUMENT_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}

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
  for (const [path, operations] of Object.entries(recordOf(document.paths))) {
    if (!isServed(path)) continue;
    const { get, patch, parameters } = recordOf(operations);
    if (get === undefined) continue;
    paths[path] = defined({ get, patch, parameters });
  }
  const kinds = new Set(resources.map(({ group, version, kind }) => `${group}/${version}/${kind}`));
  const isServedKind = (schema: unknown) => {
    const named = recordOf(schema)["x-kubernetes-group-version-kind"];
    return Array.isArray(named) &&
      named.some(({ group, version, kind }) => kinds.has(`${group}/${version}/${kind}`));
  };
  const schemas = SCHEMA_SECTIONS.flatMap((section) =>
    Object.entries(sectionOf(document, section)).filter(([, schema]) => isServedKind(schema))
      .map(([name]) => ({ $ref: pointerTo([...section, name]) }))
  );
  const needed = referencesIn([paths, schemas], document);
  let cut: JsonObject = { ...document, paths };
  for (const section of SECTIONS) {
    const parts = Object.entries(sectionOf(document, section));
    if (parts.length === 0) continue;
    const kept = Object.fromEntries(parts.filter(([name]) => needed.has(pointerTo([...section, name]))));
    const [first, second] = section;
    cut = { ...cut, [first]: second === undefined ? kept : { ...recordOf(cut[first]), [second]: kept } };
  }
  return cut;
}

const SCHEMA_SECTIONS: readonly (readonly string[])[] = [["definitions"], ["components", "schemas"]];
// Sections that others refer to; the rest of a document is kept as it is.
const SECTIONS: readonly (readonly string[])[] = [...SCHEMA_SECTIONS, ["parameters"]];

/** The pointers to parts of the document in a value, and in what they point to. */
function referencesIn(value: unknown, document: JsonObject): ReadonlySet<string> {
  const found = new Set<string>();
  const pending = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== "object" || next === null) continue;
    for (const [name, field] of Object.entries(next)) {
      if (name !== "$ref" || typeof field !== "string" || !field.startsWith("#/")) pending.push(field);
      else if (!found.has(field)) {
        found.add(field);
        const names = field.slice(2).split("/").map((part) =>
          part.replaceAll("~1", "/").replaceAll("~0", "~")
        );
        pending.push(sectionOf(document, names));
      }
    }
  }
  return found;
}

function pointerTo(names: readonly string[]): string {
  return ["#", ...names.map((name) => name.replaceAll("~", "~0").replaceAll("/", "~1"))].join("/");
}

function sectionOf(document: JsonObject, section: readonly string[]): JsonObject {
  return section.reduce<JsonObject>((value, name) => recordOf(value[name]), document);
}

/** Whether a path of a document is one of discovery or of a resource. */
function newPathFilter(resources: readonly ApiResource[]): (path: string) => boolean {
  const discovery = new Set(["/api/", "/apis/", "/version/"]);
  for (const resource of resources) {
    discovery.add(`/${groupVersionPath(resource)}/`);
    if (resource.group !== "") discovery.add(`/apis/${resource.group}/`);
  }
  return (path) => {
    const parsed = parseResourcePath(path.split("/").slice(1));
    if (parsed === undefined) return discovery.has(path);
    const { group, version, resource, subresource } = parsed;
    const served = resources.find((each) =>
      each.group === group && each.version === version && each.resource === resource
    );
    return served !== undefined && (subresource === "" || subresourcesOf(served).includes(subresource));
  };
}
