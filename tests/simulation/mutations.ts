/**
 * Deliberate faults: each of them the simulation must notice.
 * @module
 */

/** One fault, as a change of the source. */
export interface Mutation {
  /** What is then wrong. */
  readonly name: string;
  /** The file, from the root of the project. */
  readonly file: string;
  /** What is there; must be there exactly once. */
  readonly find: string;
  /** What takes its place. */
  readonly replace: string;
}

const REFLECTOR = "src/reflector/list_watch_loop.ts";
const WRITER = "src/reflector/store_writer.ts";
const STATE = "src/reflector/state.ts";
const WATCH_LIST = "src/reflector/watch_list.ts";
const TRIAL = "src/reflector/stream_trial.ts";
const OUTAGE = "src/reflector/outage.ts";
const APPLIER = "src/informer/delta_applier.ts";
const HISTORY = "src/informer/event_history.ts";
const MERGED = "src/informer/merged_notifications.ts";
const DECODER = "src/watch/decode_watch.ts";

/** The faults, in the order the data walks. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "client: a Retry-After that is a date is not understood",
    file: "src/client/response_error.ts",
    find: "return Math.max(0, timeMs - (Number.isNaN(sentMs) ? clock.now() : sentMs));",
    replace: "return undefined;",
  },
  {
    name: "client: a Retry-After that is a date is held against the wrong clock",
    file: "src/client/response_error.ts",
    find: "(Number.isNaN(sentMs) ? clock.now() : sentMs)",
    replace: "clock.now()",
  },
  {
    name: "reflector: a list that goes on steadily has to be whole in time",
    file: "src/reflector/list_request.ts",
    find: "if (more > 0) silence.feed();",
    replace: "",
  },
  {
    name: "client: a request goes on when it is aborted",
    file: "src/client/cluster.ts",
    find: "    ...(signal && { signal }),\n  };\n}",
    replace: "  };\n}",
  },
  {
    name: "watch: the last of several frames of a chunk is dropped",
    file: DECODER,
    find: "    } catch (error) { // a frame over the limit",
    replace: "      if (batch.length > 2) batch.pop();\n    } catch (error) { // a frame over the limit",
  },
  {
    name: "watch: a frame that is split between chunks loses its beginning",
    file: "src/watch/frame_cutter.ts",
    find: "if (this.#restLength > 0) {",
    replace: "this.#takeRest();\n      if (this.#restLength > 0) {",
  },
  {
    name: "watch: a frame that is no JSON is stepped over without a word",
    file: DECODER,
    find:
      "if (!mayBeCut) this.#refuse(`the frame is not JSON: ${jsonFault(error)}`, batch);\n      return false;",
    replace: "return !mayBeCut;",
  },
  {
    name: "pager: a list whose continue token ran out is taken as it is",
    file: "src/reflector/pager.ts",
    find: "if (!fullListIfExpired || !isResourceExpired(error)) throw error;",
    replace: "if (isResourceExpired(error)) break;\n      if (!fullListIfExpired) throw error;",
  },
  {
    name: "streamed list: what follows the end bookmark in its chunk is lost",
    file: WATCH_LIST,
    find: "watch.unread(batch.slice(i + 1));",
    replace: "",
  },
  {
    name: "streamed list: its resourceVersion is that of the last ADDED",
    file: WATCH_LIST,
    find: "return { ...gathered.result(), resourceVersion };",
    replace: "const result = gathered.result();\n" +
      "const last = result.items.at(-1) as { metadata: { resourceVersion: string } } | undefined;\n" +
      "return { ...result, resourceVersion: last?.metadata.resourceVersion ?? resourceVersion };",
  },
  {
    name: "streamed list: one whose end does not come is waited for while changes go on",
    file: WATCH_LIST,
    find: "if (gathered.size > before && !gathered.hasChanges) end.feed();",
    replace: 'if (batch.some(({ type }) => type !== "BOOKMARK")) end.feed();',
  },
  {
    name: "streamed list: one that is reset, cut, or not answered is asked for again for ever",
    file: STATE,
    find: 'const lists = otherwise === "list" || trial.suspicion !== undefined;',
    replace: 'const lists = otherwise === "list";',
  },
  {
    name: "streamed list: one that is refused is asked for again for ever",
    file: TRIAL,
    find: "const isSuspect = nowMs - failingSinceMs >= LONGEST_FAILING_MS;",
    replace: "const isSuspect = false;",
  },
  {
    name: "streamed list: they are taken up again with the next cycle, whatever became of them",
    file: TRIAL,
    find: "return trial.pausedUntilMs !== undefined && nowMs < trial.pausedUntilMs;",
    replace: "return trial.pausedUntilMs !== undefined && nowMs < 0;",
  },
  {
    name: "streamed list: the state of what was refused outlives its correction",
    file: WATCH_LIST,
    find: "      this.#quarantinedByKey.delete(key);\n    } catch (error) {",
    replace: "    } catch (error) {",
  },
  {
    name: "streamed list: a delete that is refused is none",
    file: WATCH_LIST,
    find: '    if (eventType === "DELETED") {\n      this.#objects.delete(key);',
    replace: '    if (eventType === "DELETED" && key === "") {\n      this.#objects.delete(key);',
  },
  {
    name: "streamed list: a stream that stalls is waited for",
    file: "src/reflector/watchdog.ts",
    find: "if (restMs <= 0) this.#onExpired();",
    replace: "if (restMs <= 0) return;",
  },
  {
    name: "reflector: the resourceVersion advances before the store is written",
    file: WRITER,
    find: "this.#store.update(event.object);",
    replace: "queueMicrotask(() => this.#store.update(event.object));",
  },
  {
    name: "reflector: events that follow a bookmark in its chunk are skipped",
    file: WRITER,
    find: "      if (this.#apply(item)) watch.events++;",
    replace: '      if (this.#apply(item) && item.type === "BOOKMARK") break;',
  },
  {
    name: "reflector: the resourceVersion moves past a delete that was lost",
    file: WRITER,
    find: 'if (eventType !== "DELETED" || !this.#deletesKey(key, resourceVersion)) quarantine.lost();',
    replace: "if (key !== undefined && resourceVersion) this.#reached(resourceVersion);",
  },
  {
    name: "reflector: a watch begins anew at no resourceVersion",
    file: REFLECTOR,
    find: "resourceVersion: this.#writer.resourceVersion,",
    replace: 'resourceVersion: "",',
  },
  {
    name: "reflector: a watch that expired is asked for again",
    file: STATE,
    find: 'if (isTooManyRequests(error)) return { state, step: { do: "backOff", then: "watch" } };',
    replace:
      'if (isTooManyRequests(error) || isExpired(error)) return { state, step: { do: "backOff", then: "watch" } };',
  },
  {
    name: "reflector: a list leaves the resourceVersion as it was",
    file: STATE,
    find: "const listed = { ...state, resourceVersion, isResourceVersionUnavailable",
    replace: "const listed = { ...state, resourceVersion: state.resourceVersion || resourceVersion, " +
      "isResourceVersionUnavailable",
  },
  {
    name: "reflector: its resourceVersion goes back with an event that is sent again",
    file: "src/reflector/store_writer.ts",
    find: "      this.#olderVersion = resourceVersion;\n      return;",
    replace: "      this.#olderVersion = resourceVersion;",
  },
  {
    name: "reflector: every attempt resets the backoff",
    file: "src/reflector/retry_pacing.ts",
    find: "const delayMs = this.#backoff.nextDelayMs();",
    replace: "this.#backoff.reset?.();\n    const delayMs = this.#backoff.nextDelayMs();",
  },
  {
    name: "reflector: a watch that ended leaves its timer",
    file: "src/reflector/open_watch.ts",
    find: "this.#clock.clearTimeout(this.#deadlineTimer);",
    replace: "",
  },
  {
    name: "clock: how old a copy is, is told by the wall clock alone",
    file: "src/reflector/status.ts",
    find: "return Math.ceil(Math.max(monotonicMs, clock.now() - contact.wallMs));",
    replace: "return Math.ceil(Math.max(0 * monotonicMs, clock.now() - contact.wallMs));",
  },
  {
    name: "clock: how old a copy is, is told by the monotonic clock alone",
    file: "src/reflector/status.ts",
    find: "return Math.ceil(Math.max(monotonicMs, clock.now() - contact.wallMs));",
    replace: "return Math.ceil(monotonicMs);",
  },
  {
    name: "clock: silence is measured by the wall clock",
    file: "src/reflector/watchdog.ts",
    find: "import { type Clock, monotonicNow, type TimerHandle } from",
    replace:
      "const monotonicNow = (clock: Clock) => clock.now();\nimport { type Clock, type TimerHandle } from",
  },
  {
    name: "clock: a watch is trusted although the program stood still",
    file: "src/reflector/open_watch.ts",
    find: "if (stalledMs < STALL_MS) return false;",
    replace: "if (stalledMs < Infinity) return false;",
  },
  {
    name: "reports: a watch that does not reach its server is kept from the error handler",
    file: "src/reflector/reflector_reports.ts",
    find: "const isTold = endsCycle || !isTooManyRequests(error) ||",
    replace: "const isTold = endsCycle || (1 < 0) && !isTooManyRequests(error) ||",
  },
  {
    name: "reports: a server that is lost is told of with each try",
    file: OUTAGE,
    find: "    this.#told.add(kind);\n",
    replace: '    if (kind === "refuses") this.#told.add(kind);\n',
  },
  {
    name: "reports: a server that is back is not told of",
    file: OUTAGE,
    find: "    if (!wasTold) return;\n",
    replace: "    if (wasTold) return;\n",
  },
  {
    name: "reports: a server that is lost is not told of",
    file: OUTAGE,
    find: "    this.#warn(`${what}: ",
    replace: '    if (kind === "refuses") this.#warn(`${what}: ',
  },
  {
    name: "queue: a relist deletes nothing that is known (DeltaFIFO)",
    file: "src/queue/delta_fifo.ts",
    find: "for (const key of this.#knownObjects?.listKeys() ?? []) {",
    replace: "for (const key of [] as string[]) {",
  },
  {
    name: "queue: of two deltas of an object only the newer is kept (DeltaFIFO)",
    file: "src/queue/delta_fifo.ts",
    find: 'if (delta.type !== "Deleted" || last.type !== "Deleted") deltas.push(delta);',
    replace:
      'if (delta.type !== "Deleted" || last.type !== "Deleted") deltas.splice(0, deltas.length, delta);',
  },
  {
    name: "queue: a bookmark is dropped while something is queued (RealFIFO)",
    file: "src/queue/real_fifo.ts",
    find: "this.places.push(delta);",
    replace: 'if (delta.type === "Bookmark" && this.places.length > 0) return;\n    this.places.push(delta);',
  },
  {
    name: "informer: a relist tells nobody of what is gone",
    file: "src/informer/list_application.ts",
    find: "        list.pushGone(new DeletedFinalStateUnknown(key, store.getByKey(key)));",
    replace: "",
  },
  {
    name: "informer: a tombstone is ignored",
    file: APPLIER,
    find: "if (deleted instanceof DeletedFinalStateUnknown) return this.#deleteTombstone(deleted);",
    replace: "if (deleted instanceof DeletedFinalStateUnknown) return;",
  },
  {
    name: "informer: an event that is sent again is applied",
    file: APPLIER,
    find: "if (!isAgain && !isOlder(version, reached)) {",
    replace: "if (!isAgain) {",
  },
  {
    name: "informer: a delete that is sent again deletes what was created again",
    file: HISTORY,
    find: 'if (stored === undefined) return "seen";',
    replace: 'return stored === undefined ? "seen" : "late";',
  },
  {
    name: "informer: an older event that may be real is stepped over in silence",
    file: APPLIER,
    find: 'if (standing === "doubtful") this.#quarantine.lost();',
    replace: "",
  },
  {
    name: "informer: an older event of an object that is not stored counts as sent again",
    file: HISTORY,
    find: 'if (stored === undefined) return "doubtful";',
    replace: 'if (stored === undefined) return "seen";',
  },
  {
    name: "informer: of the same version means of the same content",
    file: "src/informer/same_state.ts",
    find: "(resourceVersionOf(a) === resourceVersionOf(b) && isSameContent(a, b))",
    replace: "resourceVersionOf(a) === resourceVersionOf(b)",
  },
  {
    name: "reflector: bookmarks that do not come any more mean nothing",
    file: "src/reflector/watch_end.ts",
    find: "if (this.#bookmarks === 0 || ++this.#silentWatches + this.#bookmarks < 3) return false;",
    replace: "return false;",
  },
  {
    name: "reflector: a list that went back leaves the position as it was",
    file: "src/reflector/store_writer.ts",
    find: "    this.#resourceVersion = resourceVersion;\n    this.#completeVersion",
    replace:
      "    if (!isOlder(resourceVersion, this.#resourceVersion)) this.#resourceVersion = resourceVersion;\n" +
      "    this.#completeVersion",
  },
  {
    name: "informer: handlers are told before the store is written",
    file: APPLIER,
    find: "const oldObject = store.update(key, this.#holding.hold(object, key));",
    replace: "const oldObject = store.get(key);\n" +
      "    queueMicrotask(() => store.update(key, this.#holding.hold(object, key)));",
  },
  {
    name: "informer: a handler that joins late misses what is there",
    file: "src/informer/processor.ts",
    find: "new ListNotifications({ isInInitialList: true }, present)",
    replace: "new ListNotifications({ isInInitialList: true }, present.slice(1))",
  },
  {
    name: "informer: a handler that was removed is still told",
    file: "src/informer/processor.ts",
    find: "if (this.#listeners.delete(listener)) this.#leaving.set(listener, listener.stop());",
    replace: "this.#leaving.set(listener, Promise.resolve());",
  },
  {
    name: "informer: a wait for a version that begins after the stop never ends",
    file: "src/meta/version_waiters.ts",
    find: 'if (this.#isStopped) return Promise.resolve("stopped");',
    replace: "",
  },
  {
    name: "informer: a wait for a version does not end with the stop",
    file: "src/meta/version_waiters.ts",
    find: 'for (const waiter of this.#waiters) waiter.end("stopped");',
    replace: "",
  },
  {
    name: "informer: a wait for a version that is reached goes on",
    file: "src/meta/version_waiters.ts",
    find: 'if (this.#isReached(waiter.resourceVersion)) waiter.end("reached");',
    replace: 'if (this.#reached() === waiter.resourceVersion && this.#isStopped) waiter.end("reached");',
  },
  {
    name: "informer: a merged update forgets what the handler saw",
    file: MERGED,
    find: "return { isKnown: true, seen: oldObject, isInInitialList: false, object, deleted: undefined };",
    replace: "return { isKnown: true, seen: object, isInInitialList: false, object, deleted: undefined };",
  },
  {
    name: "informer: a handler is told of a list's objects but one",
    file: "src/informer/mailbox.ts",
    find: "    if (first.length === 0) {\n      this.#list.shift();",
    replace: "    if (first.length <= 1) {\n      this.#inLists -= first.length;\n      this.#list.shift();",
  },
  {
    name: "informer: a change behind a list is told with what the list says, and once more",
    file: MERGED,
    find: "if (entry === undefined) return earlier;\n    this.#remove(key);",
    replace: "if (entry === undefined) return earlier;",
  },
  {
    name: "informer: a delete behind a list is told of an object that the handler does not know",
    file: MERGED,
    find: "return this.#isNothing(merged, entry) ? undefined : made(merged);",
    replace: "this.#isNothing(merged, entry);\n    merged.deleted = entry.deleted;\n    return made(merged);",
  },
  {
    name: "informer: an object of the first list that is gone before it is told is waited for",
    file: MERGED,
    find: "if (entry.isInInitialList) this.onInitialMerged();\n    return true;",
    replace: "return true;",
  },
  {
    name: "informer: what waits behind a list is lost when another list comes",
    file: "src/informer/mailbox.ts",
    find: "if (this.#merged !== undefined) yield* merged.pushAll(this.#merged);",
    replace: "",
  },
  {
    name: "store: an index that is added while a list is stored is left behind",
    file: "src/store/long_writes.ts",
    find: "const isOutdated = () => content.indexChanges !== indexChanges;",
    replace: "const isOutdated = () => false;",
  },
  {
    name: "store: what is written while an index is added in steps is lost",
    file: "src/store/long_writes.ts",
    find: "content.journals.add(written);",
    replace: "",
  },
  {
    name: "store: a list that is stored while an index is added in steps is lost",
    file: "src/store/long_writes.ts",
    find: "const isOutdated = () => content.entries !== before || content.indexChanges !== indexChanges;",
    replace: "const isOutdated = () => content.indexChanges !== indexChanges;",
  },
  {
    name: "store: a replace that changes little leaves what is gone",
    file: "src/store/long_writes.ts",
    find: "for (const key of gone) content.remove(key);",
    replace: "for (const key of gone.slice(1)) content.remove(key);",
  },
  {
    name: "store: a replace that changes little misses what has changed",
    file: "src/store/long_writes.ts",
    find: "if (entry !== undefined && entry.object === object) changed.delete(key);",
    replace: "if (entry !== undefined) changed.delete(key);",
  },
  {
    name: "store: an object that moves stays in its old index value",
    file: "src/store/store_index.ts",
    find: "if (old instanceof IndexBucket) this.#leave(i, old, entry);",
    replace: "if (old instanceof IndexBucket) { /* stays */ }",
  },
  {
    name: "reflector: a relist that is due is forgotten when the watch reopens",
    file: "src/reflector/open_watch.ts",
    find: "    if (relistDueMs !== undefined) this.relistAt(relistDueMs);\n",
    replace: "",
  },
  {
    name: "reflector: a relist that becomes due while a watch is open waits for another watch",
    file: REFLECTOR,
    find: "this.#followed?.relistAt(dueMs)",
    replace: "",
  },
  {
    name: "reflector: a list leaves a listener",
    file: "src/reflector/list_request.ts",
    find: "    silence.stop();\n    link.unlink();",
    replace: "    silence.stop();",
  },
  {
    name: "reflector: a watch leaves a listener",
    file: "src/reflector/open_watch.ts",
    find: "    this.#link.unlink();\n",
    replace: "",
  },
  {
    name: "reflector: a watch that is not answered is waited for",
    file: "src/reflector/open_watch.ts",
    find: "        ms: openTimeoutMs,",
    replace: "        ms: Infinity,",
  },
  {
    name: "reflector: a resync comes once",
    file: "src/reflector/resync_timer.ts",
    find: "    this.#arm();\n    try {",
    replace: "    try {",
  },
  {
    name: "informer: a change that an index function refuses once is lost for good",
    file: APPLIER,
    find: 'delta.type !== "Replaced" && delta.type !== "Sync"',
    replace: 'delta.type === "Deleted"',
  },
  {
    name: "informer: a resync comes to every handler",
    file: "src/informer/processor.ts",
    find: "if (!isUnchanged || listener.isSyncing) listener.add(notification);",
    replace: "listener.add(notification);",
  },
  {
    name: "informer: a handler that has synced is not told so",
    file: "src/informer/processor_listener.ts",
    find: 'if (next.type === "add" && next.isInInitialList) this.#tracker.finished();',
    replace: "",
  },
  {
    name: "informer: a call that waits for a version waits for one more",
    file: "src/meta/version_waiters.ts",
    find: "compareResourceVersions(reached, resourceVersion) >= 0;",
    replace: "compareResourceVersions(reached, resourceVersion) > 0;",
  },
  {
    name: "informer: what runs in the background listens on when it has stopped",
    file: "src/informer/controller.ts",
    find: ".finally(() => link.unlink())",
    replace: "",
  },
];
