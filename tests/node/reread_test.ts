import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { Reread } from "../../src/node/reread.ts";
import { LogRecorder } from "../log_recorder.ts";

describe("Reread", () => {
  it("warns once of each failure in a row, and again after a success", async () => {
    const clock = new FakeClock();
    const logger = new LogRecorder();
    const answers = ["a", new Error("no file"), new Error("no file"), "b", new Error("no file")];
    const token = new Reread(() => {
      const answer = answers.shift()!;
      return typeof answer === "string" ? Promise.resolve(answer) : Promise.reject(answer);
    }, { what: "token", clock, logger });
    const read: string[] = [];
    while (answers.length > 0) {
      read.push(await token.read());
      await clock.advance(60_000);
    }
    assert.deepEqual(read, ["a", "a", "a", "b", "b"]);
    const warning = "warn: no file; the last token stays in use";
    assert.deepEqual(logger.lines, [warning, warning]);
  });

  it("reads after a minute, once for all that ask meanwhile, and at once what was refused", async () => {
    const clock = new FakeClock();
    let reads = 0;
    const options = { what: "token", clock, logger: new LogRecorder() };
    const token = new Reread(() => Promise.resolve(`token-${++reads}`), options);
    assert.deepEqual(await Promise.all([token.read(), token.read()]), ["token-1", "token-1"]);
    await clock.advance(59_999);
    assert.equal(await token.read(), "token-1");
    await clock.advance(1);
    assert.equal(await token.read(), "token-2");
    token.forget("token-1");
    assert.equal(await token.read(), "token-2", "another one was refused");
    token.forget("token-2");
    assert.equal(await token.read(), "token-3");
  });

  it("takes a fresh value for read, and throws where there is none yet", async () => {
    const options = { what: "token", clock: new FakeClock(), logger: new LogRecorder() };
    const load = () => Promise.reject(new Error("no file"));
    assert.equal(await new Reread(load, { ...options, value: "given", isFresh: true }).read(), "given");
    await assert.rejects(new Reread(load, options).read(), /no file/);
    assert.deepEqual(options.logger.lines, []);
    assert.equal(await new Reread(load, { ...options, value: "given" }).read(), "given");
    assert.equal(options.logger.lines.length, 1);
  });
});
