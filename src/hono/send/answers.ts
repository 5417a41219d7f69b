/** Answers to lists and gets: kept bodies, streams, one object, and 304 by their tags. */

import { type KubernetesObject, metaOf } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import type { ScreenQuery } from "../../protocol/screen_query.ts";
import { isStatus } from "../../protocol/statuses.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { Clock, TimerHandle } from "../../util/clock.ts";
import { indentedText, matchesTag, opaqueTags } from "../../protocol/representations.ts";
import type { Held } from "../../store/holding.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { textHash } from "../../util/hash.ts";
import { notModified, OBJECT_HEADERS, VARY } from "./responses.ts";
import type { Content, ContentVersion } from "../content/content.ts";
import type { EventLog } from "../content/event_log.ts";
import { GZIP_LEAST_BYTES, GZIP_STATE_BYTES, gzipBytes, gzipChunks, gzipResponse } from "./gzip.ts";
import type { BodyReader, Bytes, ListBodies } from "./kept_bodies.ts";
import { formText, type ListShape, ListText } from "./view_text.ts";
import { cutPage, type ListRequest, type PagePlace, placePage, stillPlaced } from "../content/selection.ts";
import { newSpentError, newStalledError, type Reader } from "../request/readers.ts";
import { tooManyRequests } from "../request/refusals.ts";
import type { Form, View } from "../request/requested_read.ts";
import type { KeptFollowers } from "../screens/followed_objects.ts";
import { sortedPage } from "./screen_answer.ts";
import { loadYaml } from "./yaml.ts";

export interface ListAnswerRequest extends ListRequest {
  readonly resource: ApiResource;
  /** Identifies the list for all users: which objects, but not which page. */
  readonly name: string;
  readonly view: View;
  readonly form: Form;
  readonly reader: Reader;
  readonly screen: ScreenQuery | undefined;
  readonly state: {
    readonly bodies: ListBodies;
    readonly followers: KeptFollowers;
    readonly tags: EntityTags;
    /** How long a large list waits for its reader. */
    readonly settings: { readonly writeTimeoutMs: number; readonly clock: Clock };
  };
}

// The whole of a list that is not larger than that goes out at once.
const SMALL_LIST = 64 * 1024;

/**
 * The answer to a list. A large one is written while it is read; its objects are those of one snapshot
 * nevertheless. A list of the present content that everyone sees alike has an `ETag`, and its body is kept
 * for the next requests. If the client stops reading, the stream ends with an error.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function answerList(
  content: Content<KubernetesObject>,
  request: ListAnswerRequest,
): Promise<Response | Status> {
  const { state: { bodies, tags }, namespace, pacer, view, form: { mediaType, pretty, ifNoneMatch } } =
    request;
  const yaml = mediaType === "application/yaml" ? await loadYaml() : undefined;
  const shape: ListShape = { view, pretty, yaml, holding: content.holding };
  const { screen } = request;
  if (screen?.sortBy !== undefined) {
    const page = await sortedPage(content, { ...request, screen });
    if (isStatus(page)) return page;
    // Made for one reader: few ask for the same page of the same state.
    return respond(bodies.alone(new ListText(page, shape)).open(pacer), request, undefined);
  }
  const { resourceVersion = "0", continue: continued } = request.options;
  const first = firstPlace(request);
  const isFirst = resourceVersion === "0" && continued === undefined;
  const placed = isFirst ? first : await placePage(content, request, first);
  if (!("limit" in placed)) return placed;
  // The content may have changed while others had a turn.
  const place = placed.at === undefined ? placed : stillPlaced(content, request, placed);
  if (!("limit" in place)) return place;
  const answerAlone = async (place: PagePlace<KubernetesObject>) => {
    const page = await cutPage(content, request, place);
    if (!request.reader.take(page.bytes)) return tooManyRequests();
    return respond(bodies.alone(new ListText(page, shape)).open(pacer), request, undefined);
  };
  if (place.past !== undefined || view.sharedAs === undefined) return await answerAlone(place);
  const name = bodyName(request, place);
  const version = content.versions.versionOf(namespace);
  const tag = tags.ofList(content.log, version, name);
  const matching = ifNoneMatch && tag.matching(ifNoneMatch);
  if (matching) return notModified(matching);
  const of = { content, namespace, name, version, revision: content.log.window.revision };
  // Others have a turn while the page is cut, and the content may change.
  const body = bodies.get(of) ?? bodies.add(of, new ListText(await cutPage(content, request, place), shape));
  if (place.at !== undefined && place.at !== content.log.window.resourceVersion) {
    // The page's state is a past one now, and the body would name the present version.
    const past = stillPlaced(content, request, place);
    return "limit" in past ? await answerAlone(past) : past;
  }
  return respond(body.open(pacer), request, tag.text);
}

function firstPlace({ options }: ListRequest): PagePlace<never> {
  // A list at resourceVersion 0 comes whole, as from an API server's cache:
  // https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
  const limit = options.resourceVersion === "0" ? Infinity : options.limit ?? Infinity;
  return { past: undefined, start: "", limit };
}

function bodyName(request: ListAnswerRequest, { start, limit }: PagePlace<unknown>): string {
  const { view, form, name, identity, options } = request;
  // The token of a page has its user.
  const page = limit < Infinity || options.continue !== undefined ? [identity(), start, limit] : [];
  return JSON.stringify([name, view.sharedAs, form.mediaType, form.pretty, ...page]);
}

async function respond(
  body: BodyReader,
  request: ListAnswerRequest,
  tag: string | undefined,
): Promise<Response | Status> {
  const { pacer, reader, form: { gzip, mediaType } } = request;
  const { readers } = reader;
  const headers = { ...OBJECT_HEADERS[mediaType], ...VARY, ...(tag !== undefined && { ETag: tag }) };
  const close = () => body.close();
  const { isShared } = body;
  try {
    if (pacer.isDue) await pacer.rest();
    const whole = body.whole(SMALL_LIST);
    // A stream has one piece at a time.
    if (!reader.take(whole?.byteLength ?? readers.sharedListPieceLength)) {
      body.close();
      return tooManyRequests();
    }
    if (whole !== undefined) return new Response(whole, { headers });
    if (!gzip || !await body.isLarge()) {
      return new Response(streamOf(body.pieces(readers), close, { ...request, isShared }), { headers });
    }
    const chunks = await body.gzipped();
    if (chunks !== undefined) {
      return gzipResponse(streamOf(chunks.values(), close, { ...request, isShared: true }), headers);
    }
    const pieces = body.pieces(readers);
    // Compressing costs more memory than sending the list as it is.
    if (!readers.hasRoom(GZIP_STATE_BYTES) || !reader.take(GZIP_STATE_BYTES)) {
      return new Response(streamOf(pieces, close, { ...request, isShared }), { headers });
    }
    const compressed = gzipChunks(async () => {
      if (pacer.isDue) await pacer.rest();
      return pieces.next().value;
    });
    const stop = () => {
      compressed.return(undefined).catch(() => {});
      body.close();
    };
    // Pieces that zlib makes may have one buffer.
    return gzipResponse(streamOf(compressed, stop, { ...request, isShared: true }), headers);
  } catch (error) {
    body.close();
    throw error;
  }
}

/**
 * Makes a stream of pieces. It is a byte stream unless their buffers are shared, as a byte stream hands
 * buffers over. Servers free what is theirs once it is sent.
 */
function streamOf(
  pieces: Iterator<Bytes> | AsyncIterator<Bytes>,
  close: () => void,
  { state: { settings: { clock, writeTimeoutMs } }, pacer, reader, isShared }: ListAnswerRequest & {
    readonly isShared: boolean;
  },
): ReadableStream<Bytes> {
  const release = reader.hold();
  let timer: TimerHandle;
  let isEnded = false;
  const end = () => {
    isEnded = true;
    clock.clearTimeout(timer);
    close();
    release();
  };
  const { onSpent } = reader;
  type Controller = ReadableStreamDefaultController | ReadableByteStreamController;
  const breakOff = (controller: Controller, error: Error) => {
    end();
    controller.error(error);
  };
  const awaitReader = (controller: Controller) => {
    timer = clock.setTimeout(
      () => breakOff(controller, newStalledError("list", writeTimeoutMs)),
      writeTimeoutMs,
    );
  };
  const source = {
    start(controller: Controller) {
      awaitReader(controller);
      reader.onSpent = () => isEnded ? onSpent() : breakOff(controller, newSpentError("list"));
    },
    async pull(controller: Controller) {
      clock.clearTimeout(timer);
      if (pacer.isDue) await pacer.rest();
      if (isEnded) return;
      let next: IteratorResult<Bytes>;
      try {
        // A stream of bytes takes no empty one.
        do next = await pieces.next(); while (!next.done && next.value.byteLength === 0);
      } catch (error) {
        end();
        throw error;
      }
      if (isEnded) return;
      if (next.done) {
        end();
        controller.close();
        // A reader with a buffer of its own waits for that.
        if ("byobRequest" in controller) controller.byobRequest?.respond(0);
        return;
      }
      awaitReader(controller);
      controller.enqueue(next.value);
    },
    cancel: end,
  };
  return new ReadableStream(isShared ? source : { ...source, type: "bytes" }, { highWaterMark: 0 });
}

/** The answer to a get. It is 304 if the client has the object already, which is then not opened. */
export async function answerObject(
  content: Content<KubernetesObject>,
  held: Held<KubernetesObject>,
  { key, view, form, tags, reader }: {
    readonly key: string;
    readonly view: View;
    readonly form: Form;
    readonly tags: EntityTags;
    readonly reader: Reader;
  },
): Promise<Response | Status> {
  const { mediaType, pretty, gzip, ifNoneMatch } = form;
  const tag = view.sharedAs === undefined
    ? undefined
    : tags.ofObject(content.log, held, JSON.stringify([key, view.sharedAs, mediaType, pretty]));
  if (tag !== undefined && matchesTag(ifNoneMatch, tag)) return notModified(tag);
  const headers = { ...OBJECT_HEADERS[mediaType], ...VARY, ...(tag !== undefined && { ETag: tag }) };
  const json = formText(held, { view, holding: content.holding, form: "one" });
  const text = mediaType === "application/yaml"
    ? (await loadYaml()).document(json)
    : pretty
    ? indentedText(json)
    : `${json}\n`;
  if (!reader.take(text.length)) return tooManyRequests();
  // A text has at least as many bytes as characters.
  if (!gzip || text.length < GZIP_LEAST_BYTES) return new Response(text, { headers });
  return gzipResponse(await gzipBytes(encodeUtf8(text)), headers);
}

/**
 * Makes the tags of one adapter. They are weak: a body and its compressed form have the same one.
 *
 * A tag names the states of objects by their uids and resourceVersions. An API server can send two states
 * under one resourceVersion, for one when it was restored from a backup. So a tag also has an epoch, in which
 * there are no two such states: this process's own, and another one after each such rewrite.
 */
export class EntityTags {
  readonly #random: () => number;
  #instance: string | undefined;

  /** @param random Distinguishes this process from others. */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * The tag of the present list in a form and selection. It stays the same while only the list's
   * resourceVersion moves: the body that a reader has says an earlier version of the same content, from which
   * it can watch. So does every tag of the same content that is not older than the log's history: `matching`
   * finds the tag of an `If-None-Match` by which the client has the list.
   */
  ofList(
    log: Pick<EventLog<KubernetesObject>, "resume">,
    { changes, rewrites, since }: ContentVersion,
    name: string,
  ): { readonly text: string; matching(ifNoneMatch: string): string | undefined } {
    const opaque = `${this.epochOf(rewrites)}-${changes}-${textHash(name)}-`;
    const text = `W/"${opaque}${since}"`;
    return {
      text,
      matching(ifNoneMatch) {
        for (const given of opaqueTags(ifNoneMatch)) {
          if (given === "*") return text;
          if (!given.startsWith(opaque)) continue;
          const from = given.slice(opaque.length);
          if (VERSION.test(from) && log.resume(from) !== undefined) return `W/"${given}"`;
        }
        return undefined;
      },
    };
  }

  /** The tag of an object in a form; `undefined` if the object's version is not known. */
  ofObject(
    { window: { rewrites } }: Pick<EventLog<KubernetesObject>, "window">,
    held: Held<KubernetesObject>,
    name: string,
  ): string | undefined {
    const { uid = "", resourceVersion } = metaOf(held) ?? {};
    if (!resourceVersion) return undefined;
    const version = `${encodeURIComponent(resourceVersion)}-${textHash(`${uid} ${name}`)}`;
    return `W/"${this.epochOf(rewrites)}-${version}"`;
  }

  /** A text for this process, and the epoch of a content after so many rewrites. */
  epochOf(rewrites: number): string {
    // Made late, as Workers have no random numbers while modules are loaded.
    this.#instance ??= Math.floor(this.#random() * 2 ** 48).toString(36);
    return `${this.#instance}.${rewrites}`;
  }
}

const VERSION = /^(?:0|[1-9][0-9]{0,99})?$/;
