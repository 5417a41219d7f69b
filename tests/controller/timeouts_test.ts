import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { defineController } from "@listwatch/cache/controller";
import { answerStatus, delayRequest, hang } from "@listwatch/cache/testing";
import { startRig, widget } from "./rig.ts";
import { WIDGETS } from "../widgets.ts";

/** A manager with one worker, and when reconciles began, by name; the first of `a` never ends by itself. */
function startWith(heedsSignal: boolean) {
  const began: [name: string, atMs: number][] = [];
  const reasons: unknown[] = [];
  const rig = startRig((cluster) =>
    defineController({
      name: "widgets",
      for: cluster.resource<KubernetesObject>(WIDGETS),
      timeoutMs: 5_000,
      async reconcile({ metadata }, { clock, signal }) {
        began.push([metadata!.name!, clock.now()]);
        if (metadata!.name !== "a" || began.filter(([name]) => name === "a").length > 1) return;
        await new Promise<void>((_, reject) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            if (heedsSignal) reject(signal.reason);
          });
        });
      },
    })
  );
  for (const name of ["a", "b"]) rig.server.create(WIDGETS, widget(name, "red"));
  return { rig, began, reasons };
}

describe("defineController({ timeoutMs })", () => {
  it("aborts the signal of a reconcile that takes longer, which is tried again", async () => {
    const { rig, began, reasons } = startWith(true);
    await using _ = rig;
    await rig.until(() => began.length === 3);
    const [[first, startMs], [second, nextMs], [again]] = began;
    assert.deepEqual([first, second, again], ["a", "b", "a"]);
    assert.ok(nextMs - startMs >= 5_000 && nextMs - startMs < 5_500, `${nextMs - startMs} ms`);
    assert.equal(reasons.length, 1);
    assert.match(String(reasons[0]), /5,?000|5 s/);
    await rig.clock.advance(3_000);
    const problems = rig.lines.filter((line) => !line.startsWith("info"));
    const why = "Cannot reconcile shop/a within 5000 ms";
    assert.deepEqual(problems, [`warn Cannot reconcile shop/a, and tries again: ${why}`]);
  });

  it("gives the worker of one that ignores its signal to other keys, and says so", async () => {
    const { rig, began, reasons } = startWith(false);
    await using _ = rig;
    await rig.until(() => began.length >= 2);
    assert.deepEqual(began.map(([name]) => name).slice(0, 2), ["a", "b"]);
    assert.ok(began[1][1] - began[0][1] < 7_000);
    assert.equal(reasons.length, 1);
    assert.match(rig.lines.join("\n"), /error .*shop\/a.* ignores its signal/);
  });

  it("leaves one that is over its time a second to end, before its worker takes other keys", async () => {
    const { rig, began, reasons } = startWith(false);
    await using _ = rig;
    await rig.until(() => reasons.length === 1);
    await rig.clock.advance(990);
    assert.deepEqual([began.length, rig.lines.filter((line) => line.startsWith("error"))], [1, []]);
    await rig.clock.advance(10);
    assert.equal(began[1][0], "b");
  });

  it("ends the question whether an object is still there that could not be written to", async () => {
    let calls = 0;
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        timeoutMs: 5_000,
        reconcile: () => (calls++, { status: { ready: true } }),
      })
    );
    rig.server.intercept(answerStatus(404), { match: ({ method }) => method === "PATCH", times: 1 });
    rig.server.intercept(hang(), { match: ({ path }) => path.endsWith("/widgets/a"), times: 1 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => calls > 1);
    const why = "Cannot reconcile shop/a within 5000 ms";
    const problems = rig.lines.filter((line) => !line.startsWith("info"));
    assert.deepEqual(problems, [`warn Cannot reconcile shop/a, and tries again: ${why}`]);
  });

  it("is waited for at a stop although its worker has left it: as long as others, and a second more", async () => {
    for (const [takesMs, drainMs, endsMs] of [[20_000, 30_000, 10_000], [20_500, 10_000, 10_500]]) {
      const rig = startRig((cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<KubernetesObject>(WIDGETS),
          timeoutMs: 5_000,
          reconcile: (_, { clock }) => new Promise<void>((resolve) => clock.setTimeout(resolve, takesMs)),
        }), { drainMs });
      rig.server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => rig.manager.pending === 1);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(10_000);
      let hasEnded = false;
      void rig.manager.stop().then(() => hasEnded = true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(endsMs - 100);
      assert.equal(hasEnded, false);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(200);
      assert.equal(hasEnded, true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig[Symbol.asyncDispose]();
    }
  });

  it("counts one that ends after it as failed, whatever it returns or throws", async () => {
    for (const end of [() => {}, () => assert.fail("of its own")]) {
      const failures: number[] = [];
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig((cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<KubernetesObject>(WIDGETS),
          timeoutMs: 5_000,
          async reconcile(_, { clock, failures: before }) {
            failures.push(before);
            if (before > 0) return;
            await new Promise<void>((resolve) => clock.setTimeout(resolve, 5_500));
            end();
          },
        })
      );
      rig.server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(7_000);
      assert.deepEqual(failures, [0, 1]);
      assert.match(rig.lines.at(-1)!, /^warn .*: Cannot reconcile shop\/a within 5000 ms$/);
    }
  });

  it("leaves others the discovery that it has waited for with them", async () => {
    const ended: string[] = [];
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        owns: { maps: cluster.resource("v1/configmaps") },
        workers: 2,
        timeoutMs: 5_000,
        async reconcile({ metadata }, { maps }) {
          await maps.create({ metadata: { name: metadata!.name! } });
          ended.push(metadata!.name!);
        },
      })
    );
    rig.server.intercept(delayRequest(6_000), { times: 1, match: ({ path }) => path === "/api/v1" });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(3_000);
    rig.server.create(WIDGETS, widget("b", "red"));
    await rig.clock.advance(3_500);
    assert.deepEqual(ended.sort(), ["a", "b"]);
    assert.equal(rig.server.requests.filter(({ path }) => path === "/api/v1").length, 1);
    assert.equal(rig.lines.filter((line) => line.startsWith("warn")).length, 1, rig.lines.join("\n"));
  });

  it("is tried again after a discovery that has failed, which is made again", async () => {
    const made: string[] = [];
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        owns: { maps: cluster.resource("v1/configmaps") },
        async reconcile({ metadata }, { maps }) {
          await maps.create({ metadata: { name: metadata!.name! } });
          made.push(metadata!.name!);
        },
      })
    );
    rig.server.intercept(answerStatus(503), { times: 1, match: ({ path }) => path === "/api/v1" });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(1_000);
    assert.deepEqual(made, ["a"], rig.lines.join("\n"));
    assert.equal(rig.lines.filter((line) => line.startsWith("warn")).length, 1, rig.lines.join("\n"));
  });
});
