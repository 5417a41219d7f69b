/**
 * `deno task abuse [SECONDS] [--only deno|node] [--attack TEXT]`: what unauthenticated and
 * misbehaving clients can do to `serve`. For a minute they pipeline, send byte by byte, never
 * read, flood random tokens and search the page, all at once, on each runtime; for another minute they open
 * windows, each of an order of its own. The times of `/healthz` are shown beside those of a server without
 * attackers, which are the machine's; the attackers are nicer processes, as elsewhere they have machines of
 * their own.
 *
 * Exit code 1: `/healthz` takes 100 ms or more (99th percentile), a good reader's list of 500 takes 2 s or
 * more (likewise), an answer to a good reader fails, or memory is 150 MB or more above what it was before;
 * with orders also above what `serve` may keep for readers and the garbage that V8 lets grow beside that.
 *
 * @module
 */

import { join } from "node:path";
import { buildNpm, copyTree, NPM_DIST } from "./build_npm.ts";
import { BIN_ENV, BIN_FLAGS } from "./npm_package.ts";
import { type Listwatch, measureAbuse, quantile } from "./lib/abuse.ts";
import { ROOT } from "./lib/gate.ts";
import { taskArguments, usage } from "./lib/task_usage.ts";
import { installTools } from "./lib/tools.ts";

// The flags of `deno task start`: without them, Deno's V8 lets garbage grow to three times the held memory.
const START_FLAGS = `--v8-flags=--heap-growing-percent=30,${BIN_FLAGS}`;
const MOST_MS = 100;
const MOST_LIST_MS = 2_000;
const MOST_MEMORY = 150;
// `maxReaderBytes` of serve, and as much garbage.
const MOST_KEPT = 2 * 256;
const ORDERS = "distinct orders";

const USAGE = usage({
  task: "abuse",
  takes: "[SECONDS]",
  does:
    "What unauthenticated and misbehaving clients can do to `serve`, for 60 seconds or as many as are given, and again with orders.",
  options: {
    "--only deno|node": "on this runtime and no other",
    "--attack TEXT": "only attacks with this text in their name",
  },
});
const { values: { only, attack }, positionals: [seconds = "60"] } = taskArguments(USAGE, {
  only: { type: "string" },
  attack: { type: "string" },
});
if (!(Number(seconds) > 0)) {
  console.error(`SECONDS is a number above 0, and not ${JSON.stringify(seconds)}\n\n${USAGE}`);
  Deno.exit(2);
}

async function programs(): Promise<Listwatch[]> {
  const all: Listwatch[] = [];
  if (only !== "node") {
    all.push({
      name: "Deno",
      command: Deno.execPath(),
      preload: (path) => ["run", "-A", START_FLAGS, "--no-check", "--preload", path],
      program: join(ROOT, "src/cli/main.ts"),
    });
  }
  if (only !== "deno") {
    const { node, dir } = await installTools();
    await buildNpm();
    // Where its dependencies are found.
    const installed = join(dir, "node_modules", "@listwatch", "cache");
    await Deno.remove(installed, { recursive: true }).catch(() => {});
    await copyTree(NPM_DIST, installed);
    all.push({
      name: "Node",
      command: node,
      env: BIN_ENV,
      preload: (path) => [...BIN_FLAGS, "--import", path],
      program: join(installed, "bin", "listwatch.js"),
    });
  }
  return all;
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
const mb = (value: number) => `${value.toFixed(0)} MB`;

const rounds = attack === undefined
  ? [{ except: ORDERS, most: MOST_MEMORY }, { attack: ORDERS, most: MOST_MEMORY + MOST_KEPT }]
  : [{ attack, most: MOST_MEMORY + MOST_KEPT }];
const all = (await programs()).flatMap((program) => rounds.map((round) => ({ program, round })));
let isMissed = false;
for (const { program, round } of all) {
  const options = { seconds: Number(seconds), ...round };
  const { before, during, delays, attacks, ...memory } = await measureAbuse(program, options);
  const { memoryBefore, memoryPeak, memoryAfter } = memory;
  console.log(`${program.name}, ${seconds} s`);
  for (const [kind, count] of Object.entries(attacks)) console.log(`  ${kind.padEnd(34)}${count}`);
  const failures = Object.values(during).flat().filter(Number.isNaN).length;
  for (
    const [name, times] of [
      ["/healthz alone", before.health],
      ["/healthz", during.health],
      ["/healthz, new connections", during.newConnection],
      ["another server beside it", during.plain],
      ["timers of the server are late by", delays],
      ["list of 500 alone", before.lists],
      ["list of 500", during.lists],
      ["the same as the attackers' user", during.attackersLists],
    ] as const
  ) {
    const [p50, p99, worst] = [0.5, 0.99, 1].map((part) => ms(quantile(times, part)));
    console.log(`  ${name.padEnd(34)}p50 ${p50}, p99 ${p99}, worst ${worst} of ${times.length}`);
  }
  console.log(`  ${"failed answers".padEnd(34)}${failures}`);
  console.log(
    `  ${"memory".padEnd(34)}${mb(memoryBefore)} before, ${mb(memoryPeak)} peak, ${mb(memoryAfter)} after`,
  );
  isMissed ||= !(quantile(during.health, 0.99) < MOST_MS) || failures > 0 ||
    !(quantile(during.lists, 0.99) < MOST_LIST_MS) || memoryAfter - memoryBefore >= round.most;
}
Deno.exit(isMissed ? 1 : 0);
