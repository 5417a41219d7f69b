import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { consoleLogger, type Logger, silentLogger } from "@listwatch/cache";
import { guardedLogger, limitedLogger, logsThrown, News } from "../../src/util/logger.ts";
import { guardedMetrics } from "../../src/util/metrics.ts";

it("consoleLogger escapes control characters in names, and cuts long messages", () => {
  const written: unknown[][] = [];
  const { warn, error } = console;
  try {
    console.warn = console.error = (...values: unknown[]) => void written.push(values);
    consoleLogger.warn("pods: cannot list a\u202eb\x1b[2J", { resource: "pods" });
    consoleLogger.error("x".repeat(100_000));
    consoleLogger.debug("no one asked");
    consoleLogger.info("nor for this");
  } finally {
    Object.assign(console, { warn, error });
  }
  assert.deepEqual(written[0], ["pods: cannot list a\\u202eb\\x1b[2J", { resource: "pods" }]);
  assert.deepEqual([String(written[1][0]).length, written[1].length], [8192, 1]);
  assert.equal(written.length, 2);
});

/** Calls what writes to the console, and returns what was written. */
async function writtenBy(call: () => void): Promise<string[]> {
  const written: string[] = [];
  const { warn, error } = console;
  try {
    console.warn = console.error = (text: string) => void written.push(text);
    call();
    for (let i = 0; i < 3; i++) await Promise.resolve();
  } finally {
    Object.assign(console, { warn, error });
  }
  return written;
}

describe("guardedLogger", () => {
  it("writes to the console that a logger threw, at once or later, and only the first time", async () => {
    for (
      const how of [() => Promise.reject(new Error("full")), () => {
        throw new Error("full");
      }]
    ) {
      const logger = guardedLogger({ ...silentLogger, warn: how });
      const written = await writtenBy(() => {
        logger.warn("a");
        logger.warn("b");
      });
      assert.deepEqual(written, ["Cannot log: the logger threw: full; later failures are not logged"]);
    }
  });

  it("guards a logger once, and the console's needs none", () => {
    const logger = guardedLogger(silentLogger);
    assert.equal(guardedLogger(logger), logger);
    assert.equal(guardedLogger(undefined), consoleLogger);
  });
});

describe("guardedMetrics", () => {
  it("logs the first failure of an object of the user, and ends nothing", () => {
    const lines: string[] = [];
    const fail = () => {
      throw new Error("full");
    };
    const logger = { ...silentLogger, error: (text: string) => void lines.push(text) };
    const metrics = guardedMetrics({ count: fail, gauge: fail, observe: fail }, logger);
    metrics.count("a", 1, {});
    metrics.gauge("a", 1, {});
    metrics.observe("a", 1, {});
    assert.deepEqual(lines, [
      "Cannot measure: the metrics object threw: full; later failures are not logged",
    ]);
    assert.equal(guardedMetrics(metrics, logger), metrics);
  });

  it("passes everything on, and guards nothing where there is nothing", () => {
    const calls: unknown[] = [];
    const metrics = guardedMetrics({
      count: (...args: unknown[]) => void calls.push(["count", ...args]),
      gauge: (...args: unknown[]) => void calls.push(["gauge", ...args]),
      observe: (...args: unknown[]) => void calls.push(["observe", ...args]),
    }, silentLogger);
    metrics.count("a", 1, { b: "c" });
    metrics.gauge("d", 2, {});
    metrics.observe("e", 3, {});
    assert.deepEqual(calls, [["count", "a", 1, { b: "c" }], ["gauge", "d", 2, {}], ["observe", "e", 3, {}]]);
    assert.equal(guardedMetrics(undefined, silentLogger), undefined);
  });
});

describe("logsThrown", () => {
  it("says which function threw, of which name, and has the fields and the error", () => {
    const lines: unknown[][] = [];
    const logger: Logger = { ...silentLogger, error: (...values) => void lines.push(values) };
    const error = new Error("no");
    logsThrown({ logger, name: "pods" }, "a handler", { key: "a" })(error);
    assert.deepEqual(lines, [["pods: a handler threw: no", { key: "a", error }]]);
  });
});

describe("News", () => {
  it("are texts that were not said, a hundred at most, until all of them are news again", () => {
    const news = new News();
    assert.deepEqual([news.isNew("a"), news.isNew("a")], [true, false]);
    for (let i = 1; i < 100; i++) assert.ok(news.isNew(`${i}`));
    assert.equal(news.isNew("one more"), false);
    news.forget();
    assert.ok(news.isNew("a"));
  });
});

describe("limitedLogger", () => {
  it("passes ten lines a minute on, and says with the next one how many there were besides", () => {
    let nowMs = 5_000;
    const lines: string[] = [];
    const log: Logger["warn"] = (text) => void lines.push(text);
    const logger = limitedLogger({ warn: log, error: log }, () => nowMs);
    for (let i = 0; i < 13; i++) logger[i % 2 === 0 ? "warn" : "error"](`${i}`);
    assert.deepEqual(lines, Array.from({ length: 10 }, (_, i) => `${i}`));
    nowMs += 59_999;
    logger.warn("still the same minute");
    assert.equal(lines.length, 10);
    nowMs += 1;
    logger.warn("next");
    logger.warn("and one more");
    assert.deepEqual(lines.slice(10), [
      "next (and 4 failures of requests before, which were not logged)",
      "and one more",
    ]);
  });
});
