import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readOptions } from "../../benchmarks/lib/options.ts";

describe("readOptions", () => {
  it("measures three sizes in five rounds beside client-node, and writes the results", () => {
    const options = readOptions([]);
    assert.deepEqual(options.sizes, [1_000, 20_000, 100_000]);
    assert.equal(options.rounds, 5);
    assert.equal(options.peers, "node");
    assert.equal(options.out, "benchmarks/TABLES.md");
  });

  it("takes other sizes for the growth", () => {
    assert.deepEqual(readOptions(["--growth"]).sizes, [1_000, 10_000, 100_000, 300_000]);
    assert.deepEqual(readOptions(["--growth", "--sizes", "500,2k"]).sizes, [500, 2_000]);
  });

  it("looks where the time goes with one size", () => {
    const options = readOptions(["--profile"]);
    assert.deepEqual([options.mode, options.sizes], ["profile", [20_000]]);
    assert.equal(options.out, undefined);
    assert.match(options.whyNotWritten ?? "", /--profile is for who works on the library/);
  });

  it("looks for the longest turn with 100,000 objects", () => {
    const options = readOptions(["--tasks"]);
    assert.deepEqual([options.mode, options.sizes], ["tasks", [100_000]]);
    assert.throws(() => readOptions(["--tasks", "--growth"]), /--growth and --tasks: give one of them/);
  });

  it("measures the start in fifteen rounds", () => {
    const options = readOptions(["--start"]);
    assert.deepEqual([options.mode, options.rounds, options.out], ["start", 15, "benchmarks/TABLES.md"]);
    assert.match(readOptions(["--start", "--rounds", "14"]).whyNotWritten ?? "", /fewer than 15 rounds/);
  });

  it("compares controllers in three rounds beside Go and Rust", () => {
    const options = readOptions(["--controllers"]);
    assert.deepEqual([options.mode, options.sizes, options.rounds], ["controllers", [10_000], 3]);
    assert.deepEqual([options.peers, options.out], ["all", "benchmarks/TABLES.md"]);
    assert.match(
      readOptions(["--controllers", "--rounds", "2"]).whyNotWritten ?? "",
      /fewer than three rounds/,
    );
  });

  const partial: [args: string[], why: RegExp][] = [
    [["--rounds", "4"], /fewer than five rounds/],
    [["--only", "bare"], /--only/],
    [["--peers", "none"], /--peers none/],
    [["--controllers", "--sizes", "1k"], /--sizes other than 10k/],
  ];
  for (const [args, why] of partial) {
    it(`keeps what ${args.join(" ")} measures out of the results, unless a file is named`, () => {
      const options = readOptions(args);
      assert.equal(options.out, undefined);
      assert.match(options.whyNotWritten ?? "", why);
      assert.equal(readOptions([...args, "--out", "x.md"]).out, "x.md");
    });
  }

  const wrong: [args: string[], message: RegExp][] = [
    [["--sizes", "many"], /--sizes many: give numbers/],
    [["--sizes", "0"], /--sizes 0/],
    [["--rounds", "0"], /--rounds 0: give a number of 1 or more/],
    [["--peers", "go"], /--peers go: there are none, node, all/],
    [["--million", "--drop"], /--million and --drop: give one of them/],
    [["--framing", "line"], /--framing line: there are event, block/],
    [["--round", "3"], /--round/],
    [["--growth", "--profile"], /--growth and --profile: give one of them/],
  ];
  for (const [args, message] of wrong) {
    it(`refuses ${args.join(" ")}`, () => {
      assert.throws(() => readOptions(args), message);
    });
  }
});
