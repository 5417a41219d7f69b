import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextTurn } from "../../src/util/clock.ts";
import { Latch, waitIn, Wakeup } from "../../src/util/deferred.ts";
import { CountingSignal } from "../counting_signal.ts";

const reason = new Error("enough");

describe("waitIn", () => {
  it("takes the caller away in the turn in which its signal is aborted, and leaves no listener", async () => {
    const waiting = new Set<PromiseWithResolvers<number>>();
    const counting = new CountingSignal();
    const first = waitIn(waiting, counting.signal);
    for (const one of waiting) one.resolve(1);
    assert.equal(await first, 1);
    const plain = waitIn(waiting, undefined);
    for (const one of waiting) one.resolve(2);
    assert.equal(await plain, 2);
    assert.equal(counting.listeners, 0);
    waiting.clear();
    const second = waitIn(waiting, counting.signal);
    assert.equal(waiting.size, 1);
    counting.abort(reason);
    assert.equal(waiting.size, 0);
    await assert.rejects(second, reason);
  });
});

describe("Latch", () => {
  it("opens once, also after it was given up, which only those that waited notice", async () => {
    const latch = new Latch();
    const waited = latch.opened;
    latch.giveUp(reason);
    await assert.rejects(waited, reason);
    assert.equal(latch.isOpen, false);
    latch.open();
    assert.equal(latch.isOpen, true);
    const open = new Latch();
    open.open();
    open.giveUp(reason);
    await open.opened;
    new Latch().giveUp(reason); // nothing waits, and no rejection is left unhandled
    await nextTurn();
  });
});

describe("Wakeup", () => {
  it("wakes the callers that wait now, and not those of the next time", async () => {
    const wakeup = new Wakeup();
    const woken: string[] = [];
    const wait = (name: string) => wakeup.wait(undefined).then(() => woken.push(name));
    const first = [wait("a"), wait("b")];
    wakeup.wakeAll();
    const later = wait("c");
    await Promise.all(first);
    assert.deepEqual(woken, ["a", "b"]);
    wakeup.wakeAll();
    await later;
    await assert.rejects(wakeup.wait(AbortSignal.abort(reason)), reason);
  });
});
