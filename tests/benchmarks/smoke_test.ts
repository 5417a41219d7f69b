import assert from "node:assert/strict";
import { it } from "node:test";
import { entrants } from "../../benchmarks/lib/contestants.ts";
import { runJob, startServer } from "../../benchmarks/lib/rounds.ts";
import { installTools } from "../../scripts/lib/tools.ts";

it("runJob runs the bare loop and our own contestants against the server", async () => {
  const tools = await installTools();
  await using server = await startServer(tools, { objects: 50, events: 100, framing: "event" });
  const programs = { bundles: "not needed on Deno", [Symbol.asyncDispose]: () => Promise.resolve() };
  for (const id of ["bare-deno", "listwatch-deno-all", "listwatch-deno-default", "listwatch-deno-encoded"]) {
    const entrant = entrants("none").find((entrant) => entrant.id === id)!;
    const isOurs = entrant.library === "listwatch";
    const phases = isOurs ? ["sync", "heap", "relist", "burst"] as const : ["sync", "burst"] as const;
    const measured = await runJob({ entrant, phases }, server, tools, programs);
    assert.equal(measured.skipped, undefined, id);
    assert.equal(measured.stored, 50, id);
    assert.equal(measured.burstEvents, 100, id);
    assert.ok(measured.syncMs! > 0 && measured.syncRssBytes! > 1e6, id);
    if (isOurs) assert.ok(measured.settledBytes! > 0, id);
    if (isOurs) assert.ok(measured.relistPeakBytes! > 0 && measured.relistSamples! >= 2, id);
    if (isOurs && entrant.variant !== "encoded") assert.equal(measured.relistKeepsIdentity, true, id);
  }
});
