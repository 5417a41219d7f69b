/**
 * `deno task abuse [SECONDS] [--only deno|node] [--attack TEXT]`: what strangers and ill-behaved readers can do to `serve`. For a minute
 * they pipeline, send byte by byte, never read, flood random tokens and search the page, all at once, on each runtime.
 *
 * Exit code 1: `/healthz` takes 100 ms or more (99th percentile), an answer to a good reader fails, or memory is 150 MB or
 * more above what it was before.
 *
 * @module
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildNpm, copyTree, NPM_DIST } from "./build_npm.ts";
import { type Listwatch, measureAbuse, quantile } from "./lib/abuse.ts";
import { ROOT } from "./lib/gate.ts";
import { installTools } from "./lib/tools.ts";

const MOST_MS = 100;
const MOST_MEMORY = 150;

const { values: { only, attack }, positionals: [seconds = "60"] } = parseArgs({
  args: Deno.args,
  options: { only: { type: "string" }, attack: { type: "string" } },
  allowPositionals: true,
});

async function programs(): Promise<Listwatch[]> {
  const all: Listwatch[] = [];
  if (only !== "node") {
    const args = ["run", "-A", "--no-check", join(ROOT, "src/cli/main.ts")];
    all.push({ name: "Deno", command: Deno.execPath(), args });
  }
  if (only !== "deno") {
    const { node, dir } = await installTools();
    await buildNpm();
    // Where its dependencies are found.
    const installed = join(dir, "node_modules", "@listwatch", "cache");
    await Deno.remove(installed, { recursive: true }).catch(() => {});
    await copyTree(NPM_DIST, installed);
    const args = [join(installed, "bin", "listwatch.js")];
    all.push({ name: "Node", command: node, args });
  }
  return all;
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
const mb = (value: number) => `${value.toFixed(0)} MB`;

let isMissed = false;
for (const program of await programs()) {
  const { before, during, lists, attacks, ...figures } = await measureAbuse(program, {
    seconds: Number(seconds),
    attack,
  });
  const { failures, memoryBefore, memoryPeak, memoryAfter } = figures;
  const p99 = quantile(during, 0.99);
  console.log(`${program.name}, ${seconds} s`);
  for (const [kind, count] of Object.entries(attacks)) console.log(`  ${kind.padEnd(32)}${count}`);
  for (
    const [name, times] of [["/healthz alone", before], ["/healthz", during], ["list of 500", lists]] as const
  ) {
    const [p50, worst] = [quantile(times, 0.5), quantile(times, 1)];
    console.log(
      `  ${name.padEnd(32)}p50 ${ms(p50)}, p99 ${ms(quantile(times, 0.99))}, worst ${
        ms(worst)
      } of ${times.length}`,
    );
  }
  console.log(`  ${"failed answers".padEnd(32)}${failures}`);
  console.log(
    `  ${"memory".padEnd(32)}${mb(memoryBefore)} before, ${mb(memoryPeak)} peak, ${mb(memoryAfter)} after`,
  );
  isMissed ||= !(p99 < MOST_MS) || failures > 0 || memoryAfter - memoryBefore >= MOST_MEMORY;
}
Deno.exit(isMissed ? 1 : 0);
