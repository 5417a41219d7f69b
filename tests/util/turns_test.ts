import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextTurn } from "../../src/util/clock.ts";
import { FakeClock } from "@listwatch/cache/testing";
import { arrived, finishInTurns, giveWay, Pacer, TurnQueue } from "../../src/util/turns.ts";

/** How many steps of this length a turn has. */
async function stepsOf(stepMs: number, ms: number, steps: number): Promise<number> {
  const clock = new FakeClock();
  const pacer = new Pacer({ units: steps, ms, clock });
  for (let done = 1;; done++) {
    await clock.advance(stepMs);
    if (pacer.spend()) return done;
  }
}

describe("Pacer", () => {
  it("says that a turn is over after its steps", async () => {
    assert.equal(await stepsOf(0, 10, 100), 100);
    assert.equal(await stepsOf(0, 10, 1), 1);
  });

  it("says that a turn is over after its time, to the step where steps are long", async () => {
    assert.equal(await stepsOf(5, 10, 100), 2);
    assert.equal(await stepsOf(2, 10, 100), 5);
    assert.equal(await stepsOf(30, 10, 100), 1);
    assert.equal(await stepsOf(0, 0, 100), 1);
  });

  it("lasts up to eight steps longer where steps are short", async () => {
    const steps = await stepsOf(1, 20, 100);
    assert.ok(steps >= 20 && steps < 28, String(steps));
  });

  it("counts the units of each turn by itself, and is due where others wait for theirs", async () => {
    const turns = new TurnQueue();
    const pacer = new Pacer({ units: 10, turns });
    assert.equal(pacer.spend(9), false);
    assert.equal(pacer.isDue, false);
    assert.equal(pacer.spend(1), true);
    assert.equal(pacer.isDue, true);
    await pacer.rest();
    await nextTurn(); // the queue has seen that nothing else waits
    assert.equal(pacer.isDue, false);
    const other = turns.next();
    assert.equal(pacer.isDue, true);
    await other;
    assert.equal(pacer.spend(9), false);
    pacer.begin();
    assert.equal(pacer.spend(9), false);
  });

  it("measures each turn by itself", async () => {
    const clock = new FakeClock();
    const pacer = new Pacer({ units: 100, ms: 10, clock });
    await clock.advance(10);
    assert.equal(pacer.spend(), true);
    await pacer.rest();
    assert.equal(pacer.spend(), false);
  });
});

describe("finishInTurns", () => {
  function* steps(log: string[], count: number): Generator<undefined, void, undefined> {
    for (let i = 0; i < count; i++) {
      log.push("step");
      yield;
    }
  }

  it("gives others a turn after the steps of so many objects, and none once its signal is aborted", async () => {
    for (const isAborted of [false, true]) {
      const log: string[] = [];
      const signal = isAborted ? AbortSignal.abort() : undefined;
      const pace = { turnObjects: 256, turnMs: 1e6 };
      const others = (async () => {
        for (let i = 0; i < 2; i++) {
          await nextTurn();
          log.push("turn");
        }
      })();
      await finishInTurns(steps(log, 5), { ...pace, clock: new FakeClock(), signal });
      await others;
      const expected = isAborted
        ? ["step", "step", "step", "step", "step", "turn", "turn"]
        : ["step", "step", "turn", "step", "step", "turn", "step"];
      assert.deepEqual(log, expected);
    }
  });
});

describe("TurnQueue", () => {
  it("gives each caller its own turn, in the order of the calls", async () => {
    const turns = new TurnQueue();
    const log: string[] = [];
    let turn = 0;
    let isOver = false;
    const count = async () => {
      for (; !isOver; turn++) await nextTurn();
    };
    const work = async (name: string) => {
      for (let i = 0; i < 2; i++) {
        await turns.next();
        log.push(`${name} in turn ${turn}`);
      }
    };
    const counting = count();
    await Promise.all([work("a"), work("b"), work("c")]);
    isOver = true;
    await counting;
    assert.deepEqual(log.map((line) => line[0]).join(""), "abcabc");
    assert.equal(new Set(log.map((line) => line.slice(2))).size, 6, log.join("; "));
  });

  it("with a budget, lets tasks share a turn until they have spent it, in the order of the calls", async () => {
    const turns = new TurnQueue(100_000);
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
  function crowd(turns: TurnQueue, tasks: readonly { readonly client: string; readonly done: number }[]) {
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

  it("with a budget, lets a task that has done little pass hundreds that have done much", async () => {
    const turns = new TurnQueue(100_000);
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

  it("with a budget, gives every second turn to tasks that have done much, however many have not", async () => {
    const turns = new TurnQueue(100_000);
    const short = { client: "a", done: -Infinity };
    const tasks = crowd(turns, [{ client: "a", done: 1e6 }, ...Array.from({ length: 300 }, () => short)]);
    while (tasks.total() < 600) await nextTurn();
    assert.ok(tasks.steps[0] >= tasks.total() * 0.45, `${tasks.steps[0]} of ${tasks.total()}`);
    assert.ok(Math.min(...tasks.steps.slice(1)) > 0);
    await tasks.end();
  });

  it("gives clients as many turns, however many tasks each has", async () => {
    const turns = new TurnQueue(100_000);
    const many = Array.from({ length: 300 }, (_, i) => ({ client: "many", done: i % 2 * 1e6 }));
    const tasks = crowd(turns, [...many, { client: "one", done: 0 }, { client: "another", done: 1e6 }]);
    while (tasks.total() < 900) await nextTurn();
    for (const own of tasks.steps.slice(300)) {
      assert.ok(own >= tasks.total() * 0.3, `${own} of ${tasks.total()}`);
    }
    await tasks.end();
  });

  it("is busy once the work of a turn is done, and in the next turn no more", async () => {
    const turns = new TurnQueue(100_000);
    turns.spend(99_999);
    assert.equal(turns.isBusy, false);
    turns.spend(1);
    assert.equal(turns.isBusy, true);
    await nextTurn();
    await nextTurn();
    assert.equal(turns.isBusy, false);
  });

  it("can be used again after it was empty", async () => {
    const turns = new TurnQueue();
    await turns.next();
    await Promise.all([turns.next(), turns.next()]);
    await turns.next();
  });
});

describe("giveWay", () => {
  /** How many turns of the event loop pass in it. */
  async function turnsOf(arrivals: number): Promise<number> {
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      for (; !isOver; turns++) {
        if (turns < arrivals) arrived();
        await nextTurn();
      }
    })();
    await giveWay();
    isOver = true;
    await counting;
    return turns;
  }

  it("lasts while turns bring arrivals, and not for ever", async () => {
    const [none, few, endless] = [await turnsOf(0), await turnsOf(5), await turnsOf(1_000)];
    assert.ok(none <= 2, String(none));
    assert.ok(few >= 2 && few <= 8, String(few));
    assert.ok(endless >= 2 && endless <= 20, String(endless));
  });

  it("waits for fewer arrivals where each turn has much work", async () => {
    let turns = 0;
    let isOver = false;
    const flood = async () => {
      while (!isOver) {
        arrived();
        turns++;
        for (const startMs = performance.now(); performance.now() - startMs < 3;);
        await nextTurn();
      }
    };
    const flooding = flood();
    await giveWay();
    isOver = true;
    assert.ok(turns >= 2 && turns <= 6, `${turns} turns`);
    await flooding;
  });
});
