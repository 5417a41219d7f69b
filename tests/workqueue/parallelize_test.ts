import { parallelizeUntil } from "@listwatch/cache/workqueue";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

describe("parallelizeUntil", () => {
  it("does every piece once, by no more workers than allowed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(30),
        fc.constantFrom(1, 1.5, 2, 2.5, 3, 4, 5, 6),
        fc.integer({ min: 0, max: 7 }),
        fc.scheduler(),
        async (pieces, workers, chunkSize, scheduler) => {
          const done = new Array(pieces).fill(0);
          let running = 0;
          const all = parallelizeUntil(pieces, async (piece) => {
            assert.ok(++running <= workers);
            await scheduler.schedule(Promise.resolve());
            done[piece]++;
            running--;
          }, { workers, chunkSize });
          await scheduler.waitFor(all);
          assert.ok(done.every((times) => times === 1));
        },
      ),
    );
  });

  it("gives each worker a row of pieces at a time", async () => {
    const order: number[] = [];
    const release: (() => void)[] = [];
    const all = parallelizeUntil(6, (piece) => {
      order.push(piece);
      return new Promise<void>((resolve) => release.push(resolve));
    }, { workers: 2, chunkSize: 3 });
    assert.deepEqual(order, [0, 3]);
    while (order.length < 6 || release.length > 0) {
      release.shift()?.();
      await Promise.resolve();
    }
    await all;
    assert.deepEqual(order.slice().sort(), [0, 1, 2, 3, 4, 5]);
  });

  it("stops between pieces when its signal is aborted, and waits for started ones", async () => {
    const stop = new AbortController();
    const started: number[] = [];
    let finished = 0;
    await parallelizeUntil(10, async (piece) => {
      started.push(piece);
      if (piece === 1) stop.abort();
      await Promise.resolve();
      finished++;
    }, { workers: 2, signal: stop.signal });
    assert.deepEqual([started, finished], [[0, 1], 2]);
  });

  it("rejects with the first failure once nothing is running, and starts nothing after it", async () => {
    const started: number[] = [];
    let finished = false;
    await assert.rejects(
      parallelizeUntil(10, async (piece) => {
        started.push(piece);
        if (piece === 0) throw new Error("piece 0");
        for (let i = 0; i < 5; i++) await Promise.resolve();
        finished = true;
        throw new Error("piece 1, later");
      }, { workers: 2 }),
      /piece 0/,
    );
    assert.deepEqual([started, finished], [[0, 1], true]);
  });

  it("ends no chunk after a failure", async () => {
    const started: number[] = [];
    const work = parallelizeUntil(6, async (piece) => {
      started.push(piece);
      await Promise.resolve();
      if (piece === 0) throw new Error("piece 0");
    }, { workers: 2, chunkSize: 3 });
    await assert.rejects(work, /piece 0/);
    assert.deepEqual(started, [0, 3]);
  });

  it("begins all pieces at once with workers without number", async () => {
    let running = 0;
    let most = 0;
    await parallelizeUntil(40, async () => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
    }, { workers: Infinity });
    assert.equal(most, 40);
  });

  it("refuses numbers with which it would do nothing", async () => {
    for (const workers of [0, -1, NaN]) {
      await assert.rejects(parallelizeUntil(1, () => {}, { workers }), RangeError);
    }
    for (const chunkSize of [NaN, -1, Infinity]) {
      await assert.rejects(
        parallelizeUntil(1, () => {}, { workers: 1, chunkSize }),
        new RangeError(
          `Cannot parallelize with a chunkSize of ${chunkSize}: it must be a finite number of 0 or more`,
        ),
      );
    }
    for (const pieces of [NaN, -1, Infinity, 1.5]) {
      await assert.rejects(parallelizeUntil(pieces, () => {}, { workers: 1 }), RangeError);
    }
  });
});
