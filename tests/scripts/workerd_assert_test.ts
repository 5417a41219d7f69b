import node from "node:assert/strict";
import { describe, it } from "node:test";
import * as web from "../runtimes/workerd/assert.ts";

/** Whether each call throws. */
function verdicts(
  call: (assert: typeof web) => void,
): [web: boolean, node: boolean] {
  const throws = (assert: unknown): boolean => {
    try {
      call(assert as typeof web);
      return false;
    } catch {
      return true;
    }
  };
  return [throws(web), throws(node)];
}

class Point {
  constructor(readonly x: number) {}
}

const cyclic = (): object => {
  const object: Record<string, unknown> = { name: "a" };
  object.self = object;
  return object;
};

const SYMBOL = Symbol("key");

/** Pairwise compared with each other, and with equal copies. */
const values = (): unknown[] => [
  0,
  -0,
  NaN,
  1,
  "1",
  1n,
  null,
  undefined,
  true,
  "",
  [],
  [1, [2]],
  [undefined],
  // deno-lint-ignore no-sparse-arrays
  [,],
  {},
  { a: 1 },
  { a: undefined },
  { a: 1, b: { c: [1, 2] } },
  { [SYMBOL]: 1 },
  Object.create(null),
  new Point(1),
  new Point(2),
  { x: 1 },
  new Map<unknown, unknown>([["a", { b: 1 }]]),
  new Map<unknown, unknown>([[{ k: 1 }, 1]]),
  new Set<unknown>([1, { a: 1 }]),
  new Set<unknown>([{ a: 1 }, 1]),
  new Date(0),
  new Date(1),
  /a/g,
  /a/,
  new Error("a"),
  new TypeError("a"),
  new Uint8Array([1, 2]),
  new Uint8Array([1, 3]),
  cyclic(),
];

describe("tests/runtimes/workerd/assert.ts", () => {
  it("compares as node:assert/strict does", () => {
    for (const [i, a] of values().entries()) {
      for (const [j, b] of values().entries()) {
        for (
          const name of [
            "deepEqual",
            "notDeepEqual",
            "equal",
            "notEqual",
          ] as const
        ) {
          const [ours, theirs] = verdicts((assert) => assert[name](a, b));
          node.equal(
            ours,
            theirs,
            `${name} of values ${i} and ${j}: throws ${ours}, Node's ${theirs}`,
          );
        }
      }
    }
  });

  it("matches texts and checks truth as node:assert/strict does", () => {
    for (const value of values()) {
      const [ours, theirs] = verdicts((assert) => assert.ok(value));
      node.equal(ours, theirs);
    }
    for (const text of ["", "abc", "xyz"]) {
      for (const name of ["match", "doesNotMatch"] as const) {
        const [ours, theirs] = verdicts((assert) => assert[name](text, /b/));
        node.equal(ours, theirs, `${name} ${text}`);
      }
    }
  });

  const expectations: [string, unknown][] = [
    ["nothing", undefined],
    ["a pattern that fits", /no such/],
    ["a pattern that does not fit", /other/],
    ["its class", TypeError],
    ["its base class", Error],
    ["another class", RangeError],
    ["a check that agrees", () => true],
    ["a check that disagrees", () => false],
    ["properties that fit", { name: "TypeError", message: /no such/ }],
    ["a property that does not fit", { message: "other" }],
    ["a missing property", { code: "E" }],
    ["an equal error", new TypeError("no such thing")],
    ["another error", new TypeError("other")],
  ];
  for (const [what, expected] of expectations) {
    it(`checks a thrown error by ${what} as node:assert/strict does`, async () => {
      const error = () => {
        throw new TypeError("no such thing");
      };
      const [ours, theirs] = verdicts((assert) => assert.throws(error, expected as RegExp));
      node.equal(ours, theirs);
      const rejects = (assert: typeof web) =>
        assert.rejects(() => Promise.resolve().then(error), expected as RegExp)
          .then(() => false, () => true);
      node.equal(
        await rejects(web),
        await rejects(node as unknown as typeof web),
      );
    });
  }

  it("fails when nothing is thrown or rejected", async () => {
    node.deepEqual(verdicts((assert) => assert.throws(() => {})), [true, true]);
    await node.rejects(
      web.rejects(() => Promise.resolve()),
      web.AssertionError,
    );
    node.throws(() => web.fail("why"), /why/);
  });
});
