import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import {
  RelistDue,
  StalledStreamError,
  type StreamPause,
  SuspendedError,
  VeryShortWatchError,
} from "../../src/reflector/failures.ts";
import { listAttempt } from "../../src/reflector/lists.ts";
import {
  initialState,
  opened,
  type Outcome,
  proven,
  type ReflectorState,
  rewatched,
  waiting,
} from "../../src/reflector/state.ts";
import { RESUMING } from "../../src/reflector/resumption.ts";
import { NO_POSITION, noteContact, type Position, watchingFrom } from "../../src/reflector/store_writer.ts";
import { transition } from "../../src/reflector/transition.ts";
import { newDecodingStatus } from "../../src/watch/decode_watch.ts";

const expired = new StatusError(newStatus(410, "Expired", "too old resource version: 1 (310)"));
const tooOld = new StatusError(newStatus(410, "Gone", "too old"));
const tooLarge = new StatusError(
  newStatus(504, "Timeout", "Timeout: Too large resource version: 20, current: 10", {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  }),
);
const tooMany = new StatusError(newStatus(429, "TooManyRequests", "slow down"));
const busy = new StatusError(newStatus(503, "ServiceUnavailable", "busy"), { retryAfterMs: 5_000 });
const forbidden = new StatusError(newStatus(403, "Forbidden", "pods is forbidden"));
const invalid = new StatusError(newStatus(422, "Invalid", "sendInitialEvents is forbidden"));
const internal = new StatusError(newStatus(500, "InternalError", "etcdserver: leader changed"));
const notReady = new StatusError(newStatus(503, "ServiceUnavailable", "HTTP paths are not installed"));
const internalLater = new StatusError(newStatus(500, "InternalError", "try again"), { retryAfterMs: 1_000 });
const refused = new NetworkError("ConnectionRefused", "connection refused");
const unreachable = new NetworkError("Unreachable", "the network failed");
const broken = new Error("it broke");
const undecodable = new StatusError(newDecodingStatus("no JSON"));

const NOW_MS = 100_000;
const NOW = { wallMs: 5_000_000, monotonicMs: NOW_MS };
const HOUR_MS = 3_600_000;
const LONG_MS = 10_000;
const SHORT_MS = 999;
const closed = { cause: "unfinished", message: "it was closed before its end bookmark" } as const;
const settings: ReflectorState["settings"] = {
  name: "pods",
  useWatchList: true,
  neverGoesBack: false,
  bookmarkSilenceMs: 90_000,
  maxInternalErrorRetryMs: 0,
};
const fresh = initialState(settings);
const trial = fresh.trial;
const at10: ReflectorState = { ...fresh, position: { ...fresh.position, resourceVersion: "10" } };
const unavailable: ReflectorState = { ...at10, isResourceVersionUnavailable: true };
const attempt = { resourceVersion: "10", limit: 0 };

/** After so many tries of an outage. */
function failing(tries: number): ReflectorState {
  return { ...at10, failures: { ...at10.failures, attempt: tries } };
}

function restored(needsList: boolean, useWatchList = true): ReflectorState {
  const content = { resourceVersion: "10", savedAtMs: 0, needsList };
  return RESUMING.restored(initialState({ ...settings, useWatchList, resuming: RESUMING }), content, NOW);
}

const resumed = restored(false);

/** What the next request depends on. */
function decisive(state: ReflectorState) {
  const { isResourceVersionUnavailable, paginatedResult, exactResourceVersion, resumption } = state;
  const { position: { resourceVersion }, trial: { pause: _, ...trial } } = state;
  return {
    resourceVersion,
    isResourceVersionUnavailable,
    paginatedResult,
    exactResourceVersion,
    resumption,
    trial,
  };
}

interface Row {
  readonly name: string;
  readonly state: ReflectorState;
  readonly outcome: Outcome;
  readonly step: object;
  /** What of the state is different afterwards. */
  readonly changes?: Partial<ReturnType<typeof decisive>>;
  readonly report?: Error;
  readonly pause?: Pick<StreamPause, "cause" | "message"> & {
    readonly ms: number;
    readonly isRepeated: boolean;
  };
}

const rows: readonly Row[] = [
  // start
  {
    name: "a cycle begins with a stream where streaming is on",
    state: fresh,
    outcome: { of: "start" },
    step: { do: "stream" },
  },
  {
    name: "a cycle begins with a list where streaming is off",
    state: initialState({ ...settings, useWatchList: false }),
    outcome: { of: "start" },
    step: { do: "list" },
  },

  // stream
  {
    name: "the end bookmark is followed by a watch at its resourceVersion",
    state: unavailable,
    outcome: { of: "stream", resourceVersion: "33" },
    step: { do: "watch" },
    changes: { resourceVersion: "33", isResourceVersionUnavailable: false },
  },
  {
    name: "a stream that finishes clears streams of everything",
    state: {
      ...at10,
      trial: { unfinished: 3, unfinishedMs: 9, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS - 1 },
    },
    outcome: { of: "stream", resourceVersion: "33" },
    step: { do: "watch" },
    changes: { resourceVersion: "33", trial },
  },
  {
    name: "a stream that stalls is followed by a list, and lists take its place for an hour",
    state: at10,
    outcome: { of: "stream", error: new StalledStreamError("silence"), lastedMs: 10 },
    step: { do: "list" },
    changes: { trial: { ...trial, unfinished: 3, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS + HOUR_MS } },
    pause: { cause: "stalled", message: "silence", ms: HOUR_MS, isRepeated: false },
  },
  {
    name: "a stream that stalls again after that is not asked for in twice the time",
    state: { ...at10, trial: { ...trial, unfinished: 3, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS - 1 } },
    outcome: { of: "stream", error: new StalledStreamError("silence"), lastedMs: 10 },
    step: { do: "list" },
    changes: {
      trial: { ...trial, unfinished: 3, pauseMs: 2 * HOUR_MS, pausedUntilMs: NOW_MS + 2 * HOUR_MS },
    },
    pause: { cause: "stalled", message: "silence", ms: 2 * HOUR_MS, isRepeated: true },
  },
  {
    name: "lists do not take the place of streams for more than a day",
    state: { ...at10, trial: { ...trial, unfinished: 3, pauseMs: 20 * HOUR_MS, pausedUntilMs: 0 } },
    outcome: { of: "stream", error: new StalledStreamError("silence"), lastedMs: 10 },
    step: { do: "list" },
    changes: {
      trial: { ...trial, unfinished: 3, pauseMs: 24 * HOUR_MS, pausedUntilMs: NOW_MS + 24 * HOUR_MS },
    },
    pause: { cause: "stalled", message: "silence", ms: 24 * HOUR_MS, isRepeated: true },
  },
  {
    name: "a stream that is closed before its end bookmark is requested again after a delay",
    state: at10,
    outcome: { of: "stream", cause: undefined, lastedMs: 5_000 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, unfinished: 1, unfinishedMs: 5_000, failingSinceMs: NOW_MS } },
  },
  {
    name: "the third stream in a row that is closed is followed by a list, which decides",
    state: { ...at10, trial: { ...trial, unfinished: 2, unfinishedMs: 10_000 } },
    outcome: { of: "stream", cause: undefined, lastedMs: 5_000 },
    step: { do: "list" },
    changes: {
      trial: { ...trial, unfinished: 3, unfinishedMs: 15_000, failingSinceMs: NOW_MS, suspicion: closed },
    },
  },
  {
    name: "a stream that is not answered in half a minute is followed by a list, which decides",
    state: at10,
    outcome: { of: "stream", error: unreachable, lastedMs: 30_000 },
    step: { do: "list" },
    changes: {
      trial: {
        ...trial,
        unfinished: 1,
        unfinishedMs: 30_000,
        failingSinceMs: NOW_MS,
        suspicion: { cause: "unfinished", message: "the network failed" },
      },
    },
  },
  {
    name: "streams that were refused for a minute are followed by a list, which decides",
    state: { ...at10, trial: { ...trial, failingSinceMs: NOW_MS - 60_000 } },
    outcome: { of: "stream", error: refused, lastedMs: 10 },
    step: { do: "list" },
    changes: {
      trial: {
        ...trial,
        failingSinceMs: NOW_MS - 60_000,
        suspicion: { cause: "refused", message: "connection refused" },
      },
    },
  },
  {
    name: "that list comes no sooner than the server asked for",
    state: { ...at10, trial: { ...trial, failingSinceMs: NOW_MS - 60_000 } },
    outcome: { of: "stream", error: busy, lastedMs: 10 },
    step: { do: "backOff", then: "list" },
    changes: {
      trial: {
        ...trial,
        failingSinceMs: NOW_MS - 60_000,
        suspicion: { cause: "refused", message: "busy" },
      },
    },
  },
  {
    name: "nor at once where the server asks for patience, and names no time",
    state: { ...at10, trial: { ...trial, failingSinceMs: NOW_MS - 60_000 } },
    outcome: { of: "stream", error: tooMany, lastedMs: 10 },
    step: { do: "backOff", then: "list" },
    changes: {
      trial: {
        ...trial,
        failingSinceMs: NOW_MS - 60_000,
        suspicion: { cause: "refused", message: "slow down" },
      },
    },
  },
  {
    name: "where it fails as well, streams have another minute",
    state: {
      ...at10,
      trial: { ...trial, failingSinceMs: 0, suspicion: { cause: "refused", message: "connection refused" } },
    },
    outcome: { of: "list", error: refused, attempt, again: false },
    step: { do: "backOff", then: "start" },
    changes: { trial },
    report: refused,
  },
  {
    name: "streams are at fault where a list succeeds after them",
    state: { ...at10, trial: { ...trial, unfinished: 3, unfinishedMs: 9, suspicion: closed } },
    outcome: { of: "list", resourceVersion: "42", paginated: false, attempt },
    step: { do: "watch" },
    changes: {
      resourceVersion: "42",
      trial: { unfinished: 3, unfinishedMs: 9, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS + HOUR_MS },
    },
    pause: { ...closed, ms: HOUR_MS, isRepeated: false },
  },
  {
    name: "streams are not at fault where a list fails as well, but the next one has a single chance",
    state: { ...at10, trial: { ...trial, unfinished: 3, unfinishedMs: 9, suspicion: closed } },
    outcome: { of: "list", error: broken, attempt, again: false },
    step: { do: "backOff", then: "start" },
    changes: { trial: { ...trial, unfinished: 3, unfinishedMs: 9 } },
    report: broken,
  },
  {
    name: "a list that was not expected says nothing about streams",
    state: { ...at10, trial: { ...trial, unfinished: 3, unfinishedMs: 9 } },
    outcome: { of: "list", resourceVersion: "42", paginated: false, attempt },
    step: { do: "watch" },
    changes: { resourceVersion: "42" },
  },
  {
    name: "a cycle begins with a list while streams are at fault",
    state: { ...at10, trial: { ...trial, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS + 1 } },
    outcome: { of: "start" },
    step: { do: "list" },
  },
  {
    name: "a cycle begins with a stream when that time is over",
    state: { ...at10, trial: { ...trial, pauseMs: HOUR_MS, pausedUntilMs: NOW_MS } },
    outcome: { of: "start" },
    step: { do: "stream" },
  },
  {
    name: "an answer that is no stream is followed by a list, and held against streams",
    state: at10,
    outcome: { of: "stream", error: undecodable, lastedMs: 10 },
    step: { do: "list" },
    changes: { trial: { ...trial, unfinished: 1, unfinishedMs: 10, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream that is closed at once without anything is followed by a list, and held against streams",
    state: at10,
    outcome: { of: "stream", error: new VeryShortWatchError("pods"), lastedMs: 10 },
    step: { do: "list" },
    changes: { trial: { ...trial, unfinished: 1, unfinishedMs: 10, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream is requested again after a delay when the network fails, which counts against streams",
    state: at10,
    outcome: { of: "stream", error: unreachable, lastedMs: 10 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, unfinished: 1, unfinishedMs: 10, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream is requested again after a delay when the server names one, whatever its error",
    state: at10,
    outcome: { of: "stream", error: busy, lastedMs: 90_000 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream is requested again after a delay when the server says 429",
    state: at10,
    outcome: { of: "stream", error: tooMany, lastedMs: 90_000 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream is requested again after a delay when the connection is refused",
    state: at10,
    outcome: { of: "stream", error: refused, lastedMs: 90_000 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream whose resourceVersion expired is requested at once without one",
    state: at10,
    outcome: { of: "stream", error: expired, lastedMs: 90_000 },
    step: { do: "stream" },
    changes: { isResourceVersionUnavailable: true, trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream whose resourceVersion the server has not reached is requested at once without one",
    state: at10,
    outcome: { of: "stream", error: tooLarge, lastedMs: 90_000 },
    step: { do: "stream" },
    changes: { isResourceVersionUnavailable: true, trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a stream that expires without a resourceVersion is given time",
    state: unavailable,
    outcome: { of: "stream", error: tooOld, lastedMs: 90_000 },
    step: { do: "backOff", then: "stream" },
    changes: { trial: { ...trial, failingSinceMs: NOW_MS } },
  },
  {
    name: "a server that knows no streams receives a list request, and nothing is reported",
    state: at10,
    outcome: { of: "stream", error: invalid, lastedMs: 90_000 },
    step: { do: "list" },
  },
  {
    name: "any other error of a stream leads to a list, and the next cycle streams again",
    state: at10,
    outcome: { of: "stream", error: broken, lastedMs: 90_000 },
    step: { do: "list" },
  },

  // list
  {
    name: "a list is followed by a watch at its resourceVersion",
    state: unavailable,
    outcome: { of: "list", resourceVersion: "42", paginated: false, attempt },
    step: { do: "watch" },
    changes: { resourceVersion: "42", isResourceVersionUnavailable: false },
  },
  {
    name: "a list from the cache that came in pages shows that there is no cache",
    state: fresh,
    outcome: {
      of: "list",
      resourceVersion: "42",
      paginated: true,
      attempt: { resourceVersion: "0", limit: 500 },
    },
    step: { do: "watch" },
    changes: { resourceVersion: "42", paginatedResult: true },
  },
  {
    name: "a list of the most recent data that came in pages shows nothing",
    state: unavailable,
    outcome: {
      of: "list",
      resourceVersion: "42",
      paginated: true,
      attempt: { resourceVersion: "", limit: 500 },
    },
    step: { do: "watch" },
    changes: { resourceVersion: "42", isResourceVersionUnavailable: false },
  },
  {
    name: "a list whose resourceVersion expired is requested at once without one",
    state: at10,
    outcome: { of: "list", error: expired, attempt, again: false },
    step: { do: "list", again: attempt },
    changes: { isResourceVersionUnavailable: true },
  },
  {
    name: "a list whose resourceVersion the server has not reached is requested at once without one",
    state: at10,
    outcome: { of: "list", error: tooLarge, attempt, again: false },
    step: { do: "list", again: attempt },
    changes: { isResourceVersionUnavailable: true },
  },
  {
    name: "the cause of an error counts",
    state: at10,
    outcome: {
      of: "list",
      error: new Error("failed to list pods", { cause: tooOld }),
      attempt,
      again: false,
    },
    step: { do: "list", again: attempt },
    changes: { isResourceVersionUnavailable: true },
  },
  {
    name: "a list that expires the second time ends the cycle, with a report",
    state: unavailable,
    outcome: { of: "list", error: expired, attempt, again: true },
    step: { do: "backOff", then: "start" },
    report: expired,
  },
  {
    name: "any other error of a list ends the cycle, with a report",
    state: at10,
    outcome: { of: "list", error: forbidden, attempt, again: false },
    step: { do: "backOff", then: "start" },
    report: forbidden,
  },
  {
    name: "a list that is refused with 429 ends the cycle, with a report",
    state: at10,
    outcome: { of: "list", error: tooMany, attempt, again: false },
    step: { do: "backOff", then: "start" },
    report: tooMany,
  },
  {
    name: "a second list that fails otherwise leaves the resourceVersion unavailable",
    state: unavailable,
    outcome: { of: "list", error: internal, attempt, again: true },
    step: { do: "backOff", then: "start" },
    report: internal,
  },

  // watch, refused
  {
    name: "a watch is requested again after a delay when the connection is refused, without a list",
    state: at10,
    outcome: { of: "watch", error: refused },
    step: { do: "backOff", then: "watch" },
  },
  {
    name: "a watch is requested again after a delay when the network fails in a way that has no name",
    state: at10,
    outcome: { of: "watch", error: unreachable },
    step: { do: "backOff", then: "watch" },
  },
  {
    name: "a watch is requested again after a delay when the server says 429, without a list",
    state: at10,
    outcome: { of: "watch", error: tooMany },
    step: { do: "backOff", then: "watch" },
  },
  ...[busy, internalLater].map((error) => ({
    name:
      `a watch that is refused with a Retry-After is requested again then, without a list: ${error.message}`,
    state: failing(9),
    outcome: { of: "watch", error } as const,
    step: { do: "backOff", then: "watch" } as const,
  })),
  {
    name: "a watch that is refused with a Retry-After after ten tries ends the cycle, with a report",
    state: failing(10),
    outcome: { of: "watch", error: busy },
    step: { do: "backOff", then: "start" },
    report: busy,
  },
  {
    name: "a watch that is refused with 503 and no Retry-After ends the cycle, with a report",
    state: at10,
    outcome: { of: "watch", error: notReady },
    step: { do: "backOff", then: "start" },
    report: notReady,
  },
  {
    name: "a watch from a version that the server has not reached ends the cycle, also with a Retry-After",
    state: at10,
    outcome: { of: "watch", error: tooLarge },
    step: { do: "backOff", then: "start" },
    report: tooLarge,
  },
  {
    name: "a watch that is refused with 410 ends the cycle, with a report",
    state: at10,
    outcome: { of: "watch", error: expired },
    step: { do: "backOff", then: "start" },
    report: expired,
  },
  {
    name: "a watch that is refused for any other reason ends the cycle, with a report",
    state: at10,
    outcome: { of: "watch", error: forbidden },
    step: { do: "backOff", then: "start" },
    report: forbidden,
  },
  {
    name: "a 500 that refuses a watch is no ERROR event: it ends the cycle, with a report",
    state: at10,
    outcome: { of: "watch", error: internal },
    step: { do: "backOff", then: "start" },
    report: internal,
  },

  // watch, ended
  {
    name: "a watch that ended cleanly is followed at once by the next",
    state: at10,
    outcome: { of: "watch", ended: undefined, lastedMs: LONG_MS },
    step: { do: "watch" },
  },
  {
    name: "a watch that had an event and ended within a second is followed by the next after a delay",
    state: { ...at10, position: { ...at10.position, events: 1 } },
    outcome: { of: "watch", ended: undefined, lastedMs: SHORT_MS },
    step: { do: "backOff", then: "watch" },
  },
  {
    name: "a watch that lasted a second is followed by the next at once, as a longer one",
    state: at10,
    outcome: { of: "watch", ended: undefined, lastedMs: SHORT_MS + 1 },
    step: { do: "watch" },
  },
  {
    name: "a watch on which a change was lost is followed at once by a list of everything",
    state: { ...at10, settings: { ...settings, useWatchList: false } },
    outcome: { of: "watch", ended: new RelistDue(), lastedMs: LONG_MS },
    step: { do: "list" },
  },
  {
    name: "a watch that ends with 429 is followed by the next after a delay, without a list",
    state: at10,
    outcome: { of: "watch", ended: tooMany, lastedMs: LONG_MS },
    step: { do: "backOff", then: "watch" },
  },
  {
    name: "a watch that ends with 410 ends the cycle, and nothing is reported",
    state: at10,
    outcome: { of: "watch", ended: expired, lastedMs: LONG_MS },
    step: { do: "backOff", then: "start" },
  },
  {
    name: "a watch that ends with 500 ends the cycle",
    state: at10,
    outcome: { of: "watch", ended: internal, lastedMs: LONG_MS },
    step: { do: "backOff", then: "start" },
  },
  {
    name: "a watch that ends with 500 is followed at once by the next while internal errors are retried",
    state: { ...at10, settings: { ...settings, maxInternalErrorRetryMs: 1 } },
    outcome: { of: "watch", ended: internal, lastedMs: LONG_MS },
    step: { do: "watch" },
  },
  {
    name: "a watch that ends with any other error ends the cycle, and nothing is reported",
    state: at10,
    outcome: { of: "watch", ended: broken, lastedMs: LONG_MS },
    step: { do: "backOff", then: "start" },
  },
];

describe("noteContact", () => {
  it("leaves a contact that is younger than the news of a cache", () => {
    const position: Position = { ...NO_POSITION };
    const contactMs = () => position.contact?.monotonicMs;
    noteContact(position, { wallMs: 51_000, monotonicMs: 1_000 }, 0);
    noteContact(position, { wallMs: 51_200, monotonicMs: 1_200 }, 500);
    assert.equal(contactMs(), 1_000);
    noteContact(position, { wallMs: 51_800, monotonicMs: 1_800 }, 500);
    assert.equal(contactMs(), 1_300);
  });

  it("is none where a snapshot's content is not confirmed", () => {
    const position: Position = { ...NO_POSITION, isConfirmed: false };
    noteContact(position, { wallMs: 51_000, monotonicMs: 1_000 }, 0);
    assert.equal(position.contact, undefined);
  });
});

describe("watchingFrom", () => {
  it("begins to count, and to follow the versions of added objects unless it begins at no version", () => {
    const position: Position = { ...NO_POSITION, events: 3, bookmarks: 2 };
    for (const [resourceVersion, follows] of [["", false], ["0", false], ["10", true]] as const) {
      const next = watchingFrom({ ...position, resourceVersion }, false);
      assert.deepEqual([next.events, next.bookmarks, next.follows], [0, 0, follows]);
      assert.equal(watchingFrom({ ...position, resourceVersion }, true).follows, true);
    }
  });
});

describe("opened", () => {
  it("counts health from the first of the watches that follow each other", () => {
    const open = (state: ReflectorState, monotonicMs: number) =>
      opened(state, false, { ...NOW, monotonicMs }).state;
    const first = open(at10, NOW_MS);
    assert.equal(open(first, NOW_MS + 60_000).failures.healthySinceMs, NOW_MS);
  });

  it("forgets what the server wanted before: the next delay is not for that", () => {
    const { failures } = opened({ ...at10, failures: { ...at10.failures, failure: busy } }, false, NOW).state;
    assert.equal(failures.failure, undefined);
  });
});

describe("rewatched", () => {
  it("forgets how the watch before has ended", () => {
    const { failures } = rewatched({ ...at10, failures: { ...at10.failures, lastEnd: expired } });
    assert.equal(failures.lastEnd, undefined);
  });
});

describe("proven", () => {
  it("is a contact, as old as the proof", () => {
    const { position } = proven(at10, { through: "20", ageMs: 300, byState: false }, NOW);
    assert.deepEqual([position.resourceVersion, position.contact?.monotonicMs], ["20", NOW_MS - 300]);
  });
});

describe("waiting", () => {
  it("reports an outage once, whether the time of the next try is known or not", () => {
    for (const delayMs of [undefined, 800]) {
      const tried = transition(at10, { of: "list", error: refused, attempt, again: false }, NOW).state;
      const first = waiting(tried, delayMs, NOW);
      assert.equal(first.effects.length, 1);
      assert.deepEqual(waiting(first.state, delayMs, NOW).effects, []);
    }
  });
});

describe("transition", () => {
  for (const { name, state, outcome, step, changes = {}, report, pause } of rows) {
    it(name, () => {
      const before = structuredClone(state);
      const result = transition(state, outcome, NOW);
      assert.deepEqual(result.step, report === undefined ? step : { ...step, error: report });
      assert.deepEqual(decisive(result.state), { ...decisive(state), ...changes });
      assert.deepEqual(
        result.state.trial.pause,
        pause &&
          {
            cause: pause.cause,
            message: pause.message,
            sinceTimeMs: 5_000_000,
            untilTimeMs: 5_000_000 + pause.ms,
          },
      );
      const lines = result.effects.filter((effect) =>
        effect.do === "log" && effect.text.includes("listing instead")
      );
      const levels = lines.map((line) => "level" in line && line.level);
      assert.deepEqual(levels, pause === undefined ? [] : [pause.isRepeated ? "debug" : "warn"]);
      assert.deepEqual(state, before, "the state it was given is as it was");
    });
  }

  it("counts no tries any more once a list was stored", () => {
    const before = { ...at10, failures: { ...at10.failures, attempt: 5, failure: broken } };
    const list = { of: "list", resourceVersion: "50", paginated: false, attempt } as const;
    const { failures } = transition(before, list, NOW).state;
    assert.deepEqual([failures.attempt, failures.failure], [0, undefined]);
  });

  it("counts the watches since the last list", () => {
    const watched = rewatched({ ...at10, watchesSinceList: 1 });
    const list = { of: "list", resourceVersion: "50", paginated: false, attempt } as const;
    const listed = transition(watched, list, NOW).state;
    assert.deepEqual([watched.watchesSinceList, listed.watchesSinceList], [2, 0]);
  });

  it("keeps paging for ever once it knows that there is no cache", () => {
    const { state } = transition({ ...at10, paginatedResult: true }, {
      of: "list",
      resourceVersion: "50",
      paginated: false,
      attempt,
    }, NOW);
    assert.equal(state.paginatedResult, true);
  });

  it("takes a watch of two minutes for well, whatever ended it: what is wrong with the next one is news", () => {
    const forgets = (ended: unknown, lastedMs: number) =>
      transition(at10, { of: "watch", ended, lastedMs }, NOW).effects.some((effect) =>
        effect.do === "forgetWarnings"
      );
    assert.deepEqual([119_999, 120_000].map((ms) => forgets(undecodable, ms)), [false, true]);
    assert.ok(forgets(undefined, LONG_MS));
  });

  it("takes the bookmarks of a watch that was suspended for what they are, and its silence for nothing", () => {
    const suspended: Outcome = { of: "watch", ended: new SuspendedError(600_000), lastedMs: 600_000 };
    assert.deepEqual(transition(at10, suspended, NOW).state.rhythm, at10.rhythm);
    const position = { ...at10.position, bookmarks: 3 };
    assert.equal(transition({ ...at10, position }, suspended, NOW).state.rhythm.bookmarks, 3);
  });

  it("measures each watch that was open, once, whatever ended it", () => {
    const silent = { ...at10, rhythm: { ...at10.rhythm, bookmarks: 5 } };
    for (
      const ended of [undefined, new SuspendedError(60_000), new RelistDue("lost"), undecodable, refused]
    ) {
      const { effects } = transition(silent, { of: "watch", ended, lastedMs: 200_000 }, NOW);
      assert.equal(effects.filter((effect) => effect.do === "measureWatch").length, 1, String(ended));
    }
  });

  it("counts the bookmarks of a watch that ended for a relist", () => {
    const before = { ...at10, position: { ...at10.position, bookmarks: 3 } };
    const { state } = transition(
      before,
      { of: "watch", ended: new RelistDue("lost"), lastedMs: LONG_MS },
      NOW,
    );
    assert.equal(state.rhythm.bookmarks, 3);
  });

  it("goes by the error of a silent watch that failed, and not by its silence", () => {
    const silent = { ...at10, rhythm: { ...at10.rhythm, bookmarks: 5 } };
    const outcome: Outcome = { of: "watch", ended: undecodable, lastedMs: 200_000 };
    const { step, effects } = transition(silent, outcome, NOW);
    assert.deepEqual(step, { do: "backOff", then: "start" });
    assert.ok(!effects.some((effect) => "text" in effect && effect.text.includes("bookmarks do not come")));
  });

  it("expects bookmarks again after a list, if the server was away, and resumes no snapshot any more", () => {
    const list = { of: "list", resourceVersion: "50", paginated: false, attempt } as const;
    const isExpected = (tries: number) => {
      const silent = { ...failing(tries), rhythm: { ...at10.rhythm, isExpected: false } };
      return transition(silent, list, NOW).state.rhythm.isExpected;
    };
    assert.deepEqual([isExpected(0), isExpected(1)], [false, true]);
    assert.equal(transition(resumed, list, NOW).state.resumption, undefined);
  });

  it("lists without a version but once: a second list would be the same where the first names none", () => {
    const bad = new StatusError(newStatus(400, "BadRequest", "no such version"));
    const next = (resourceVersion: string) => {
      const outcome = {
        of: "list",
        error: bad,
        attempt: { resourceVersion, limit: 500 },
        again: false,
      } as const;
      return transition(at10, outcome, NOW).step.do;
    };
    assert.deepEqual(["10", "0", ""].map(next), ["list", "backOff", "backOff"]);
  });

  it("says once that lists take the place of streams, not at each list", () => {
    const pause = { cause: "stalled", message: "no end", sinceTimeMs: 0, untilTimeMs: HOUR_MS } as const;
    const before = { ...at10, trial: { ...trial, pause, pauseMs: HOUR_MS, pausedUntilMs: HOUR_MS } };
    const list = { of: "list", resourceVersion: "50", paginated: false, attempt } as const;
    assert.deepEqual(transition(before, list, NOW).effects, []);
  });

  it("reports what ends a cycle and what is repeated, and no watch that was open", () => {
    const reported = (outcome: Outcome) =>
      transition(at10, outcome, NOW).effects.flatMap((effect) =>
        effect.do === "report" ? [effect.error] : []
      );
    assert.deepEqual(reported({ of: "list", error: forbidden, attempt, again: false }), [forbidden]);
    assert.deepEqual(reported({ of: "watch", error: unreachable }), [unreachable]);
    assert.deepEqual(reported({ of: "watch", error: tooMany }), []);
    assert.deepEqual(reported({ of: "stream", error: busy, lastedMs: 10 }), [busy]);
    // A list decides now whether streams are at fault.
    assert.deepEqual(reported({ of: "stream", error: unreachable, lastedMs: 60_000 }), [unreachable]);
    assert.deepEqual(reported({ of: "stream", error: broken, lastedMs: 10 }), []);
    assert.deepEqual(reported({ of: "watch", ended: broken, lastedMs: LONG_MS }), []);
  });
});

describe("transition(): a store with the content of a snapshot", () => {
  const watchEnds = (ended: unknown): Outcome => ({ of: "watch", ended, lastedMs: LONG_MS });
  const step = (outcome: Outcome, state: ReflectorState = resumed) => transition(state, outcome, NOW).step;

  it("begins with the question for the server's version, and not with a list", () => {
    assert.deepEqual(step({ of: "start" }), { do: "probe" });
  });

  it("begins with a list that goes beyond the version where a watch from it would miss changes", () => {
    const state = restored(true, false);
    assert.deepEqual(step({ of: "start" }, state), { do: "list" });
    assert.deepEqual(listAttempt(state, 5), {
      resourceVersion: "10",
      limit: 5,
      resourceVersionMatch: "NotOlderThan",
    });
  });

  it("has a contact as old as the snapshot, not older than that by a clock that was set back, and no proof", () => {
    const content = { resourceVersion: "10", watchedVersion: "8", needsList: false };
    const start = initialState({ ...settings, resuming: RESUMING });
    const { position } = RESUMING.restored(start, { ...content, savedAtMs: NOW.wallMs - 7_000 }, NOW);
    assert.deepEqual(position.contact, { wallMs: NOW.wallMs - 7_000, monotonicMs: NOW_MS - 7_000 });
    assert.deepEqual([position.isConfirmed, position.watchedVersion], [false, "8"]);
    const later = RESUMING.restored(start, { ...content, savedAtMs: NOW.wallMs + 7_000 }, NOW);
    assert.deepEqual(later.position.contact, NOW);
  });

  it("lists where its first watch is silent: the server may not have reached the version", () => {
    const watching = transition(resumed, { of: "probe", serverVersion: "10", isOtherCluster: false }, NOW);
    const silent: Outcome = { of: "watch", ended: undefined, lastedMs: settings.bookmarkSilenceMs };
    assert.deepEqual(transition(watching.state, silent, NOW).step, { do: "stream" });
  });

  it("takes no silence for a lost server any more once everything was listed: no bookmark has ever come", () => {
    const list = { of: "list", resourceVersion: "20", paginated: false, attempt } as const;
    const listed = transition(restored(true, false), list, NOW);
    const silent: Outcome = { of: "watch", ended: undefined, lastedMs: settings.bookmarkSilenceMs };
    assert.deepEqual(transition(listed.state, silent, NOW).step, { do: "watch" });
  });

  it("watches where the server has the version, or cannot say so", () => {
    for (const serverVersion of ["10", "11", "100", undefined, "abc"]) {
      assert.deepEqual(step({ of: "probe", serverVersion, isOtherCluster: false }), { do: "watch" });
    }
    for (const error of [forbidden, broken]) {
      assert.deepEqual(step({ of: "probe", error }), { do: "watch" });
    }
  });

  it("asks again where the server is away or busy", () => {
    for (const error of [refused, unreachable, tooMany, busy, internal]) {
      assert.deepEqual(step({ of: "probe", error }), { do: "backOff", then: "start" });
    }
  });

  it("asks a few times where the server is busy or broken, and lists then: it may never answer that", () => {
    for (const error of [tooMany, busy, internal]) {
      let state = resumed;
      for (let tries = 1; tries < 3; tries++) {
        const next = transition(state, { of: "probe", error }, NOW);
        assert.deepEqual(next.step, { do: "backOff", then: "start" });
        state = next.state;
      }
      const next = transition(state, { of: "probe", error }, NOW);
      assert.deepEqual([next.step, next.state.resumption], [{ do: "stream" }, undefined]);
    }
  });

  it("asks a server that is away as long as it is, and watches where only that request breaks", () => {
    let state = resumed;
    for (let tries = 0; tries < 20; tries++) {
      const next = transition(state, { of: "probe", error: refused }, NOW);
      assert.deepEqual(next.step, { do: "backOff", then: "start" });
      state = next.state;
    }
    for (let tries = 1; tries < 3; tries++) {
      ({ state } = transition(state, { of: "probe", error: unreachable }, NOW));
    }
    const next = transition(state, { of: "probe", error: unreachable }, NOW);
    assert.deepEqual(next.step, { do: "watch" });
    const away = transition(next.state, { of: "watch", error: unreachable }, NOW);
    assert.deepEqual(away.step, { do: "backOff", then: "start" });
    assert.deepEqual(step({ of: "start" }, away.state), { do: "probe" });
    const failed = transition(next.state, { of: "watch", error: forbidden }, NOW);
    assert.deepEqual(failed.state.resumption, { failedWatches: 1, failedProbes: 3 });
  });

  it("asks for the most recent data where the server has not reached the version", () => {
    const { step, state } = transition(
      resumed,
      { of: "probe", serverVersion: "9", isOtherCluster: false },
      NOW,
    );
    assert.deepEqual(step, { do: "stream" });
    assert.deepEqual(decisive(state), { ...decisive(at10), isResourceVersionUnavailable: true });
  });

  it("asks for the most recent data where it is another cluster, however far its version is", () => {
    const outcome: Outcome = { of: "probe", serverVersion: "99", isOtherCluster: true };
    const { step, state } = transition(resumed, outcome, NOW);
    assert.deepEqual(step, { do: "stream" });
    assert.deepEqual(decisive(state), { ...decisive(at10), isResourceVersionUnavailable: true });
  });

  it("lists at once, no older than the version, where the server does not have it any more", () => {
    for (const outcome of [{ of: "watch", error: expired } as const, watchEnds(tooOld)]) {
      const { step, state, effects } = transition(resumed, outcome, NOW);
      assert.deepEqual(step, { do: "stream" });
      assert.deepEqual(decisive(state), decisive(at10));
      assert.equal(effects.some((effect) => effect.do === "report"), false);
    }
    assert.equal(
      transition(resumed, { of: "watch", error: tooLarge }, NOW).state.isResourceVersionUnavailable,
      true,
    );
  });

  it("watches again, and does not list, while the server is away or ends watches", () => {
    for (const error of [refused, unreachable, tooMany]) {
      assert.deepEqual(step({ of: "watch", error: error }), { do: "backOff", then: "watch" });
    }
    let state = resumed;
    for (let ends = 0; ends < 5; ends++) {
      const next = transition(state, watchEnds(undefined), NOW);
      assert.deepEqual([next.step, next.state.resumption], [{ do: "watch" }, resumed.resumption]);
      state = { ...next.state, position: { ...next.state.position, bookmarks: 1 } };
    }
  });

  it("watches again after three failures of another kind, and lists after the fourth", () => {
    for (const outcome of [{ of: "watch", error: forbidden } as const, watchEnds(internal)]) {
      let state = resumed;
      for (let failed = 1; failed <= 3; failed++) {
        const next = transition(state, outcome, NOW);
        assert.equal(next.step.do === "backOff" && next.step.then, "start");
        assert.deepEqual(next.state.resumption, { failedWatches: failed, failedProbes: 0 });
        state = next.state;
      }
      const last = transition(state, outcome, NOW);
      assert.equal(last.state.resumption, undefined);
      assert.deepEqual(step({ of: "start" }, last.state), { do: "stream" });
    }
  });

  it("lists where a change was lost, or a frame cannot be decoded", () => {
    for (const outcome of [watchEnds(new RelistDue()), watchEnds(undecodable)]) {
      assert.equal(transition(resumed, outcome, NOW).state.resumption, undefined);
    }
  });
});

describe("listAttempt", () => {
  const cases = [
    ["anything from the cache at first, in pages", fresh, 0, "0", 500],
    ["nothing older than what it has, without a limit so that the cache can answer", at10, 0, "10", 0],
    ["the most recent data in pages when that is unavailable", unavailable, 0, "", 500],
    ["pages where the server has no cache", { ...at10, paginatedResult: true }, 0, "10", 500],
    ["pages of the size that was set, at first", fresh, 4, "0", 4],
    ["pages of the size that was set, later", at10, 4, "10", 4],
    ["pages of the size that was set, of the most recent data", unavailable, 4, "", 4],
    ["no floor where a list had no version", { ...unavailable, exactResourceVersion: "" }, 4, "", 4],
  ] as const;
  for (const [name, state, pageSize, resourceVersion, limit] of cases) {
    it(name, () => assert.deepEqual(listAttempt(state, pageSize), { resourceVersion, limit }));
  }
});
