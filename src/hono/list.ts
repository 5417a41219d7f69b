/**
 * Lists: pages of one snapshot, written in chunks.
 * @module
 */

import type { KubernetesObject, ListMeta } from "../meta/object.ts";
import type { ListOptions } from "../meta/list_watch.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";
import type { Held, Holding } from "../store/holding.ts";
import { decodeContinue, encodeContinue, LATEST } from "../protocol/continue_token.ts";
import { continueTooOld, isStatus, tooLargeResourceVersion } from "../protocol/statuses.ts";
import { encode } from "./encoding.ts";
import type { EventLog } from "./event_log.ts";
import { newStalledError, OPEN_UNITS, type Pacer, type Reader, type Readers } from "./readers.ts";
import { JSON_HEADERS, stateTooOld } from "./responses.ts";
import type { Selection } from "./selection.ts";
import { lowerBound } from "../util/lower_bound.ts";
import type { Snapshot } from "./snapshot.ts";
import type { View } from "./view.ts";

/** What is listed. */
export interface ListRequest {
  readonly options: ListOptions;
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  /** Which objects of the namespace; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** Identifies the list in its continue tokens. */
  readonly identity: string;
  /** What bounds the wait for a resourceVersion from the future; its signal ends the looking at objects, too. */
  readonly wait: VersionWaitOptions;
  readonly pacer: Pacer;
}

/** One page: a range of an array, which may be that of a snapshot, shared by many pages. */
export interface Page<T> {
  readonly metadata: ListMeta;
  /** As the store holds them. */
  readonly objects: readonly Held<T>[];
  /** The first of the page. */
  readonly from: number;
  /** The one after the last. */
  readonly to: number;
}

/**
 * The requested page, or the Status that refuses it.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function readPage<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<Page<T> | Status> {
  const { options, namespace } = request;
  let start = namespace === "" ? "" : `${namespace}/`;
  let snapshot: Snapshot<T> | undefined;
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    if (token.list !== request.identity) {
      return newStatus(
        400,
        "BadRequest",
        "invalid continue token: it is of another list; continue with the same path, selectors and user",
      );
    }
    if (token.start > start) start = token.start;
    const isNow = token.resourceVersion === LATEST || token.resourceVersion === log.resourceVersion;
    snapshot = isNow ? log.candidates(request.selection?.indexed) : log.stateAt(token.resourceVersion);
    if (snapshot === undefined) {
      return continueTooOld(encodeContinue({ ...token, resourceVersion: LATEST }));
    }
  } else {
    const state = await stateFor(log, request);
    if ("status" in state) return state.status;
    snapshot = state.snapshot;
  }
  return await cut(log, snapshot, { ...request, start, limit: limitOf(options) });
}

// A list at resourceVersion 0 comes whole, as from an API server's cache:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
function limitOf(options: ListOptions): number {
  return options.limit === undefined || options.resourceVersion === "0" ? Infinity : options.limit;
}

/** Which state a list without a continue token is about. */
async function stateFor<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<{ readonly snapshot: Snapshot<T> } | { readonly status: Status }> {
  const { resourceVersion = "0", resourceVersionMatch, limit } = request.options;
  if (resourceVersion === "0") return { snapshot: log.candidates(request.selection?.indexed) };
  if (!await log.reaches(resourceVersion, request.wait)) {
    return { status: tooLargeResourceVersion(resourceVersion, log.resourceVersion) };
  }
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && limit !== undefined);
  if (!isExact) return { snapshot: log.candidates(request.selection?.indexed) };
  const snapshot = log.stateAt(resourceVersion);
  return snapshot === undefined ? { status: stateTooOld(resourceVersion) } : { snapshot };
}

/** Takes a page out of a snapshot; costs only what it walks over. Gives others a turn while it looks at objects. */
async function cut<T extends KubernetesObject>(
  { holding }: EventLog<T>,
  snapshot: Snapshot<T>,
  at: ListRequest & { readonly start: string; readonly limit: number },
): Promise<Page<T>> {
  const { keys, resourceVersion } = snapshot;
  const { selection, limit, pacer, wait } = at;
  // "0" is the character after "/".
  const end = at.namespace === "" ? keys.length : lowerBound(keys, `${at.namespace}0`);
  const from = lowerBound(keys, at.start);
  let objects = snapshot.objects;
  let i = Math.max(from, Math.min(end, from + limit));
  if (selection !== undefined) {
    const selected: Held<T>[] = [];
    for (i = from; i < end && selected.length < limit; i++) {
      if (pacer.spend(selection.units)) {
        await pacer.rest();
        wait.signal?.throwIfAborted();
      }
      if (!selection.mayHave(keys[i]) || selection.hasLabels?.(snapshot.objects[i]) === false) continue;
      if (selection.hasFields !== undefined) {
        const object = holding.peek(snapshot.objects[i]);
        if (object !== snapshot.objects[i]) pacer.spend(OPEN_UNITS);
        if (!selection.hasFields(object)) continue;
      }
      selected.push(snapshot.objects[i]);
    }
    objects = selected;
  }
  const page = selection === undefined ? { objects, from, to: i } : { objects, from: 0, to: objects.length };
  if (i >= end) return { metadata: { resourceVersion }, ...page };
  return {
    metadata: {
      resourceVersion,
      continue: encodeContinue({ resourceVersion, start: keys[i - 1] + "\0", list: at.identity }),
      // Only if it is known without looking at every object.
      ...(selection === undefined && { remainingItemCount: end - i }),
    },
    ...page,
  };
}

// The whole of a list that is not larger than that goes out at once.
const SMALL_LIST = 64 * 1024;

/** How a list is written. */
export interface ListResponseOptions {
  readonly view: View;
  readonly pretty: boolean;
  /** How the page's objects are held. */
  readonly holding: Holding<KubernetesObject>;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Where all readers take turns. */
  readonly pacer: Pacer;
  /** How long a large list waits for its reader. */
  readonly writeTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * The answer to a list. A large one is encoded while it is read, so that it never is in memory as a whole; its objects
 * are those of one snapshot nevertheless. If the client stops reading, the stream ends with an error.
 */
export function listResponse(page: Page<KubernetesObject>, options: ListResponseOptions): Response {
  const pieces = listPieces(page, options, () => SMALL_LIST);
  const { value: text = "" } = pieces.next();
  const next = pieces.next();
  if (next.done) return new Response(text, { headers: JSON_HEADERS });
  // Starts again, so that nothing is kept for a client that does not read.
  pieces.return();
  const { readers } = options;
  const stream = streamOf(listPieces(page, options, () => readers.pieceLength), options);
  return new Response(stream, { headers: JSON_HEADERS });
}

function streamOf(pieces: Generator<string, void>, options: ListResponseOptions): ReadableStream<Uint8Array> {
  const { clock, writeTimeoutMs, pacer } = options;
  const release = options.reader.hold();
  let rest: Generator<string, void> | undefined = pieces;
  let timer: TimerHandle;
  const end = () => {
    rest = undefined;
    clock.clearTimeout(timer);
    release();
  };
  const awaitReader = (controller: ReadableByteStreamController) => {
    clock.clearTimeout(timer);
    timer = clock.setTimeout(() => {
      end();
      controller.error(newStalledError("list", writeTimeoutMs));
    }, writeTimeoutMs);
  };
  return new ReadableStream({
    type: "bytes",
    start: awaitReader,
    async pull(controller) {
      clock.clearTimeout(timer);
      if (pacer.isDue) await pacer.rest();
      const next = rest?.next();
      if (next === undefined) return;
      if (next.done) {
        end();
        return controller.close();
      }
      awaitReader(controller);
      pacer.spendText(next.value.length);
      controller.enqueue(encode(next.value));
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

function* listPieces(
  page: Page<KubernetesObject>,
  options: ListResponseOptions,
  pieceLength: () => number,
): Generator<string, void> {
  const { view, pretty } = options;
  const list = JSON.stringify(
    { ...view.list(page.metadata), [view.itemsField]: [] },
    null,
    pretty ? 2 : undefined,
  );
  const end = list.lastIndexOf("]");
  let text = list.slice(0, end);
  const separator = pretty ? "\n    " : "";
  const { objects, from, to } = page;
  for (let i = from; i < to; i++) {
    if (i > from) text += ",";
    text += separator + itemText(objects[i], options);
    if (text.length < pieceLength()) continue;
    yield text;
    text = "";
  }
  yield text + (pretty && to > from ? "\n  " : "") + list.slice(end) + "\n";
}

function itemText(held: Held<KubernetesObject>, options: ListResponseOptions): string {
  const { view, pretty, holding } = options;
  // JSON has no line breaks within its strings.
  if (pretty) return JSON.stringify(view.item(holding.peek(held)), null, 2).replaceAll("\n", "\n    ");
  const json = view.itemText && holding.json(held);
  return (json && view.itemText?.(json)) ?? JSON.stringify(view.item(holding.peek(held)));
}
