/**
 * Answers to lists: kept bodies, streams, and 304.
 * @module
 */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import type { Clock, TimerHandle } from "../../util/clock.ts";
import { isStatus } from "../../protocol/statuses.ts";
import type { EntityTags } from "../content/etag.ts";
import type { EventLog } from "../watches/event_log.ts";
import { GZIP_LEAST_BYTES, gzipChunks, gzipResponse } from "./gzip.ts";
import type { ListBodies } from "./list_bodies.ts";
import { contentVersion, type ListBody, SENT_WEIGHT } from "./list_body.ts";
import { cutPage, type ListRequest, type PagePlace, pageSource, placePage } from "../content/list_page.ts";
import { type ListShape, ListText } from "./list_text.ts";
import { newStalledError, type Pacer, type Reader, type Readers } from "../readers.ts";
import { type Format, notModified, objectHeaders, tooManyRequests, VARY } from "./responses.ts";
import type { View } from "./view.ts";
import { loadYaml } from "./yaml.ts";

/** A list, and how to answer it. */
export interface ListAnswerRequest extends ListRequest {
  /** Identifies the list for all users: which objects, but not which page. */
  readonly content: string;
  readonly view: View;
  readonly format: Format;
  readonly ifNoneMatch: string | undefined;
  /** Whether the reader prefers gzip. */
  readonly gzip: boolean;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Where all readers take turns. */
  readonly readersPacer: Pacer;
  readonly bodies: ListBodies;
  readonly tags: EntityTags;
  /** How long a large list waits for its reader. */
  readonly writeTimeoutMs: number;
  readonly clock: Clock;
}

// The whole of a list that is not larger than that goes out at once.
const SMALL_LIST = 64 * 1024;

/**
 * The answer to a list. A large one is written while it is read; its objects are those of one snapshot nevertheless. A list
 * of the present content that everyone sees alike has an `ETag`, and its body is kept for the next requests. If the client
 * stops reading, the stream ends with an error.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function answerList(
  log: EventLog<KubernetesObject>,
  request: ListAnswerRequest,
): Promise<Response | Status> {
  const place = await placePage(log, request);
  if (isStatus(place)) return place;
  const { bodies, tags } = request;
  const { mediaType, pretty } = request.format;
  const yaml = mediaType === "application/yaml" ? await loadYaml() : undefined;
  const shape: ListShape = { view: request.view, pretty, yaml, holding: log.holding };
  const name = place.past === undefined ? bodyName(request, place) : undefined;
  if (name === undefined) {
    const { snapshot, selection } = pageSource(log, place, request);
    const page = await cutPage(log, snapshot, { ...request, ...place, selection });
    const body = bodies.alone(new ListText(page, shape));
    return body === undefined ? tooManyRequests() : await respond(body, request, undefined);
  }
  const of = { namespace: request.namespace, name };
  const tag = tags.ofList(log, of);
  const matching = tag.matching(request.ifNoneMatch);
  if (matching !== undefined) return notModified(matching);
  const kept = bodies.get(log, of);
  if (kept !== undefined) return await respond(kept, request, tag.text);
  const version = contentVersion(log, of.namespace);
  const { snapshot } = pageSource(log, place, request);
  // Others have a turn meanwhile, and the content may change.
  const page = await cutPage(log, snapshot, { ...request, ...place });
  const body = bodies.add(log, of, { version, text: new ListText(page, shape) });
  return await respond(body, request, tag.text);
}

/** The name of a body: requests with the same name get the same one. `undefined` if it depends on more than the content. */
function bodyName(request: ListAnswerRequest, { start, limit }: PagePlace<unknown>): string | undefined {
  const { view, format, content, identity } = request;
  if (view.sharedAs === undefined) return undefined;
  // The token of a page has its user.
  const page = limit < Infinity || request.options.continue !== undefined ? [identity, start, limit] : [];
  return JSON.stringify([content, view.sharedAs, format.mediaType, format.pretty, ...page]);
}

async function respond(
  body: ListBody,
  request: ListAnswerRequest,
  tag: string | undefined,
): Promise<Response> {
  const headers = {
    ...objectHeaders(request.format.mediaType),
    ...VARY,
    ...(tag !== undefined && { ETag: tag }),
  };
  const { readersPacer } = request;
  const source = body.open();
  try {
    if (readersPacer.isDue) await readersPacer.rest();
    const whole = source.whole(SMALL_LIST);
    if (whole !== undefined) {
      readersPacer.spendText(whole.byteLength * source.weight);
      source.close();
      return new Response(whole, { headers });
    }
    if (!request.gzip || !await source.hasBytes(GZIP_LEAST_BYTES, readersPacer)) {
      return new Response(streamOf(source, request), { headers });
    }
    const chunks = await source.gzipped(readersPacer);
    if (chunks !== undefined) {
      return gzipResponse(streamOf(new ChunkReader(chunks, () => source.close()), request), headers);
    }
    const { listPieceLength: pieceLength } = request.readers;
    const next = async () => {
      if (readersPacer.isDue) await readersPacer.rest();
      const piece = source.next(pieceLength);
      if (piece !== undefined) readersPacer.spendText(piece.byteLength * source.weight);
      return piece;
    };
    const pieces = gzipChunks(next);
    const alone = {
      weight: SENT_WEIGHT,
      next: async () => (await pieces.next()).value ?? undefined,
      close: () => {
        pieces.return(undefined).catch(() => {});
        source.close();
      },
    };
    return gzipResponse(streamOf(alone, request), headers);
  } catch (error) {
    source.close();
    throw error;
  }
}

/** The bytes of a body for one reader. */
interface ByteSource {
  /** What the last bytes took, against making as many of JSON. */
  readonly weight: number;
  /**
   * The next bytes: about `length` that are made for this reader, at most `sharedLength` that are shared with others;
   * `undefined` at the end.
   */
  next(
    length: number,
    sharedLength: number,
  ): Uint8Array<ArrayBuffer> | undefined | Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Ends it; may be called more than once. */
  close(): void;
}

/** Not a byte stream: that would take the buffers away, which are shared. */
function streamOf(
  source: ByteSource,
  { clock, writeTimeoutMs, readersPacer: pacer, readers, reader }: ListAnswerRequest,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const release = reader.hold();
  let timer: TimerHandle;
  let isEnded = false;
  const end = () => {
    isEnded = true;
    clock.clearTimeout(timer);
    source.close();
    release();
  };
  const awaitReader = (controller: ReadableStreamDefaultController) => {
    timer = clock.setTimeout(() => {
      end();
      controller.error(newStalledError("list", writeTimeoutMs));
    }, writeTimeoutMs);
  };
  return new ReadableStream({
    start: awaitReader,
    async pull(controller) {
      clock.clearTimeout(timer);
      if (pacer.isDue) await pacer.rest();
      if (isEnded) return;
      let bytes: Uint8Array<ArrayBuffer> | undefined;
      try {
        const next = source.next(readers.listPieceLength, readers.sharedListPieceLength);
        // Without a wait for what is there: others would see the pacer before this is counted.
        bytes = next instanceof Promise ? await next : next;
      } catch (error) {
        end();
        throw error;
      }
      if (isEnded) return;
      if (bytes === undefined) {
        end();
        return controller.close();
      }
      awaitReader(controller);
      pacer.spendText(bytes.byteLength * source.weight);
      controller.enqueue(bytes);
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

/** Reads chunks that are there. */
class ChunkReader implements ByteSource {
  readonly weight = SENT_WEIGHT;
  readonly #chunks: readonly Uint8Array<ArrayBuffer>[];
  #next = 0;
  readonly close: () => void;

  constructor(chunks: readonly Uint8Array<ArrayBuffer>[], close: () => void) {
    this.#chunks = chunks;
    this.close = close;
  }

  next(): Uint8Array<ArrayBuffer> | undefined {
    return this.#chunks[this.#next++];
  }
}
