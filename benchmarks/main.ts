/**
 * `deno task bench`: how long this library and its peers take to sync, how many events they take in, and how much
 * memory they need; in one run on one machine, so that the ratios mean something.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { installTools } from "../scripts/lib/tools.ts";
import { type Entrant, entrants, type Peers } from "./lib/contestants.ts";
import type { Measurement, Phase } from "./lib/measurement.ts";
import { buildPrograms } from "./lib/programs.ts";
import { runJob, startServer } from "./lib/rounds.ts";
import { digits, medianOf } from "./lib/statistics.ts";
import { markdownTable } from "./lib/table.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    sizes: { type: "string", default: "20k" },
    rounds: { type: "string", default: "5" },
    peers: { type: "string", default: "node" },
    only: { type: "string" },
    events: { type: "string", default: "50000" },
    framing: { type: "string", default: "event" },
  },
});
const log = (line: string) => console.error(line);
const tools = await installTools(log);
const peers = values.peers as Peers;
await using programs = await buildPrograms(tools, peers, log);
const only = values.only?.split(",");
const chosen = entrants(peers).filter(({ id }) => !only || only.some((word) => id.includes(word)));
for (const size of values.sizes.split(",")) {
  const objects = Number(size.replace(/k$/, "")) * (size.endsWith("k") ? 1000 : 1);
  await using server = await startServer(tools, {
    objects,
    events: Number(values.events),
    framing: values.framing,
  });
  const runs = new Map<Entrant, Measurement[]>(chosen.map((entrant) => [entrant, []]));
  const phases: Phase[] = ["sync", "heap", "index", "burst"];
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const entrant of chosen) {
      const measured = await runJob({ entrant, phases }, server, tools, programs);
      log(`${entrant.id} ${JSON.stringify(measured)}`);
      runs.get(entrant)!.push(measured);
    }
  }
  const show = (value: number | undefined, scale = 1) => value === undefined ? "-" : digits(value / scale);
  console.log(markdownTable(
    ["", "sync, s", "events/s", "peak RSS, MB", "heap/object, KB", "objects/us", "longest task, ms"],
    [...runs].map(([{ label }, list]) => [
      label,
      show(medianOf(list, (run) => run.syncMs), 1000),
      show(medianOf(list, (run) => run.burstMs && (run.burstEvents! - 1) / run.burstMs * 1000)),
      show(medianOf(list, (run) => run.syncRssBytes), 2 ** 20),
      show(medianOf(list, (run) => run.settledBytes && run.settledBytes / run.stored!), 1000),
      show(medianOf(list, (run) => run.nodeLookupsPerUs)),
      show(medianOf(list, (run) => run.longestTaskMs)),
    ]),
  ));
}
