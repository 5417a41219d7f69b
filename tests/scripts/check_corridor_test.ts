import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openings } from "../../scripts/check_corridor.ts";

const A = "src/queue/a.ts";
const B = "src/store/b.ts";
const C = "src/store/c.ts";

describe("openings", () => {
  it("counts calls from one file into another, in order", () => {
    assert.deepEqual(openings([{ path: A }, { path: B, caller: A }, { path: C, caller: B }]), [A, B, C]);
  });

  it("takes calls within a file, and returns to it, for none", () => {
    assert.deepEqual(
      openings([{ path: A }, { path: A, caller: A }, { path: B, caller: A }, { path: A, caller: A }]),
      [A, B],
    );
  });

  it("takes calls into the same file, one after the other, for one", () => {
    assert.deepEqual(openings([{ path: A }, { path: B, caller: A }, { path: B, caller: A }]), [A, B]);
  });

  it("counts a file again when something else was opened in between", () => {
    assert.deepEqual(
      openings([{ path: A }, { path: B, caller: A }, { path: C, caller: A }, { path: B, caller: A }]),
      [A, B, C, B],
    );
  });

  it("counts a file that continues after something else ran", () => {
    assert.deepEqual(openings([{ path: A }, { path: B }, { path: A }]), [A, B, A]);
  });

  it("counts meta, and util only on request", () => {
    const trace = [{ path: A }, { path: "src/util/collections.ts", caller: A }, {
      path: "src/meta/object.ts",
      caller: A,
    }];
    assert.deepEqual(openings(trace), [A, "src/meta/object.ts"]);
    assert.deepEqual(openings(trace, true), [A, "src/util/collections.ts", "src/meta/object.ts"]);
  });
});
