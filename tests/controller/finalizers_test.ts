import { defineController, type Result } from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, startRig, type Widget, widget } from "./rig.ts";
import { WIDGETS } from "../widgets.ts";

const FINALIZER = "example.com/widget";

type Finalize = NonNullable<Parameters<typeof defineController<Widget>>[0]["finalize"]>;

function startWith(finalize: Finalize): Rig {
  return startRig((cluster) =>
    defineController<Widget>({
      name: "widgets",
      for: cluster.resource<Widget>(WIDGETS),
      when: () => false, // the beginning of a deletion counts nevertheless
      reconcile: () => {},
      finalizer: FINALIZER,
      finalize,
    })
  );
}

const present = (rig: Rig) => rig.server.get<Widget>(WIDGETS, "shop/a");

async function startDeletion(rig: Rig, finalizers: readonly string[] = []): Promise<void> {
  rig.server.create(WIDGETS, widget("a", "red", { finalizers }));
  await rig.clock.advance(1_000);
  assert.deepEqual(present(rig)?.metadata?.finalizers, [...finalizers, FINALIZER]);
  rig.server.delete(WIDGETS, "shop/a");
}

describe("ControllerOptions.finalize", () => {
  it("may return a status, which is written while it is not done", async () => {
    let result: Result = { status: { color: "fading" }, requeueAfterMs: 5_000 };
    await using rig = startWith(() => result);
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig)?.status?.color, "fading");
    result = {};
    await rig.clock.advance(5_000);
    assert.equal(present(rig), undefined);
  });

  it("may return a status with its end, where other finalizers remain", async () => {
    await using rig = startWith(() => ({ status: { color: "none" } }));
    await startDeletion(rig, ["example.com/other"]);
    await rig.clock.advance(1_000);
    assert.equal(present(rig)?.status?.color, "none");
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
  });

  it("may change the object, which is no conflict when the finalizer is removed", async () => {
    let count = 0;
    await using rig = startWith(async ({ metadata }, { self }) => {
      await self.patch(metadata!.name!, { metadata: { annotations: { tries: String(++count) } } });
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.equal(count, 1);
  });

  it("is done when the object is no longer there although the finalizer was to be removed", async () => {
    await using rig = startWith((_, { key }) => {
      rig.server.patch(WIDGETS, key, { metadata: { finalizers: null } });
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.deepEqual(rig.lines, []);
  });

  it("may remove the finalizer itself: nothing more is written", async () => {
    await using rig = startWith(async ({ metadata }, { self }) => {
      await self.patch(metadata!.name!, { metadata: { finalizers: ["example.com/other"] } });
    });
    await startDeletion(rig, ["example.com/other"]);
    const before = rig.writes().length;
    await rig.clock.advance(1_000);
    assert.equal(rig.writes().length, before + 1);
    assert.deepEqual(present(rig)?.metadata?.finalizers, ["example.com/other"]);
  });

  it("is called until it succeeds, and nothing else of the object is", async () => {
    let left = 3;
    await using rig = startWith(() => {
      if (left-- > 0) throw new Error("not yet");
    });
    await startDeletion(rig);
    await rig.clock.advance(1_000);
    assert.equal(present(rig), undefined);
    assert.equal(left, -1);
  });
});
