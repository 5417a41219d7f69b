/**
 * Deliberate defects of the source; the simulation must catch each one.
 * @module
 */

import type { Mutation } from "../mutant.ts";

const REFLECTOR = "src/reflector/reflector.ts";
const WRITER = "src/reflector/store_writer.ts";
const WATCH_LIST = "src/reflector/lists.ts";
const STATE = "src/reflector/state.ts";
const TRANSITION = "src/reflector/transition.ts";
const RESUMPTION = "src/reflector/resumption.ts";
const FAILURES = "src/reflector/failures.ts";
const RELISTS = "src/reflector/relists.ts";
const APPLIER = "src/informer/delta_applier.ts";
const HISTORY = "src/informer/event_history.ts";
const MERGED = "src/informer/mailbox.ts";
const FRESH = "src/hono/content/fresh_reads.ts";
const DECODER = "src/watch/decode_watch.ts";
const KEEPER = "src/informer/snapshot/content.ts";
const RUN = "src/informer/snapshot/informer_snapshot.ts";

/** The defects, in the order of the data flow. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "client: a Retry-After that is a date is ignored",
    file: "src/meta/request.ts",
    find: "return Math.max(0, timeMs - (Number.isNaN(sentMs) ? clock.now() : sentMs));",
    replace: "return undefined;",
  },
  {
    name: "client: a Retry-After that is a date is compared with the wrong clock",
    file: "src/meta/request.ts",
    find: "(Number.isNaN(sentMs) ? clock.now() : sentMs)",
    replace: "clock.now()",
  },
  {
    name: "reflector: a list that makes progress is limited to one timeout",
    file: "src/reflector/lists.ts",
    find: "if (more > 0) silence.feed();",
    replace: "",
  },
  {
    name: "client: an aborted request continues",
    file: "src/client/cluster.ts",
    find: "    ...(signal && { signal }),\n  };\n}",
    replace: "  };\n}",
  },
  {
    name: "store: an object as text has the labels of the one before it",
    file: "src/store/text_holding.ts",
    find: "if (!isSameJson(metadata?.labels, this.#labels)) this.#labels = metadata?.labels;",
    replace: "this.#labels ??= metadata?.labels;",
  },
  {
    name: "text: the beginning of a frame that continues in the next chunk is lost",
    file: "src/text/line_cutter.ts",
    find: "if (before > 0) bytes.set(this.#rest.take());",
    replace: "if (before > 0) this.#rest.take().fill(0x20);",
  },
  {
    name: "text: an object has the fields of the one before it too",
    file: "src/text/object_walk.ts",
    find: "this.metadata.start = this.found =",
    replace: "this.metadata.start =",
  },
  {
    name: "text: an item that continues in the next chunk ends the list",
    file: "src/text/list_cutter.ts",
    find: "if (before > 0) bytes.set(this.#rest.take(), start);",
    replace: "if (before > 0) this.#rest.take().fill(0x20);",
  },
  {
    name: "watch: the last of several frames of a chunk is dropped",
    file: DECODER,
    within: "#decode",
    find: "return batch;",
    replace: "if (batch.length > 2) batch.pop();\n    return batch;",
  },
  {
    name: "watch: a frame that is not JSON is skipped silently",
    file: DECODER,
    find:
      "if (!mayBeCut) this.#refuse(`the frame is not JSON: ${jsonFault(error)}`, batch);\n      return false;",
    replace: "return !mayBeCut;",
  },
  {
    name: "pager: a list with an expired continue token is accepted incomplete",
    file: "src/reflector/lists.ts",
    find: "if (!fullListIfExpired || !isResourceExpired(error)) throw error;",
    replace: "if (isResourceExpired(error)) break;\n      if (!fullListIfExpired) throw error;",
  },
  {
    name: "streamed list: events after the end bookmark in its chunk are lost",
    file: WATCH_LIST,
    find: "watch.unread(batch.slice(i + 1));",
    replace: "",
  },
  {
    name: "streamed list: its resourceVersion is that of the last ADDED event",
    file: WATCH_LIST,
    find: "return { ...gathered.result(), resourceVersion, received };",
    replace: "const result = gathered.result();\n" +
      "const last = result.items.at(-1) as { metadata: { resourceVersion: string } } | undefined;\n" +
      "return { ...result, resourceVersion: last?.metadata.resourceVersion ?? resourceVersion, received };",
  },
  {
    name: "streamed list: one without an end is awaited while changes arrive",
    file: WATCH_LIST,
    find: "if (gathered.size > known && !gathered.hasChanges) end.feed();",
    replace: 'if (batch.some(({ type }) => type !== "BOOKMARK")) end.feed();',
  },
  {
    name: "streamed list: one that is reset, cut or without a response is requested for ever",
    file: TRANSITION,
    find: 'const lists = otherwise === "list" || trial.suspicion !== undefined;',
    replace: 'const lists = otherwise === "list";',
  },
  {
    name: "streamed list: one that is refused is requested for ever",
    file: FAILURES,
    find: "const isSuspect = nowMs - failingSinceMs >= LONGEST_FAILING_MS;",
    replace: "const isSuspect = false;",
  },
  {
    name: "streamed list: requested again with the next cycle, also after a failure",
    file: FAILURES,
    find: "return trial.pausedUntilMs !== undefined && nowMs < trial.pausedUntilMs;",
    replace: "return trial.pausedUntilMs !== undefined && nowMs < 0;",
  },
  {
    name: "streamed list: the state of a quarantined object outlives its correction",
    file: WATCH_LIST,
    find: "      this.#quarantinedByKey.delete(key);\n    } catch (error) {",
    replace: "    } catch (error) {",
  },
  {
    name: "streamed list: a quarantined delete has no effect",
    file: WATCH_LIST,
    find: '    if (eventType === "DELETED") {\n      this.#objects.delete(key);',
    replace: '    if (eventType === "DELETED" && key === "") {\n      this.#objects.delete(key);',
  },
  {
    name: "streamed list: a stalled stream has no timeout",
    file: "src/reflector/open_watch.ts",
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
    name: "reflector: events after a bookmark in its chunk are skipped",
    file: WRITER,
    find: "      this.#apply(item);\n",
    replace: '      this.#apply(item);\n      if (item.type === "BOOKMARK") break;\n',
  },
  {
    name: "reflector: the resourceVersion moves past a delete that was lost",
    file: WRITER,
    find: 'if (eventType !== "DELETED" || !this.#deletesKey(key, resourceVersion)) quarantine.lost();',
    replace: "if (key !== undefined && resourceVersion) reach(position, resourceVersion, false);",
  },
  {
    name: "reflector: a watch starts again without a resourceVersion",
    file: REFLECTOR,
    find: "this.#openWatch({ resourceVersion, allowWatchBookmarks: true, signal })",
    replace:
      "this.#openWatch({ resourceVersion: resourceVersion.slice(0, 0), allowWatchBookmarks: true, signal })",
  },
  {
    name: "reflector: an expired watch is requested again",
    file: TRANSITION,
    find: 'if (isTooManyRequests(error)) return go(state, { do: "backOff", then: "watch" });',
    replace:
      'if (isTooManyRequests(error) || isExpired(error)) return go(state, { do: "backOff", then: "watch" });',
  },
  {
    name: "reflector: a list does not change the resourceVersion",
    file: WRITER,
    find: "const complete = { resourceVersion, completeVersion: resourceVersion, contact };",
    replace:
      "const complete = {\n    resourceVersion: position.resourceVersion || resourceVersion,\n    completeVersion: resourceVersion,\n    contact,\n  };",
  },
  {
    name: "reflector: a repeated event sets the resourceVersion back",
    file: WRITER,
    find: "    position.olderVersion = resourceVersion;\n    return;",
    replace: "    position.olderVersion = resourceVersion;",
  },
  {
    name: "reflector: every attempt resets the backoff",
    file: FAILURES,
    find: "if (isWell) backoff.reset?.();",
    replace: "backoff.reset?.();",
  },
  {
    name: "reflector: an ended watch leaves its timer",
    file: "src/reflector/open_watch.ts",
    find: "this.#clock.clearTimeout(this.#deadlineTimer);",
    replace: "",
  },
  {
    name: "clock: the age of a copy depends on the wall clock alone",
    file: "src/util/clock.ts",
    find: "return Math.ceil(Math.max(monotonicMs, clock.now() - moment.wallMs));",
    replace: "return Math.ceil(Math.max(0 * monotonicMs, clock.now() - moment.wallMs));",
  },
  {
    name: "clock: the age of a copy depends on the monotonic clock alone",
    file: "src/util/clock.ts",
    find: "return Math.ceil(Math.max(monotonicMs, clock.now() - moment.wallMs));",
    replace: "return Math.ceil(monotonicMs);",
  },
  {
    name: "clock: silence is measured by the wall clock",
    file: "src/reflector/open_watch.ts",
    find: "this.#clock = clock;\n    this.#limitMs = limitMs;",
    replace: "this.#limitMs = limitMs;\n    this.#clock = {\n" +
      "      now: () => clock.now(),\n" +
      "      setTimeout: (call, ms) => clock.setTimeout(call, ms),\n" +
      "      clearTimeout: (timer) => clock.clearTimeout(timer),\n    };",
  },
  {
    name: "clock: a watch counts as fresh after the program was suspended",
    file: "src/reflector/open_watch.ts",
    find: "if (stalledMs < STALL_MS) return false;",
    replace: "if (stalledMs < Infinity) return false;",
  },
  {
    name: "reports: a failed connection of a watch does not reach the error handler",
    file: FAILURES,
    find: "const isReported = endsCycle || !isPassing ||",
    replace: "const isReported = endsCycle || (1 < 0) && !isPassing ||",
  },
  {
    name: "reports: an outage is reported with each attempt",
    file: FAILURES,
    find: "reported: [...outage.reported, kind]",
    replace: 'reported: kind === "refuses" ? [...outage.reported, kind] : []',
  },
  {
    name: "reports: the end of an outage is not reported",
    file: FAILURES,
    find: "outage === undefined || outage.reported.length === 0",
    replace: "outage === undefined || outage.reported.length > 0",
  },
  {
    name: "reports: an outage is not reported",
    file: FAILURES,
    find: "if (outage.reported.includes(kind)) return { failures };",
    replace: 'if (kind === "away") return { failures };',
  },
  {
    name: "queue: a relist deletes no known object (DeltaFIFO)",
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
    name: "queue: a bookmark is dropped while something is queued (AtomicFIFO)",
    file: "src/queue/atomic_fifo.ts",
    find: "this.places.push(delta);",
    replace: 'if (delta.type === "Bookmark" && this.places.length > 0) return;\n    this.places.push(delta);',
  },
  {
    name: "informer: a relist notifies of no deletes",
    file: "src/informer/list_application.ts",
    find: "        list.deleted.push(new DeletedFinalStateUnknown(key, store.held.get(key)));",
    replace: "",
  },
  {
    name: "informer: a tombstone is ignored",
    file: APPLIER,
    find:
      "if (deleted instanceof DeletedFinalStateUnknown) return this.#deleteTombstone(deleted, resourceVersion);",
    replace: "if (deleted instanceof DeletedFinalStateUnknown) return;",
  },
  {
    name: "informer: a repeated event is applied",
    file: APPLIER,
    find: "if (!isAgain && !isOlder(version, reached)) {",
    replace: "if (!isAgain) {",
  },
  {
    name: "informer: a repeated delete deletes an object that was created again",
    file: HISTORY,
    find: 'if (stored === undefined) return "seen";',
    replace: 'return stored === undefined ? "seen" : "late";',
  },
  {
    name: "informer: an older event that may be real is skipped silently",
    file: APPLIER,
    find: 'if (standing === "doubtful") this.#quarantine.lost();',
    replace: "",
  },
  {
    name: "informer: an older event of an unknown object counts as repeated",
    file: HISTORY,
    find: 'if (stored === undefined) return "doubtful";',
    replace: 'if (stored === undefined) return "seen";',
  },
  {
    name: "informer: objects of the same version count as equal",
    file: "src/meta/object.ts",
    find: "(resourceVersionOf(a) === resourceVersionOf(b) && holding.isSameContent(a, b))",
    replace: "resourceVersionOf(a) === resourceVersionOf(b)",
  },
  {
    name: "reflector: missing bookmarks have no effect",
    file: RELISTS,
    find: "if (silentWatches + rhythm.bookmarks < 3) return",
    replace: "if (rhythm.bookmarks < 1_000_000) return",
  },
  {
    name: "reflector: an older list does not change the position",
    file: WRITER,
    find: "return { ...NO_POSITION, ...complete, lastEventTimeMs, lastBookmarkTimeMs };",
    replace:
      "if (isOlder(resourceVersion, position.resourceVersion)) complete.resourceVersion = position.resourceVersion;\n" +
      "  return { ...NO_POSITION, ...complete, lastEventTimeMs, lastBookmarkTimeMs };",
  },
  {
    name: "informer: handlers are notified before the store is written",
    file: APPLIER,
    find: "oldObject = store.update(key, held);",
    replace: "oldObject = store.get(key);\n      queueMicrotask(() => store.update(key, held));",
  },
  {
    name: "informer: a late handler misses the stored objects",
    file: "src/informer/processor.ts",
    find: "new ListNotifications({ isInInitialList: true }, present)",
    replace: "new ListNotifications({ isInInitialList: true }, present.slice(1))",
  },
  {
    name: "informer: a removed handler is still notified",
    file: "src/informer/processor.ts",
    find: "    if (this.#listeners.delete(listener)) {\n",
    replace: "    if (!this.#listeners.has(listener)) {\n",
  },
  {
    name: "informer: a wait for a version that starts after the stop never ends",
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
    name: "informer: a wait for a reached version does not end",
    file: "src/meta/version_waiters.ts",
    find: 'if (this.#covers(waiter.resourceVersion)) waiter.end("reached");',
    replace: 'if (this.#covers(waiter.resourceVersion) && this.#isStopped) waiter.end("reached");',
  },
  {
    name: "informer: a merged update loses the last state that the handler received",
    file: MERGED,
    find: "return { isKnown: true, seen: oldObject, isInInitialList: false, object, deleted: undefined };",
    replace: "return { isKnown: true, seen: object, isInInitialList: false, object, deleted: undefined };",
  },
  {
    name: "informer: a handler receives all objects of a list but one",
    file: "src/informer/mailbox.ts",
    find: "    if (first.length === 0) {\n      this.#list.shift();",
    replace: "    if (first.length <= 1) {\n      this.#inLists -= first.length;\n      this.#list.shift();",
  },
  {
    name: "informer: a change behind a list is notified twice",
    file: MERGED,
    find: "if (entry === undefined) return earlier;\n    this.#entries.delete(key);",
    replace: "if (entry === undefined) return earlier;",
  },
  {
    name: "informer: a delete behind a list is notified for an object unknown to the handler",
    file: MERGED,
    find: "return this.#isNothing(merged, entry) ? undefined : made(merged);",
    replace: "this.#isNothing(merged, entry);\n    merged.deleted = entry.deleted;\n    return made(merged);",
  },
  {
    name:
      "informer: hasSynced waits for an object of the first list that was deleted before its notification",
    file: MERGED,
    find: "if (entry.isInInitialList) this.onInitialMerged();\n    return true;",
    replace: "return true;",
  },
  {
    name: "informer: notifications behind a list are lost with another list",
    file: "src/informer/mailbox.ts",
    find: "if (this.#merged !== undefined) yield* merged.pushAll(this.#merged);",
    replace: "",
  },
  {
    name: "store: an index that is added while a list is stored misses objects",
    file: "src/store/long_writes.ts",
    find: "const isOutdated = () => content.indexChanges !== indexChanges;",
    replace: "const isOutdated = () => false;",
  },
  {
    name: "store: writes while an index is added in steps are lost",
    file: "src/store/long_writes.ts",
    find: "content.journals.add(written);",
    replace: "",
  },
  {
    name: "store: a replace that changes little keeps deleted objects",
    file: "src/store/long_writes.ts",
    find: "for (const key of removed) content.remove(key);",
    replace: "for (const key of removed.slice(1)) content.remove(key);",
  },
  {
    name: "store: a replace that changes little misses changed objects",
    file: "src/store/long_writes.ts",
    find: "if (entry === undefined || entry.object !== object) changed.push([key, object]);",
    replace: "if (entry === undefined) changed.push([key, object]);",
  },
  {
    name: "store: an object that moves stays in its old index value",
    file: "src/store/store_index.ts",
    find: "if (old instanceof IndexBucket) this.#leave(i, old, entry);",
    replace: "if (old instanceof IndexBucket) { /* stays */ }",
  },
  {
    name: "reflector: a due relist is dropped when the watch reopens",
    file: "src/reflector/open_watch.ts",
    find: "    this.relistAt(relistDueMs);\n",
    replace: "",
  },
  {
    name: "reflector: a relist that becomes due during a watch waits for another watch",
    file: REFLECTOR,
    find: "this.#followed?.relistAt(losses.relistDueMs)",
    replace: "undefined",
  },
  {
    name: "reflector: a list leaves a listener",
    file: "src/reflector/lists.ts",
    find: "    whole.stop();\n    link.unlink();",
    replace: "    whole.stop();",
  },
  {
    name: "reflector: a watch leaves a listener",
    file: "src/reflector/open_watch.ts",
    find: "    this.#link.unlink();\n",
    replace: "",
  },
  {
    name: "reflector: a watch without a response has no timeout",
    file: "src/reflector/open_watch.ts",
    find: "        ms: openTimeoutMs,",
    replace: "        ms: Infinity,",
  },
  {
    name: "reflector: a resync happens only once",
    file: "src/reflector/open_watch.ts",
    find: "(arm(), call())",
    replace: "call()",
  },
  {
    name: "informer: a change that an index function refuses once is lost permanently",
    file: APPLIER,
    find: 'type !== "Replaced" && type !== "Sync"',
    replace: 'type === "Deleted"',
  },
  {
    name: "informer: a resync notifies every handler",
    file: "src/informer/processor.ts",
    find: "if (!isUnchanged || listener.isSyncing) listener.add(notification);",
    replace: "listener.add(notification);",
  },
  {
    name: "informer: a synced handler is not notified of it",
    file: "src/informer/processor.ts",
    find: "if (isInitial(next)) this.#initial.popped(1);",
    replace: "",
  },
  {
    name: "informer: a wait for a version waits for one more",
    file: "src/meta/version_waiters.ts",
    find: "compareResourceVersions(version, wanted) >= 0;",
    replace: "compareResourceVersions(version, wanted) > 0;",
  },
  {
    name: "informer: background tasks still listen after the stop",
    file: "src/informer/queue_drain.ts",
    find: ".finally(() => link.unlink())",
    replace: "",
  },
  {
    name: "fan-out: a slow reader that has room again is not written to",
    file: "src/hono/send/watch_stream.ts",
    find: "    this.#isBlocked = false;\n    this.wake();",
    replace: "    this.wake();",
  },
  {
    name: "fan-out: what waited for a slow reader comes in another order",
    file: "src/hono/send/watch_stream.ts",
    find: "pieces.push(piece);",
    replace: "pieces.unshift(piece);",
  },
  {
    name: "fan-out: an object that leaves a selection is not deleted",
    file: "src/hono/send/watch_groups.ts",
    find: "    if (!was) return undefined;\n",
    replace: '    if (!was || entry.type !== "DELETED") return undefined;\n',
  },
  {
    name: "read API: every selection that was ever watched is kept",
    file: "src/hono/send/watch_groups.ts",
    within: "leave",
    find: "if (name !== undefined) this.#groups.delete(name);",
    replace: "",
  },
  {
    name: "read API: the bytes of ended watches are counted for ever",
    file: "src/hono/request/readers.ts",
    within: "#release",
    find: "    this.give(Infinity);\n",
    replace: "",
  },
  {
    name: "fresh reads: a read that waits leaves an observer",
    file: "src/hono/content/fresh_reads.ts",
    within: "#changeWithin",
    find: "unobserve();",
    replace: "",
  },
  {
    name: "read API: a list that is small is counted for ever",
    file: "src/hono/send/kept_bodies.ts",
    find: "close();\n        return concatenated(",
    replace: "return concatenated(",
  },
  {
    name: "fresh reads: a read joins a question that was sent before it",
    file: FRESH,
    find: "    return this.#next ??= this.#asked.catch(() => {}).then(() => this.#ask());",
    replace: "    return this.#asked;",
  },
  {
    name: "fresh reads: a proof is accepted before the changes that the second watch saw have arrived",
    file: FRESH,
    find: "this.#informer.proven?.({ after, through,",
    replace: "this.#informer.proven?.({ after: from, through,",
  },
  {
    name: "fresh reads: the reflector believes a proof, whatever has arrived",
    file: REFLECTOR,
    find: 'position.resourceVersion === "" || !hasReceived(position, after)',
    replace: 'position.resourceVersion === ""',
  },
  {
    name: "fresh reads: a list of versions proves its version although the content differs",
    file: FRESH,
    find: "if (isEqualTo(state, held)) {",
    replace:
      "if (isEqualTo(state, held) || state.versions.size === this.#informer.indexer.listKeys().length) {",
  },
  {
    name: "fresh reads: a version lower than the cache's is taken for fresh",
    file: FRESH,
    find: 'if (compareResourceVersions(version, position) < 0) return "behind";',
    replace: "",
  },
  {
    name: "fresh reads: the present version is not waited for",
    file: FRESH,
    find: 'return await this.reaches(version, options) ? "fresh" : "behind";',
    replace: 'await this.reaches(version, { ...options, timeoutMs: 1 });\n    return "fresh";',
  },
  {
    name: "fresh reads: no proof is looked for",
    file: FRESH,
    find: "      this.#prove();\n      return await reached;",
    replace: "      return await reached;",
  },
  {
    name: "fresh reads: a second watch proves nothing",
    file: FRESH,
    find: "    if (changes === undefined) return;\n",
    replace: "    if (changes !== undefined) return;\n",
  },
  {
    name: "fresh reads: a Retry-After is ignored",
    file: FRESH,
    find: "statusErrorOf(error)?.retryAfterMs ?? 0",
    replace: "0",
  },
  {
    name: "fresh reads: a stale answer that nothing is found has no warning",
    file: "src/hono/send/responses.ts",
    find: "const response = answer instanceof Response ? answer : await refusalResponse(c, answer);",
    replace: "if (!(answer instanceof Response)) return answer as never;\n  const response = answer;",
  },
  {
    name: "snapshot: what changes while a save runs is not saved, and the version moves past it",
    file: KEEPER,
    find: "if (!this.#replaces) this.#changed.add(event.key);",
    replace: "if (!this.#replaces && this.#saving === undefined) this.#changed.add(event.key);",
  },
  {
    name: "snapshot: the version is saved ahead of the content",
    file: KEEPER,
    find: "      resourceVersion,\n      watchedVersion: this.#watchedVersion",
    replace:
      "      resourceVersion: String(Number(resourceVersion) + 1),\n      watchedVersion: this.#watchedVersion",
  },
  {
    name: "snapshot: deletes are not saved",
    file: KEEPER,
    find: "if (object === undefined) deletes.push(key);\n      else puts",
    replace: "if (object !== undefined) puts",
  },
  {
    name: "snapshot: what a list changes is not saved",
    file: KEEPER,
    find: "if (!this.#replaces) { for (const { key } of event.changes) this.#changed.add(key); }",
    replace: "",
  },
  {
    name: "snapshot: a save that failed is taken for done",
    file: KEEPER,
    find: "    this.#replaces = true;\n    this.#isDue = true;",
    replace: "    this.#isDue = true;",
  },
  {
    name: "snapshot: what is left at the stop is not saved",
    file: KEEPER,
    find: "if (this.#isDue && !this.#isGivenUp) this.#save();\n    await",
    replace: "await",
  },
  {
    name: "snapshot: a storage that saves in the turn saves later",
    file: KEEPER,
    find: "if (this.#storage.savesInTurn && event.type",
    replace: "if (event.type === undefined && event.type",
  },
  {
    name: "snapshot: readers see a change before it is saved",
    file: "src/informer/shared_informer.ts",
    find: "if (options.snapshot) this.#observers.add((event) => this.#pipeline?.snapshot?.observe(event));",
    replace:
      "if (options.snapshot) queueMicrotask(() => this.#observers.add((event) => this.#pipeline?.snapshot?.observe(event)));",
  },
  {
    name: "snapshot: its content counts as synced before the server answers",
    file: RUN,
    find: "this.#context.waits.restored.open();",
    replace: "this.#context.waits.restored.open();\n    this.#context.onConfirmed();",
  },
  {
    name: "snapshot: the server never confirms it",
    file: RUN,
    find: "    this.#context.onConfirmed();",
    replace: "",
  },
  {
    name: "snapshot: it is saved while its load still runs",
    file: RUN,
    find: "this.#keeper.loading(ended)",
    replace: "void ended",
  },
  {
    name: "snapshot: no proof is requested where the watch was open before the content was stored",
    file: RUN,
    find: "this.#followed(); // the watch may",
    replace: "// the watch may",
  },
  {
    name: "snapshot: it has synced before the changes that the watch for a proof saw",
    file: RUN,
    find: "const after = changes.lastChange || from;",
    replace: "const after = from;",
  },
  {
    name: "reflector: a watch that is opened counts as news of the server",
    file: STATE,
    find: "position: watchingFrom(state.position, isFollowing),",
    replace: "position: watchingFrom({ ...state.position, contact: now }, isFollowing),",
  },
  {
    name: "snapshot: a request for the server's version that is refused is repeated for ever",
    file: RESUMPTION,
    find: "if ((isBroken || isRefused) && failedProbes < MOST_PROBES) {",
    replace: "if (isBroken || isRefused) {",
  },
  {
    name: "snapshot: a program that has one lists",
    file: RESUMPTION,
    find: "return needsList\n    ? { ...next",
    replace: "return needsList || resourceVersion\n    ? { ...next",
  },
];
