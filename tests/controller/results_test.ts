import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { defineController, type Result, TerminalError } from "@listwatch/cache/controller";
import { type Rig, startRig, widget } from "./rig.ts";
import { WIDGETS } from "../widgets.ts";

/** A manager whose reconciles return, or throw, what `of` says of the times before; and when they ran. */
function startWith(of: (times: number) => unknown): Rig & { readonly atMs: number[] } {
  const atMs: number[] = [];
  const rig = startRig((cluster) =>
    defineController({
      name: "widgets",
      for: cluster.resource<KubernetesObject>(WIDGETS),
      when: "generation",
      reconcile(_, { clock }) {
        atMs.push(clock.now());
        return of(atMs.length - 1) as Result;
      },
    })
  );
  rig.server.create(WIDGETS, widget("a", "red"));
  return Object.assign(rig, { atMs });
}

const problems = ({ lines }: Rig) => lines.filter((line) => !line.startsWith("info"));

describe("Result of a reconcile", () => {
  const garbage: readonly (readonly [what: string, returned: unknown, why: RegExp])[] = [
    [
      "a requeueAfterMs of NaN",
      { requeueAfterMs: NaN },
      /requeueAfterMs of NaN: it must be a number of 0 or more/,
    ],
    [
      "a negative requeueAfterMs",
      { requeueAfterMs: -1 },
      /requeueAfterMs of -1: it must be a number of 0 or more/,
    ],
    ["a requeueAfterMs that is text", { requeueAfterMs: "5" }, /requeueAfterMs of 5: it must be a number/],
    [
      "a requeueAfterMs that is null",
      { requeueAfterMs: null },
      /requeueAfterMs of null: it must be a number/,
    ],
    ["text", "later", /it returned a string; return \{ status, requeueAfterMs \} or nothing/],
    ["a number", 5_000, /it returned a number; return/],
    ["a list", [{ requeueAfterMs: 5 }], /it returned a list; return/],
    ["a field of another name", { requeueAfter: 5 }, /it returned "requeueAfter"; return/],
    ["a status that is text", { status: "ready" }, /it returned a status that is a string; return an object/],
    ["a status that is a list", { status: [] }, /it returned a status that is a list; return an object/],
  ];
  for (const [what, returned, why] of garbage) {
    it(`is refused with ${what}, and the reconcile is tried again`, async () => {
      await using rig = startWith((times) => times === 0 ? returned : { status: { ready: true } });
      await rig.until(() => rig.atMs.length === 2);
      await rig.clock.advance(60_000);
      assert.equal(rig.atMs.length, 2);
      assert.equal(problems(rig).length, 1, problems(rig).join("\n"));
      assert.match(problems(rig)[0], /^warn Cannot reconcile shop\/a, and tries again: /);
      assert.match(problems(rig)[0], why);
    });
  }

  it("may be undefined, null or empty", async () => {
    await using rig = startWith((times) => [undefined, null, {}][times % 3]);
    rig.server.create(WIDGETS, widget("b", "red"));
    rig.server.create(WIDGETS, widget("c", "red"));
    await rig.until(() => rig.atMs.length === 3);
    await rig.clock.advance(60_000);
    assert.deepEqual(problems(rig), []);
    assert.equal(rig.atMs.length, 3);
  });

  it("asks for no reconcile with a requeueAfterMs of Infinity", async () => {
    await using rig = startWith(() => ({ requeueAfterMs: Infinity }));
    await rig.until(() => rig.atMs.length === 1);
    await rig.clock.advance(3_600_000);
    assert.equal(rig.atMs.length, 1);
  });
});

describe("Result.requeueAfterMs", () => {
  it("of 0 leaves a turn of the event loop to others: a reconcile that waits for nothing stops no program", async () => {
    await using rig = startWith((times) => times < 1_000 ? { requeueAfterMs: 0 } : {});
    await rig.until(() => rig.atMs.length > 0);
    await rig.clock.advance(10);
    assert.ok(rig.atMs.length > 5);
    assert.ok(rig.atMs.every((ms, i) => i === 0 || ms - rig.atMs[i - 1] === 1), `${rig.atMs}`);
  });
});

describe("TerminalError", () => {
  it("ends the tries as the cause of another error, too", async () => {
    await using rig = startWith(() => {
      throw new Error("cannot make the Widget", { cause: new TerminalError("no such color") });
    });
    await rig.until(() => rig.atMs.length === 1);
    await rig.clock.advance(600_000);
    assert.equal(rig.atMs.length, 1);
    assert.match(
      problems(rig)[0],
      /^error Cannot reconcile shop\/a, and waits for its next change: cannot make/,
    );
  });
});

describe("Manager.run, of a reconcile that throws what is no error", () => {
  const thrown: Readonly<Record<string, unknown>> = {
    undefined: undefined,
    null: null,
    text: "no",
    "an object without a prototype": Object.create(null),
    "a symbol": Symbol("no"),
    "an object whose text throws": {
      toString: () => {
        throw new Error("no text");
      },
    },
    "an error whose message is no text": Object.assign(new Error(), { message: 5 }),
  };
  for (const [what, value] of Object.entries(thrown)) {
    it(`tries again after ${what}`, async () => {
      await using rig = startWith((times) => {
        if (times === 0) throw value;
      });
      await rig.until(() => rig.atMs.length === 2);
      assert.equal(problems(rig).length, 1);
    });
  }
});

describe("Watched.keys", () => {
  for (
    const [resource, object, wrong, form] of [
      [WIDGETS, widget("a", "red"), "a", "namespace/name"],
      ["v1/nodes", { metadata: { name: "a" } }, "shop/a", "the name alone"],
    ] as const
  ) {
    it(`reports once a key that can be no object's of ${resource}`, async () => {
      const reconciled: string[] = [];
      await using rig = startRig((cluster) =>
        defineController({
          name: "things",
          for: cluster.resource(resource),
          watches: {
            secrets: { resource: cluster.resource("v1/secrets"), keys: () => [wrong, "absent", "x/absent"] },
          },
          reconcile: (_, { key }) => void reconciled.push(key),
        })
      );
      rig.server.create(resource, object);
      for (const name of ["b", "c"]) {
        rig.server.create("v1/secrets", { metadata: { name, namespace: "shop" } });
      }
      await rig.clock.advance(1_000);
      const lines = rig.lines.filter((line) => !line.startsWith("info"));
      assert.deepEqual(lines, [`warn ${wrong} is no key of ${resource}: write ${form}`]);
      assert.equal(reconciled.length, 1);
    });
  }

  it("reports one after the last object was deleted, by the form of those that were there", async () => {
    await using rig = startRig((cluster) =>
      defineController({
        name: "things",
        for: cluster.resource(WIDGETS),
        watches: {
          secrets: {
            resource: cluster.resource<KubernetesObject>("v1/secrets"),
            keys: ({ metadata }) => [metadata!.name === "first" ? "shop/absent" : "a"],
          },
        },
        reconcile: () => {},
      })
    );
    const addSecret = (name: string) =>
      rig.server.create("v1/secrets", { metadata: { name, namespace: "shop" } });
    rig.server.create(WIDGETS, widget("a", "red"));
    addSecret("first");
    await rig.clock.advance(1_000);
    rig.server.delete(WIDGETS, "shop/a");
    await rig.clock.advance(1_000);
    addSecret("second");
    await rig.clock.advance(1_000);
    assert.match(rig.lines.at(-1) ?? "", /^warn a is no key of /);
  });
});
