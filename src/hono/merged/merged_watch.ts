/**
 * Watches of a merged resource.
 * @module
 */

import { encodeMergedVersion } from "../../meta/merged_version.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../../meta/watch_event.ts";
import { isStatus } from "../../protocol/statuses.ts";
import { monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { deferred } from "../../util/deferred.ts";
import { errorMessage } from "../../util/errors.ts";
import { newTableView } from "../tables/table.ts";
import { newMetadataView, newObjectView, type View } from "../send/view.ts";
import { encode, eventText } from "../watches/encoding.ts";
import { watchResponse } from "../watches/watch_answer.ts";
import { errorStream } from "../watches/watch_stream.ts";
import { fieldAtPath, stringAt } from "./json_places.ts";
import { mergedColumns } from "./merged_columns.ts";
import { mergedHeaders } from "./merged_headers.ts";
import { acceptOf, formOf, type MergedRequest, paramsFor, versionsOf } from "./merged_request.ts";
import { ShardList } from "./shard_list.ts";
import { ShardWatch, type ShardWatchUser, watchParams } from "./shard_watch.ts";
import { askShard, type AwayShard, incomplete, type Merged, ofCollection } from "./shards.ts";
import { type ShownForm, shownObject } from "./shown_objects.ts";

// What is made for the reader at a time.
const PIECE_LENGTH = 64 * 1024;
// How long the bookmark of one shard waits for those of the others.
const BOOKMARK_WAIT_MS = 1_000;

/** The answer to a watch. */
export async function answerMergedWatch(
  merged: Merged,
  request: MergedRequest,
  abort: AbortController,
): Promise<Response | Status> {
  const { query } = request;
  if (query.timeoutSeconds !== undefined && query.timeoutSeconds < 0) {
    return watchResponse(new Blob([]).stream());
  }
  const versions = versionsOf(merged, request);
  if (isStatus(versions)) return watchResponse(errorStream(versions));
  const isInitial = query.sendInitialEvents === true;
  const isFromNow = !isInitial && (request.resourceVersion === "" || request.resourceVersion === "0");
  if (!isFromNow) return await openWatches(merged, request, { versions, isInitial, abort });
  const now = await presentVersions(merged, request, abort.signal);
  return isStatus(now) ? now : await openWatches(merged, request, { versions: now, isInitial, abort });
}

/** The versions of all shards now: a watch without initial events begins there. `"0"` for one that is away. */
async function presentVersions(
  merged: Merged,
  request: MergedRequest,
  signal: AbortSignal,
): Promise<readonly string[] | Status> {
  const { clock, timeoutMs } = merged;
  const { shards, pathname, isPartial, preferences } = request;
  const params = new URLSearchParams({ limit: "1" });
  const away: AwayShard[] = [];
  const versions = await Promise.all(shards.map(async (shard) => {
    const outcome = ofCollection(
      await askShard(merged, shard, { pathname, params, accept: "application/json", preferences, signal }),
    );
    if (outcome.kind === "answer" && outcome.response.body !== null) {
      const kind = `${merged.resource.kind}List`;
      const options = { itemsField: "items", kind, clock, silenceMs: timeoutMs } as const;
      const list = new ShardList(outcome.response.body, options);
      try {
        return (await list.head()).metadata.resourceVersion!;
      } catch (error) {
        away.push({ shard, why: errorMessage(error) });
      } finally {
        list.cancel();
      }
    } else away.push({ shard, why: outcome.kind === "away" ? outcome.why : "it does not list" });
    return "0";
  }));
  return away.length > 0 && !isPartial ? incomplete(merged, away) : versions;
}

async function openWatches(
  merged: Merged,
  request: MergedRequest,
  { versions, isInitial, abort }: {
    readonly versions: readonly string[];
    readonly isInitial: boolean;
    readonly abort: AbortController;
  },
): Promise<Response | Status> {
  const { shards, pathname, isPartial, query } = request;
  const accept = acceptOf(request);
  const own = shards.map((shard) => ({
    pathname,
    params: paramsFor(merged, shard, request.params),
    accept,
    preferences: request.preferences,
  }));
  const outcomes = await Promise.all(shards.map(async (shard, i) => {
    const params = isInitial
      ? initialParams(own[i].params, versions[i])
      : watchParams(own[i].params, versions[i]);
    return ofCollection(await askShard(merged, shard, { ...own[i], params, signal: abort.signal }));
  }));
  const away: AwayShard[] = outcomes.flatMap((outcome, i) =>
    outcome.kind === "away" ? [{ shard: shards[i], why: outcome.why }] : []
  );
  const refused = outcomes.find((outcome) => outcome.kind === "refused");
  if (refused !== undefined || away.length === shards.length || (away.length > 0 && !isPartial)) {
    for (const outcome of outcomes) {
      if (outcome.kind === "answer") outcome.response.body?.cancel().catch(() => {});
    }
    return refused?.kind === "refused" ? refused.status : incomplete(merged, away);
  }
  const responses = outcomes.map((outcome) => outcome.kind === "answer" ? outcome.response : undefined);
  const { timeoutSeconds } = query;
  const watch = new MergedWatch(merged, request, abort);
  watch.start(
    shards.map((shard, index) => {
      const isMissing = responses[index] === undefined;
      // What is known of it comes from the reader, or is nothing yet.
      const version = isInitial ? isMissing ? "0" : "" : versions[index];
      const options = {
        merged,
        shard,
        index,
        request: own[index],
        isPartial,
        endsMs: timeoutSeconds ? monotonicNow(merged.clock) + timeoutSeconds * 1_000 : Infinity,
        signal: abort.signal,
        user: watch,
      };
      return new ShardWatch(options, version, { isInitial: isInitial && !isMissing });
    }),
    responses,
  );
  const response = watchResponse(watch.body);
  const headers = mergedHeaders(responses.filter((each) => each !== undefined), {
    away,
    isSnapshot: shards.length === 1,
  });
  for (const [name, value] of headers) response.headers.append(name, value);
  return response;
}

function initialParams(params: URLSearchParams, version: string): URLSearchParams {
  const own = watchParams(params, version);
  if (version === "") own.delete("resourceVersion");
  own.set("sendInitialEvents", "true");
  own.set("resourceVersionMatch", "NotOlderThan");
  return own;
}

/**
 * One stream of those of all shards: events as they come, each with the merged resourceVersion from which a reader continues
 * behind it. It takes the memory of one chunk of each shard; a shard is read on when the reader has taken that.
 */
class MergedWatch implements ShardWatchUser {
  readonly body: ReadableStream<Uint8Array>;
  readonly #merged: Merged;
  readonly #request: MergedRequest;
  readonly #abort: AbortController;
  readonly #view: View;
  #watches: readonly ShardWatch[] = [];
  #forms: readonly ShownForm[] = [];
  /** Shards whose lines wait. */
  readonly #ready: ShardWatch[] = [];
  #awakened = deferred();
  /** How many shards have initial events to come. */
  #initialLeft = 0;
  #hasColumns = false;
  /** The shards that have sent a bookmark since the last one of the whole. */
  readonly #marked = new Set<ShardWatch>();
  #isBookmarkDue = false;
  #bookmarkTimer: TimerHandle | undefined;
  #endTimer: TimerHandle | undefined;
  /** What comes last. */
  #last: string | undefined;
  #text = "";

  constructor(merged: Merged, request: MergedRequest, abort: AbortController) {
    this.#merged = merged;
    this.#request = request;
    this.#abort = abort;
    const { shape } = request;
    this.#view = shape.kind === "object"
      ? newObjectView(merged.resource)
      : shape.kind === "Table"
      ? newTableView(merged.resource, {
        apiVersion: shape.apiVersion,
        includeObject: request.hidesObject ? "None" : "Metadata",
        nowMs: () => merged.clock.now(),
      })
      : newMetadataView(shape.apiVersion);
    this.body = new ReadableStream<Uint8Array>({
      pull: (controller) => this.#pull(controller),
      cancel: () => this.#close(),
    }, { highWaterMark: 0 });
  }

  /** Begins to read the responses. */
  start(watches: readonly ShardWatch[], responses: readonly (Response | undefined)[]): void {
    this.#watches = watches;
    this.#forms = watches.map(({ shard }) => formOf(this.#merged, this.#request, shard));
    this.#initialLeft = watches.filter(({ isInitial }) => isInitial).length;
    // Before the versions of all shards are known, no event can have one of the whole.
    if (this.#initialLeft > 0) { for (const watch of watches) if (!watch.isInitial) watch.pause(); }
    const { timeoutSeconds } = this.#request.query;
    if (timeoutSeconds) {
      const ms = timeoutSeconds * 1_000;
      this.#endTimer = this.#merged.clock.setTimeout(() => this.#end(this.#bookmarkText(false)), ms);
    }
    for (const [i, watch] of watches.entries()) {
      watch.run(responses[i]).catch((error) => this.onAway(watch, errorMessage(error)));
    }
  }

  onLines(watch: ShardWatch): void {
    this.#ready.push(watch);
    this.#awakened.resolve();
  }

  onRefused(status: Status): void {
    this.#end(eventText("ERROR", status));
  }

  onAway({ shard }: ShardWatch, why: string): void {
    const what = formatGroupResource(this.#merged.resource);
    this.#merged.logger.warn(`a watch of ${what} ends, as the shard ${shard.name} is away: ${why}`);
    this.#end("");
  }

  /** Ends the stream after what was taken; a reader that continues from there receives what waits. */
  #end(last: string): void {
    this.#last ??= last;
    this.#awakened.resolve();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#text === "") {
      if (this.#last !== undefined) {
        if (this.#last !== "") controller.enqueue(encode(this.#last));
        this.#close();
        return controller.close();
      }
      const watch = this.#ready.shift();
      if (watch !== undefined) this.#take(watch);
      else if (this.#isBookmarkDue) this.#text += this.#bookmarkText(false);
      else {
        this.#awakened = deferred();
        await this.#awakened.promise;
        // It was cancelled.
        if (this.#abort.signal.aborted) return;
      }
    }
    controller.enqueue(encode(this.#text));
    this.#text = "";
  }

  #close(): void {
    const { clock } = this.#merged;
    for (const timer of [this.#bookmarkTimer, this.#endTimer]) {
      if (timer !== undefined) clock.clearTimeout(timer);
    }
    this.#bookmarkTimer = this.#endTimer = undefined;
    this.#abort.abort();
    this.#awakened.resolve();
  }

  /** Takes the lines of a shard, as far as there is room. */
  #take(watch: ShardWatch): void {
    const { lines } = watch;
    let i = 0;
    try {
      while (i < lines.length && this.#text.length < PIECE_LENGTH && this.#last === undefined) {
        if (this.#initialLeft > 0 && !watch.isInitial) break; // until the versions of all are known
        this.#event(watch, lines[i++]);
      }
    } catch (error) {
      const why = `an event of the shard ${watch.shard.name} cannot be read: ${errorMessage(error)}`;
      return this.onRefused(newStatus(500, "InternalError", why));
    }
    if (i === lines.length) return watch.taken();
    watch.lines = lines.slice(i);
    const isHeld = this.#initialLeft > 0 && !watch.isInitial;
    if (!isHeld) this.#ready.unshift(watch);
  }

  #event(watch: ShardWatch, line: string): void {
    const { type, object } = readLine(line);
    if (type === "ERROR") return this.#end(eventText("ERROR", JSON.parse(object)));
    const version = stringAt(object, fieldAtPath(object, 0, ["metadata", "resourceVersion"])) ?? "";
    if (type === "BOOKMARK") return this.#bookmark(watch, { object, version });
    const form = this.#forms[watch.index];
    const { resource } = this.#merged;
    const hasColumns = this.#hasColumns;
    this.#hasColumns = true;
    // Only the first event has them.
    const options = { columns: (columns: unknown) => hasColumns ? null : mergedColumns(resource, columns) };
    if (this.#initialLeft > 0) {
      this.#text += lineOf(type, shownObject(object, form, options));
      return;
    }
    if (version !== "") watch.reached(version);
    this.#text += lineOf(type, shownObject(object, form, { ...options, resourceVersion: this.#version() }));
  }

  #bookmark(
    watch: ShardWatch,
    { object, version }: { readonly object: string; readonly version: string },
  ): void {
    if (version !== "") watch.reached(version);
    if (watch.isInitial && object.includes(INITIAL_EVENTS_END_ANNOTATION)) {
      watch.isInitial = false;
      this.#initialLeft--;
      if (this.#initialLeft > 0) return watch.pause();
      this.#text += this.#bookmarkText(true);
      for (const each of this.#watches) {
        each.resume();
        if (each !== watch && each.lines.length > 0) this.#ready.push(each);
      }
      return;
    }
    if (this.#initialLeft > 0 || !this.#request.query.allowWatchBookmarks) return;
    this.#marked.add(watch);
    if (this.#marked.size === this.#watches.length) this.#isBookmarkDue = true;
    else {
      this.#bookmarkTimer ??= this.#merged.clock.setTimeout(() => {
        this.#bookmarkTimer = undefined;
        this.#isBookmarkDue = this.#marked.size > 0;
        this.#awakened.resolve();
      }, BOOKMARK_WAIT_MS);
    }
  }

  /** What the reader has seen of all shards; `""` for readers that do not want bookmarks. */
  #bookmarkText(isInitialEnd: boolean): string {
    this.#isBookmarkDue = false;
    this.#marked.clear();
    if (!this.#request.query.allowWatchBookmarks || this.#initialLeft > 0) return "";
    return eventText(
      "BOOKMARK",
      this.#view.bookmark({
        resourceVersion: this.#version(),
        ...(isInitialEnd && { annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true" } }),
      }),
    );
  }

  #version(): string {
    return encodeMergedVersion({
      layout: this.#request.layout,
      parts: this.#watches.map(({ version }) => version),
    });
  }
}

// As Go's encoder and this package write it.
const LINE = /^\{"type":"([A-Z]+)","object":/;

function readLine(line: string): { readonly type: string; readonly object: string } {
  const [head, type] = LINE.exec(line) ?? [];
  if (head !== undefined) return { type, object: line.trimEnd().slice(head.length, -1) };
  const event = JSON.parse(line);
  return { type: String(event.type), object: JSON.stringify(event.object) };
}

function lineOf(type: string, json: string): string {
  return `{"type":"${type}","object":${json}}\n`;
}
