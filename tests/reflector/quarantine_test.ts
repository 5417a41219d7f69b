import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Quarantined } from "@listwatch/cache/reflector";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import { LogRecorder } from "../log_recorder.ts";

describe("Quarantine.add", () => {
  it("counts and logs each object, and each cause of a broken frame once until a watch is well", () => {
    const log = new LogRecorder();
    const quarantine = new Quarantine({ name: "pods", logger: log });
    quarantine.add({ reason: "it has no name", path: "metadata.name" });
    quarantine.add({ reason: "it is odd", path: "", key: "shop/a" });
    const frame = (bytes: number): Quarantined => ({
      reason: `no JSON (within the first ${bytes} bytes of the watch)`,
      path: "frame",
    });
    quarantine.add(frame(10));
    quarantine.add(frame(20));
    quarantine.watchWasWell();
    quarantine.add(frame(30));
    assert.equal(quarantine.count, 5);
    assert.deepEqual(log.of("warn"), [
      "warn: pods: quarantined an object at metadata.name: it has no name",
      'warn: pods: quarantined "shop/a": it is odd',
      "warn: pods: quarantined an object at frame: no JSON (within the first 10 bytes of the watch)",
      "warn: pods: quarantined an object at frame: no JSON (within the first 30 bytes of the watch)",
    ]);
  });

  it("hands each object to onQuarantined instead of the log, and logs what that throws", () => {
    const log = new LogRecorder();
    const onQuarantined = () => {
      throw new Error("broke");
    };
    const quarantine = new Quarantine({ name: "pods", logger: log, onQuarantined });
    quarantine.add({ reason: "it is odd", path: "" });
    assert.deepEqual(log.of("warn"), []);
    assert.deepEqual(log.of("error"), ["error: pods: onQuarantined threw: broke"]);
  });

  it("keeps a key whose later state was quarantined before the delete of an earlier one was applied", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    quarantine.add({ reason: "bad", path: "", key: "a", resourceVersion: "12" });
    assert.ok(quarantine.release("a", "11"));
    assert.ok(quarantine.release("a", "12"));
    assert.ok(!quarantine.release("a", "13"));
  });

  it("keeps the keys in a ledger, until they are released or a list starts it again", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    for (const key of ["a", "b"]) quarantine.add({ reason: "it is odd", path: "", key });
    assert.ok(quarantine.release("a"));
    assert.ok(!quarantine.release("a"));
    assert.ok(quarantine.keys.has("b"));
    quarantine.startLedger([{ reason: "it is odd", path: "items[0]", key: "c" }]);
    assert.deepEqual([...quarantine.keys.keys()], ["c"]);
    assert.ok(quarantine.isRepaired);
  });
});

describe("Quarantine.lost", () => {
  it("passes each loss on, and is repaired when everything was listed", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    const losses: boolean[] = [];
    quarantine.onLoss(({ isIncomplete }) => losses.push(isIncomplete));
    assert.ok(quarantine.isRepaired);
    quarantine.lost();
    quarantine.incomplete();
    quarantine.add({ reason: "it is odd", path: "" });
    quarantine.lost();
    quarantine.add({ reason: "it is odd", path: "" });
    assert.deepEqual(losses, [false, true, false]);
    assert.equal(quarantine.losses, 3);
    assert.ok(!quarantine.isRepaired);
    quarantine.recovered();
    assert.ok(quarantine.isRepaired);
  });
});
