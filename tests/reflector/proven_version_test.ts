import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newStatus } from "@listwatch/cache/client";
import { momentOf } from "../../src/util/clock.ts";
import { ListWatchLoop } from "../../src/reflector/list_watch_loop.ts";
import { newRun, openWatch, page, type Run } from "./scripted_source.ts";

const odd = {
  reason: "labels: expected a string",
  path: "metadata.labels",
  key: "a",
  resourceVersion: "120",
};

function loopOf({ reflector }: Run): ListWatchLoop<unknown> {
  assert.ok(reflector instanceof ListWatchLoop);
  return reflector;
}

describe("ListWatchLoop.proven", () => {
  it("counts a quarantined change as received, until a list starts another history", async () => {
    const [before, after] = [openWatch(), openWatch()];
    const script = [{ list: page("a@90", "100") }, { watch: before }];
    await using run = newRun(script, {}, {});
    await run.start();
    before.send({ type: "QUARANTINED", quarantined: odd });
    await run.clock.advance(0);
    assert.equal(loopOf(run).proven({ after: "120", through: "130", asked: momentOf(run.clock) }), true);
    assert.equal(loopOf(run).status().resourceVersion, "130");
    // The server was restored from a backup.
    run.source.then({ list: page("a@30", "40") }, { watch: after });
    before.error(newStatus(410, "Expired", "too old resource version"));
    await run.clock.advance(60_000);
    assert.equal(loopOf(run).status().resourceVersion, "40");
    assert.equal(loopOf(run).proven({ after: "50", through: "60", asked: momentOf(run.clock) }), false);
    assert.equal(loopOf(run).status().resourceVersion, "40");
  });

  it("moves nothing between two watches: a list that has started may have an earlier version", async () => {
    const watch = openWatch();
    await using run = newRun([{ list: page("a@90", "100") }, { watch }], {}, {});
    await run.start();
    watch.error(newStatus(410, "Expired", "too old resource version"));
    await run.clock.advance(0);
    assert.equal(loopOf(run).status().phase, "backingOff");
    assert.equal(loopOf(run).proven({ after: "100", through: "130", asked: momentOf(run.clock) }), false);
    assert.equal(loopOf(run).status().resourceVersion, "100");
    assert.deepEqual(run.store.operations, ["replace 100: a@90"]);
  });
});
