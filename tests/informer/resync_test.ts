import assert from "node:assert/strict";
import { named, newRig } from "./rig.ts";
import { describe, it } from "./storages.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;

describe("SharedIndexInformer: its resync", () => {
  it("comes to each handler at its own period", async () => {
    await using rig = newRig({ resyncPeriodMs: SECOND });
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const never = rig.record({ resyncPeriodMs: 0 }).recorder;
    const two = rig.record({ resyncPeriodMs: 2 * SECOND }).recorder;
    const three = rig.record({ resyncPeriodMs: 3 * SECOND }).recorder;
    const all = [never, two, three];
    await rig.start();
    for (const one of all) assert.deepEqual(one.take(), ["add a@1 initial", "add b@2 initial"]);
    const updates = ["update a@1>1", "update b@2>2"];
    const expected = [
      [[], [], []], // 1 s
      [[], updates, []], // 2 s
      [[], [], updates], // 3 s
      [[], updates, []], // 4 s
      [[], [], []], // 5 s
      [[], updates, updates], // 6 s
    ];
    for (const [i, want] of expected.entries()) {
      await rig.clock.advance(SECOND);
      assert.deepEqual(all.map((one) => one.take()), want, `after ${i + 1} s`);
    }
  });

  it("comes a whole period after the last one, also where the informer could not look in time", async () => {
    await using rig = newRig({ resyncPeriodMs: SECOND });
    rig.source.add(named("a"));
    const { recorder } = rig.record({ resyncPeriodMs: 1.5 * SECOND });
    await rig.start();
    recorder.take();
    const counts: number[] = [];
    for (let second = 1; second <= 6; second++) {
      await rig.clock.advance(SECOND);
      counts.push(recorder.take().length);
    }
    assert.deepEqual(counts, [0, 1, 0, 1, 0, 1]);
  });

  it("hands out the same object as old and new", async () => {
    await using rig = newRig({ resyncPeriodMs: SECOND });
    rig.source.add(named("a"));
    const same: boolean[] = [];
    rig.informer.addEventHandler({
      onUpdate: (oldObject, newObject) => {
        same.push(oldObject === newObject && newObject === rig.informer.indexer.getByKey("a"));
      },
    });
    await rig.start();
    await rig.clock.advance(SECOND);
    assert.deepEqual(same, [true]);
  });

  it("never comes where the informer has no period, even to a handler that asks for one late", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    const { recorder } = rig.record({ resyncPeriodMs: 60 * SECOND });
    await rig.clock.advance(HOUR);
    assert.deepEqual(recorder.calls, ["add a@1 initial"]);
  });

  it("never comes where the informer has no period, even to a handler that asked before the start", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const { recorder } = rig.record({ resyncPeriodMs: 60 * SECOND });
    await rig.start();
    await rig.clock.advance(HOUR);
    assert.deepEqual(recorder.calls, ["add a@1 initial"]);
  });

  it("comes to a handler that joins late at the running informer's period at the soonest", async () => {
    await using rig = newRig({ resyncPeriodMs: 60 * SECOND });
    rig.source.add(named("a"));
    await rig.start();
    const { recorder } = rig.record({ resyncPeriodMs: 10 * SECOND });
    assert.match(
      rig.log.of("warn")[0],
      /a resync period of 10000 ms is shorter than the running informer's 60000 ms/,
    );
    rig.record({ resyncPeriodMs: 60 * SECOND });
    assert.equal(rig.log.of("warn").length, 1);
    await rig.clock.advance(59 * SECOND);
    assert.deepEqual(recorder.take(), ["add a@1 initial"]);
    await rig.clock.advance(SECOND);
    assert.deepEqual(recorder.take(), ["update a@1>1"]);
  });

  it("ends with the handler that asked for it", async () => {
    await using rig = newRig({ resyncPeriodMs: SECOND });
    rig.source.add(named("a"));
    const { recorder, registration } = rig.record();
    const other = rig.record({ resyncPeriodMs: 0 }).recorder;
    await rig.start();
    await rig.informer.removeEventHandler(registration);
    recorder.take();
    other.take();
    await rig.clock.advance(5 * SECOND);
    assert.deepEqual([recorder.calls, other.calls], [[], []]);
  });
});

describe("HandlerOptions.resyncPeriodMs", () => {
  it("before the start make the informer look as often as the shortest needs", async () => {
    await using rig = newRig({ resyncPeriodMs: 12 * HOUR });
    rig.source.add(named("a"));
    const periodsMs = [0, 60 * SECOND, 55 * SECOND, 5 * SECOND, undefined];
    const recorders = periodsMs.map((resyncPeriodMs) =>
      rig.record(resyncPeriodMs === undefined ? {} : { resyncPeriodMs }).recorder
    );
    await rig.start();
    for (const recorder of recorders) recorder.take();
    await rig.clock.advance(120 * SECOND);
    assert.deepEqual(recorders.map((recorder) => recorder.take().length), [0, 2, 2, 24, 0]);
    await rig.clock.advance(12 * HOUR - 120 * SECOND);
    assert.equal(recorders[4].take().length, 1);
  });

  it("are a second at least", async () => {
    await using rig = newRig({ resyncPeriodMs: 60 * SECOND });
    rig.source.add(named("a"));
    const { recorder } = rig.record({ resyncPeriodMs: 10 });
    rig.record({ resyncPeriodMs: SECOND });
    const [warning, ...others] = rig.log.of("warn");
    assert.match(warning, /a resync period of 10 ms is too short; it is 1000 ms instead/);
    assert.deepEqual(others, []);
    await rig.start();
    recorder.take();
    await rig.clock.advance(5 * SECOND);
    assert.equal(recorder.calls.length, 5);
  });
});
