import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextTurn } from "../../src/util/clock.ts";
import { FakeClock } from "@listwatch/cache/testing";
import { arrived, finishInTurns, giveWay, Pacer, stepObjectsOf, TurnQueue } from "../../src/util/turns.ts";

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

describe("stepObjectsOf", () => {
  it("is no more than a turn has", () => {
    const sizes = [1, 10, 1_000].map((turnObjects) => stepObjectsOf({ turnObjects, turnMs: 4 }));
    assert.deepEqual(sizes, [1, 10, 128]);
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
