import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestsOf } from "../../benchmarks/controllers/audit.ts";
import { controllersReport, type RunFigures } from "../../benchmarks/controllers/report.ts";

/** A line of an audit log; `at` in milliseconds, answered two later. */
function line(
  verb: string,
  what: string,
  at: number,
  more: { name?: string; code?: number; stage?: string } = {},
) {
  const [resource, subresource] = what.split("/");
  const time = (ms: number) => new Date(ms).toISOString().replace("Z", "500Z");
  return JSON.stringify({
    stage: more.stage ?? (verb === "watch" ? "ResponseStarted" : "ResponseComplete"),
    verb,
    requestReceivedTimestamp: time(at),
    stageTimestamp: time(at + 2),
    ...(what !== "" &&
      { objectRef: { resource, ...(subresource && { subresource }), name: more.name ?? "w1" } }),
    responseStatus: { code: more.code ?? 200 },
  });
}

describe("requestsOf", () => {
  it("counts reads and writes by what they are about, and a watch once, when it begins", () => {
    const { reads, writes, byKind } = requestsOf([
      line("get", "", 0),
      line("watch", "widgets", 0, { stage: "ResponseStarted" }),
      line("watch", "widgets", 0, { stage: "ResponseComplete" }),
      line("patch", "widgets/status", 1),
      line("create", "configmaps", 1),
      "",
    ].join("\n"));
    assert.deepEqual([reads, writes], [2, 2]);
    assert.deepEqual(byKind, {
      "other get": 1,
      "widgets watch": 1,
      "widgets/status patch": 1,
      "configmaps create": 1,
    });
  });

  it("takes the time from the first write to the last status that was accepted", () => {
    const { workMs, withStatus, failed } = requestsOf([
      line("watch", "widgets", 0),
      line("patch", "widgets", 100),
      line("patch", "widgets/status", 150, { name: "w1" }),
      line("patch", "widgets/status", 160, { name: "w2", code: 409 }),
      line("patch", "widgets/status", 198, { name: "w2" }),
      line("patch", "widgets/status", 199, { name: "w2", code: 409 }),
      line("create", "events", 500),
    ].join("\n"));
    assert.equal(Math.round(workMs!), 100);
    assert.equal(withStatus, 2);
    assert.deepEqual(failed, { 409: 2 });
    assert.equal(requestsOf(line("watch", "widgets", 0)).workMs, undefined);
  });
});

describe("controllersReport", () => {
  const run = (log: readonly string[]): RunFigures => ({
    reconciledMs: 500,
    rssBytes: 50e6,
    peakRssBytes: 60e6,
    cpuMs: 40,
    requests: requestsOf(log.join("\n")),
  });
  const written = [line("patch", "widgets", 0), line("patch", "widgets/status", 98, { name: "w1" })];

  it("compares with ours, and says who did not finish", () => {
    const report = controllersReport(1, [
      { label: "ours", isOurs: true, work: [run(written)], starts: [run([line("watch", "widgets", 0)])] },
      {
        label: "another",
        isOurs: false,
        work: [run([...written, line("patch", "widgets/status", 100), line("get", "secrets", 100)])],
        starts: [run([line("update", "leases", 0)])],
      },
      { label: "a third", isOurs: false, work: [run([])], starts: [run([])] },
    ]);
    const cells = report.split("\n").map((row) => row.split("|").map((cell) => cell.trim()).join("|"));
    assert.ok(cells.includes("|ours|0.50|1.00|1.00|0|0.040|50.0|60.0|"), report);
    assert.ok(cells.includes("|another|0.50|1.00|0|1.00|0.040|50.0|60.0|"), report);
    assert.ok(cells.includes("|ours|10.0|1.00|40.0|2.00|1.00|0|50.0|60.0|"), report);
    assert.ok(cells.includes("|another|9.80|0.98|40.0|4.00|2.00|0|50.0|60.0|"), report);
    assert.ok(cells.includes("|another|1.00 patch|0|2.00 patch|0|0|3.00|"), report);
    assert.match(report, /a third did not give every Widget a status: its figures are not comparable/);
    assert.doesNotMatch(report, /another did not/);
  });
});
