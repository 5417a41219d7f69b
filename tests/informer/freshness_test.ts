import assert from "node:assert/strict";
import { NotFreshError } from "@listwatch/cache";
import { CountingSignal } from "../counting_signal.ts";
import { named, newRig, text } from "./rig.ts";
import { describe, it } from "./storages.ts";

describe("SharedIndexInformer.waitForVersion", () => {
  it("ends when the store has reached it, by an event of any object", async () => {
    await using rig = newRig();
    await rig.start();
    let reached = false;
    const wait = rig.informer.waitForVersion("2").then(() => (reached = true));
    rig.source.add(named("a"));
    await rig.settle();
    assert.equal(reached, false);
    rig.source.add(named("b"));
    await wait;
    assert.equal(rig.informer.indexer.size, 2);
  });

  it("ends at once for one that was reached before", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    await rig.informer.waitForVersion("1");
  });

  it("compares versions as numbers of any length", async () => {
    await using rig = newRig();
    for (let i = 0; i < 10; i++) rig.source.add(named(`o${i}`));
    await rig.start();
    await rig.informer.waitForVersion("9");
    await assert.rejects(
      rig.informer.waitForVersion("100000000000000000000", { signal: AbortSignal.abort() }),
      NotFreshError,
    );
  });

  it("ends with a typed error when its signal is aborted, and leaves no listener", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    const abort = new AbortController();
    const wait = rig.informer.waitForVersion("7", { signal: abort.signal });
    abort.abort(new Error("too slow"));
    await assert.rejects(wait, (error: NotFreshError) => {
      assert.equal(error.code, "NotFresh");
      assert.deepEqual([error.wanted, error.reached], ["7", "1"]);
      assert.equal((error.cause as Error).message, "too slow");
      return true;
    });
  });

  it("ends with that error when the informer stops", async () => {
    const rig = newRig();
    await rig.start();
    const wait = assert.rejects(rig.informer.waitForVersion("7"), NotFreshError);
    await rig.stop();
    await wait;
  });

  it("ends with that error when the informer had stopped before, and so does a read", async () => {
    const rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    await rig.stop();
    await assert.rejects(rig.informer.waitForVersion("7"), (error: NotFreshError) => {
      assert.deepEqual([error.code, error.wanted, error.reached], ["NotFresh", "7", "1"]);
      assert.match(String(error.cause), /the informer has stopped/);
      return true;
    });
    await assert.rejects(rig.informer.get("a", { notOlderThan: "7" }), NotFreshError);
    await rig.informer.waitForVersion("1"); // was reached
    assert.equal(text((await rig.informer.get("a", { notOlderThan: "1" }))!), "a@1");
  });

  it("leaves no listener at its signal, however it ends", async () => {
    const rig = newRig();
    const signal = new CountingSignal();
    await rig.start();
    const reached = rig.informer.waitForVersion("1", { signal: signal.signal });
    const never = assert.rejects(rig.informer.waitForVersion("7", { signal: signal.signal }), NotFreshError);
    assert.equal(signal.listeners, 2);
    rig.source.add(named("a"));
    await reached;
    assert.equal(signal.listeners, 1);
    await rig.stop();
    await never;
    assert.equal(signal.listeners, 0);
  });

  it("refuses what is no resource version", async () => {
    await using rig = newRig();
    await assert.rejects(rig.informer.waitForVersion("abc"), TypeError);
    await assert.rejects(rig.informer.waitForVersion(""), TypeError);
  });
});

describe("SharedIndexInformer.get no older than a write", () => {
  it("sees the write, also across a delete and another create", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    const read = rig.informer.get("a", { notOlderThan: "3" });
    rig.source.delete(named("a"));
    rig.source.add(named("a"));
    assert.equal(text((await read)!), "a@3");
  });

  it("sees that an object was deleted", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    const read = rig.informer.get("a", { notOlderThan: "2" });
    rig.source.delete(named("a"));
    assert.equal(await read, undefined);
  });

  it("answers at once without notOlderThan", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    assert.equal(text((await rig.informer.get("a"))!), "a@1");
  });
});

describe("SharedIndexInformer.isFresh", () => {
  it("depends on when something last came from the server", async () => {
    await using rig = newRig();
    assert.equal(rig.informer.isFresh(1_000), false);
    await rig.start();
    assert.equal(rig.informer.isFresh(0), true);
    await rig.clock.advance(5_000);
    assert.equal(rig.informer.isFresh(4_999), false);
    assert.equal(rig.informer.isFresh(5_000), true);
    rig.source.add(named("a"));
    await rig.settle();
    assert.equal(rig.informer.isFresh(0), true);
  });

  it("does not count a watch that is opened, as long as nothing comes on it", async () => {
    await using rig = newRig();
    await rig.start();
    for (let i = 0; i < 10; i++) {
      rig.source.closeWatches();
      await rig.clock.advance(60_000);
      assert.equal(rig.informer.isFresh(60_000 * i), false);
    }
    assert.equal(rig.informer.status().phase, "watching");
  });

  it("is one number: the status' lag, the metric and isFresh agree", async () => {
    let contactSeconds = 0;
    const gauge = (name: string, value: number) => {
      if (name === "reflector_last_contact_timestamp_seconds") contactSeconds = value;
    };
    await using rig = newRig({ metrics: { count: () => {}, observe: () => {}, gauge } });
    assert.equal(rig.informer.status().lagMs, undefined);
    await rig.start();
    assert.equal(rig.informer.status().lagMs, 0);
    const before = rig.informer.status();
    await rig.clock.advance(7_000);
    assert.equal(before.lagMs, 0); // as it was when it was taken
    const { lagMs, lastContactTimeMs } = rig.informer.status();
    assert.equal(lagMs, 7_000);
    assert.equal(rig.clock.now() - lastContactTimeMs!, lagMs);
    assert.equal(rig.clock.now() - contactSeconds * 1_000, lagMs);
    assert.deepEqual([rig.informer.isFresh(lagMs), rig.informer.isFresh(lagMs - 1)], [true, false]);
    rig.source.add(named("a"));
    await rig.settle();
    assert.equal(rig.informer.status().lagMs, 0);
  });
});
