import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextTurn } from "../../src/util/clock.ts";
import { TurnQueue } from "../../src/util/turn_queue.ts";

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
