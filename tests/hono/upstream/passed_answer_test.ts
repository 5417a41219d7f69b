import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Reader } from "../../../src/hono/request/readers.ts";
import { passedBody } from "../../../src/hono/upstream/passed_answer.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { nextTurn } from "../../../src/util/clock.ts";

/** A body that is passed on to a reader with room for some bytes, and what has come of it. */
function passing({ room = Infinity, isStream = false } = {}) {
  const state = { taken: 0, given: 0, held: 0, ends: [] as boolean[], isCancelled: false, spent: () => {} };
  const watches = new Set<{ stop(): void }>();
  const reader = {
    readers: { watches },
    hold: () => {
      state.held++;
      return () => void state.held--;
    },
    take: (bytes: number) => (state.taken += bytes) - state.given <= room,
    give: (bytes: number) => void (state.given += bytes),
    set onSpent(call: () => void) {
      state.spent = call;
    },
  } as unknown as Reader;
  let source!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void (source = controller),
    cancel: () => void (state.isCancelled = true),
  });
  const clock = new FakeClock();
  const permission = { user: undefined, renew: () => Promise.resolve(permission) };
  const passed = passedBody(body, {
    clock,
    permission,
    limitMs: 60_000,
    recheckMs: Infinity,
    reader,
    isStream,
    onEnd: (isBrokenOff) => void state.ends.push(isBrokenOff),
  }).getReader();
  return {
    state,
    source,
    clock,
    watches,
    passed,
    send: (size: number) => source.enqueue(new Uint8Array(size)),
  };
}

const SPENT = /the bytes for unread answers are spent/;

describe("passedBody", () => {
  it("takes the bytes of the piece that is unread, and lets go of all once at the end", async () => {
    const { state, source, clock, watches, passed, send } = passing();
    for (const size of [10, 20]) {
      send(size);
      assert.equal((await passed.read()).value?.byteLength, size);
      assert.equal(state.taken - state.given, size);
    }
    assert.deepEqual([state.held, watches.size], [1, 1]);
    source.close();
    assert.equal((await passed.read()).done, true);
    assert.deepEqual([state.ends, state.held, watches.size, clock.pendingTimers], [[false], 0, 0, 0]);
    await passed.cancel();
    state.spent();
    assert.deepEqual([state.ends, state.held, state.isCancelled], [[false], 0, false]);
  });

  it("is broken off where there is no room for a piece, or other readers need it", async () => {
    const full = passing({ room: 15 });
    full.send(10);
    await full.passed.read();
    full.send(20);
    await assert.rejects(full.passed.read(), SPENT);
    const slow = passing();
    slow.send(10);
    await slow.passed.read();
    slow.state.spent();
    await assert.rejects(slow.passed.read(), SPENT);
    for (const { state, watches } of [full, slow]) {
      assert.deepEqual([state.ends, state.held, watches.size, state.isCancelled], [[true], 0, 0, true]);
    }
  });

  it("takes nothing for a piece that comes after it was stopped, and ends as a whole only where it is a stream", async () => {
    for (const isStream of [true, false]) {
      const { state, watches, passed, send } = passing({ isStream });
      const read = passed.read();
      await nextTurn();
      send(10);
      for (const watch of watches) watch.stop();
      if (isStream) assert.equal((await read).done, true);
      else await assert.rejects(read, /the permission of its reader has ended, or the server stops/);
      await nextTurn();
      assert.deepEqual([state.taken, state.ends, state.isCancelled], [0, [true], true]);
    }
  });
});
