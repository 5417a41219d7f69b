import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Fault, FAULTS } from "./scenario.ts";
import { describeFailure, simulateSeed } from "./simulate.ts";

const SEEDS = 2_000;

/** Each found a defect once, of the library or of the judge; some in a world with these faults only. */
const FOUND: readonly { readonly seed: number; readonly only?: readonly Fault[] }[] = [
  { seed: 328126958 },
  { seed: 15918961 },
  { seed: 15917443 },
  { seed: 32749706 },
  { seed: 263529593 },
  { seed: 263531253 },
  { seed: 263546545 },
  { seed: 141677726 },
  { seed: 141679248 },
  { seed: 410201672 },
  { seed: 410202730 },
  { seed: 410204130 },
  { seed: 410204676 },
  { seed: 287648723 },
  { seed: 688083752 },
  { seed: 5327 },
  { seed: 7700454 },
  { seed: 287652596 },
  { seed: 9008 },
  { seed: 1008840910 },
  { seed: 9087 },
  { seed: 810276249 },
  { seed: 297571102 },
  { seed: 297572208 },
  { seed: 913967219 },
  { seed: 276461376 },
  { seed: 276462810 },
  { seed: 276463096 },
  { seed: 906994097 },
  { seed: 555002404 },
  { seed: 731218599 },
  { seed: 501704710 },
  { seed: 766056735 },
  { seed: 11205530, only: ["garbage", "restart", "noInitialEvents", "whim", "cutStream"] },
  { seed: 5673600, only: ["cut", "compact", "lag", "restart", "clock"] },
  {
    seed: 10573164,
    only: ["cut", "garbage", "expire", "noInitialEvents", "flaw", "whim", "clock"],
  },
  { seed: 895885748 },
  { seed: 31000559 },
];

describe("simulateSeed", () => {
  it("ends well for the seeds that found something once", async () => {
    for (const { seed, only } of FOUND) {
      const result = await simulateSeed(seed, only && { faults: only });
      const limited = only === undefined ? "" : ` --only ${only.join(",")}`;
      const command = `deno task simulate --seeds 1 --from ${seed}${limited} --trace`;
      assert.equal(result.violations.length, 0, describeFailure(result, command));
    }
  });

  it(`ends well for each of ${SEEDS} seeds`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulateSeed(seed);
      const command = `deno task simulate --seeds 1 --from ${seed} --trace`;
      assert.equal(result.violations.length, 0, describeFailure(result, command));
    }
  });

  it("is the same world whenever its seed is the same", async () => {
    for (const seed of [1, 17, 401]) {
      const first = await simulateSeed(seed, { trace: true });
      const second = await simulateSeed(seed, { trace: true });
      assert.ok(first.trace.length > 20);
      assert.deepEqual(second.trace, first.trace);
    }
  });

  it("draws no random number that its seed does not decide", async () => {
    const { random } = Math;
    Math.random = () => assert.fail("a world has drawn a number of Math.random");
    try {
      for (let seed = 1; seed <= 20; seed++) await simulateSeed(seed);
    } finally {
      Math.random = random;
    }
  });

  it("has every kind of fault in some of the first 200 seeds", async () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      for (const fault of (await simulateSeed(seed)).scenario.faults) seen.add(fault);
    }
    assert.deepEqual([...seen].sort(), [...FAULTS].sort());
  });
});
