import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { Quarantined } from "@listwatch/cache/reflector";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import { newDecodingStatus } from "../../src/watch/decode_watch.ts";
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

describe("Quarantine.explains", () => {
  it("knows what was quarantined since the last list, since the one before, and what is in the ledger", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    const add = (...keys: string[]) => {
      for (const key of keys) quarantine.add({ reason: "it is odd", path: "", key });
    };
    add("a", "b", "c");
    assert.ok(quarantine.explains("a", undefined));
    assert.ok(!quarantine.explains("a", undefined), "it was said already");
    quarantine.release("b");
    assert.ok(quarantine.explains("b", undefined), "it has left the ledger since the last list");
    quarantine.startLedger([]);
    assert.ok(quarantine.explains("c", undefined), "it is of the time before the last list");
    add("d");
    quarantine.startLedger([]);
    quarantine.startLedger([]);
    assert.ok(!quarantine.explains("d", undefined), "it is older than two lists");
  });

  it("says once of a key that several lists had that it was quarantined", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    const odd = { reason: "it is odd", path: "items[0]", key: "a" };
    for (let list = 0; list < 2; list++) quarantine.startLedger([odd]);
    assert.deepEqual([1, 2].map(() => quarantine.explains("a", undefined)), [true, false]);
  });

  it("leaves the key of a later state in the ledger, which explains the next delete", () => {
    const quarantine = new Quarantine({ name: "pods", onQuarantined: () => {} });
    quarantine.add({ reason: "it is odd", path: "", key: "a", resourceVersion: "12" });
    assert.ok(quarantine.explains("a", "11"));
    assert.ok(quarantine.explains("a", "12"));
    assert.ok(!quarantine.explains("a", "13"));
  });
});

describe("Quarantine.refuse", () => {
  it("throws what a watch ended with, and reports it only where a frame could not be decoded", () => {
    const reports: string[] = [];
    const quarantine = new Quarantine({
      name: "pods",
      onQuarantined: ({ reason, path }) => void reports.push(`${path}: ${reason}`),
    });
    const other = newStatus(500, "InternalError", "it broke", {
      causes: [{ reason: "Other", message: "why" }],
    });
    for (
      const [status, bytes] of [[newDecodingStatus("no JSON"), 0], [newDecodingStatus("no JSON"), 9], [
        other,
        9,
      ]] as const
    ) {
      assert.throws(() => quarantine.refuse(status, bytes), StatusError);
    }
    const reason = "frame: unable to decode an event from the watch stream: no JSON";
    assert.deepEqual(reports, [reason, `${reason} (within the first 9 bytes of the watch)`]);
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
