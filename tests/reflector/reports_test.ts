import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Logger, silentLogger } from "@listwatch/cache";
import { settingsOf } from "../../src/reflector/reflector_options.ts";
import { ReflectorReports } from "../../src/reflector/reports.ts";

function newReports() {
  const lines: string[] = [];
  const note = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { ...silentLogger, debug: note("debug"), warn: note("warn") };
  return { lines, reports: new ReflectorReports(settingsOf("pods", { logger }, {})) };
}

describe("ReflectorReports.log", () => {
  it("warns once of what is said once, and again when a watch was well in between", () => {
    const { lines, reports } = newReports();
    for (let i = 0; i < 2; i++) reports.log({ level: "warn", text: "watch ended: odd", once: true });
    reports.forgetWarnings();
    reports.log({ level: "warn", text: "watch ended: odd", once: true });
    for (let i = 0; i < 2; i++) reports.log({ level: "warn", text: "listing" });
    assert.deepEqual(lines.map((line) => line.replace(/ \{.*/, "")), [
      "warn pods: watch ended: odd",
      "debug pods: watch ended: odd",
      "warn pods: watch ended: odd",
      "warn pods: listing",
      "warn pods: listing",
    ]);
  });

  it("flags the lines of an outage, which a program may show in another way", () => {
    const { lines, reports } = newReports();
    reports.log({ level: "warn", text: "lost the server", isOutage: true });
    reports.log({ level: "warn", text: "listing" });
    assert.deepEqual(lines, [
      'warn pods: lost the server {"reflector":"pods","isOutage":true}',
      'warn pods: listing {"reflector":"pods"}',
    ]);
  });
});
