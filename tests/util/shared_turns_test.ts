import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextTurn } from "../../src/util/clock.ts";
import { newWorkPacer, SharedTurns } from "../../src/util/shared_turns.ts";

describe("SharedTurns", () => {
  it("lets tasks share a turn until they have spent it, in the order of the calls", async () => {
    const turns = new SharedTurns(100_000);
    const counts: number[] = [];
    let isOver = false;
    let log = "";
    const count = async () => {
      while (!isOver) {
        counts.push(0);
        await nextTurn();
      }
    };
    const work = async (name: string, units: number) => {
      for (let i = 0; i < 20; i++) {
        await turns.next();
        log += name;
        turns.spend(units);
        counts[counts.length - 1] += units;
      }
    };
    const counting = count();
    await Promise.all([work("a", 1_000), work("b", 1_000), work("c", 60_000)]);
    isOver = true;
    await counting;
    assert.equal(log, "abc".repeat(20));
    assert.ok(counts.length < 40, `${counts.length} turns for 60 steps`);
    assert.ok(Math.max(...counts) <= 200_000, counts.join());
  });

  /** Tasks that take turn after turn, until `end`. */
  function crowd(turns: SharedTurns, tasks: readonly { readonly client: string; readonly done: number }[]) {
    const steps = tasks.map(() => 0);
    let isOver = false;
    const running = tasks.map(async ({ client, done }, i) => {
      for (let spentUnits = done; !isOver; spentUnits += 1_000) {
        await turns.next(client, spentUnits);
        turns.spend(1_000);
        steps[i]++;
      }
    });
    return {
      steps,
      total: () => steps.reduce((sum, count) => sum + count, 0),
      end: async () => {
        isOver = true;
        await Promise.all(running);
      },
    };
  }

  it("lets a task that has done little pass hundreds that have done much", async () => {
    const turns = new SharedTurns(100_000);
    const long = crowd(turns, Array.from({ length: 300 }, () => ({ client: "a", done: 1e6 })));
    for (let i = 0; i < 5; i++) await nextTurn();
    const before = long.total();
    for (let done = 0; done < 10_000; done += 1_000) {
      await turns.next("a", done);
      turns.spend(1_000);
    }
    assert.ok(long.total() - before <= 22, `${long.total() - before} steps of others for 10 steps`);
    await long.end();
  });

  it("gives every second turn to tasks that have done much, however many have not", async () => {
    const turns = new SharedTurns(100_000);
    const short = { client: "a", done: -Infinity };
    const tasks = crowd(turns, [{ client: "a", done: 1e6 }, ...Array.from({ length: 300 }, () => short)]);
    while (tasks.total() < 600) await nextTurn();
    assert.ok(tasks.steps[0] >= tasks.total() * 0.45, `${tasks.steps[0]} of ${tasks.total()}`);
    assert.ok(Math.min(...tasks.steps.slice(1)) > 0);
    await tasks.end();
  });

  it("counts what a task spends by its pacer, so that one that has done little passes it", async () => {
    const turns = new SharedTurns(1_000);
    const pacer = newWorkPacer(turns, () => "a", () => false);
    pacer.spend(4_000);
    const order: string[] = [];
    const note = (name: string, turn: Promise<void>) => turn.then(() => order.push(name));
    await Promise.all([note("long", pacer.rest()), note("short", turns.next("a"))]);
    assert.deepEqual(order, ["short", "long"]);
  });

  it("gives clients as many turns, however many tasks each has", async () => {
    const turns = new SharedTurns(100_000);
    const many = Array.from({ length: 300 }, (_, i) => ({ client: "many", done: i % 2 * 1e6 }));
    const tasks = crowd(turns, [...many, { client: "one", done: 0 }, { client: "another", done: 1e6 }]);
    while (tasks.total() < 900) await nextTurn();
    for (const own of tasks.steps.slice(300)) {
      assert.ok(own >= tasks.total() * 0.3, `${own} of ${tasks.total()}`);
    }
    await tasks.end();
  });

  it("is busy once the work of a turn is done, and in the next turn no more", async () => {
    const turns = new SharedTurns(100_000);
    turns.spend(99_999);
    assert.equal(turns.isBusy, false);
    turns.spend(1);
    assert.equal(turns.isBusy, true);
    await nextTurn();
    await nextTurn();
    assert.equal(turns.isBusy, false);
  });

  it("can be used again after they were empty", async () => {
    const turns = new SharedTurns();
    await turns.next();
    await Promise.all([turns.next(), turns.next("a")]);
    await turns.next();
  });
});
