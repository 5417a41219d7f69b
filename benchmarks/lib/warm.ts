/**
 * Starts with a snapshot beside starts without one, on Node.
 *
 * @module
 */

import { join } from "node:path";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { startServer } from "./rounds.ts";
import { digits, median } from "./statistics.ts";
import { markdownTable } from "./table.ts";

/** What one process is to do. */
export interface WarmArguments {
  readonly server: string;
  readonly kind: (typeof KINDS)[number];
  readonly path: string;
  /** Only type and metadata of each pod. */
  readonly isSmall: boolean;
  /** Fill the snapshot, instead of measuring. */
  readonly fills: boolean;
}

/** The measured figures. */
export interface WarmFigures {
  readonly stored: number;
  /** The time until one object was read by its key. */
  readonly firstReadMs: number;
  /** Read from files until then. */
  readonly firstReadBytes: number;
  readonly firstReadRssBytes: number;
  /** The time until the server had confirmed the content. */
  readonly syncedMs: number;
  /** After every object was read. */
  readonly peakRssBytes: number;
}

const KINDS = ["none", "sqlite"] as const;
const LABELS = { none: "none: a list", sqlite: "sqliteSnapshot" };

/** Measures it, and returns the tables as Markdown. */
export async function measureWarm(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const parts = [
    "An informer with an index of namespaces on Node. The database is in the system's cache:",
  ];
  const folder = await Deno.makeTempDir({ prefix: "listwatch-warm-" });
  try {
    for (const objects of options.sizes) {
      await using server = await startServer(tools, { objects, events: 1, framing: options.framing });
      for (const isSmall of [false, true]) {
        const argumentsOf = (kind: WarmArguments["kind"], fills: boolean): WarmArguments => {
          const path = join(folder, `${objects}-${isSmall}.${kind}`);
          return { server: server.url, kind, path, isSmall, fills };
        };
        const sizes = new Map<string, number>();
        for (const kind of KINDS) {
          if (kind === "none") continue;
          const given = argumentsOf(kind, true);
          await start(given, tools, programs);
          sizes.set(kind, (await Deno.stat(given.path)).size);
        }
        const results = KINDS.map(() => [] as WarmFigures[]);
        for (let round = 1; round <= options.rounds; round++) {
          for (const [i, kind] of KINDS.entries()) {
            log(
              `round ${round} of ${options.rounds}: ${count(objects)} ${isSmall ? "small pods" : "pods"}, ${
                LABELS[kind]
              }`,
            );
            const { stdout, output } = await start(argumentsOf(kind, false), tools, programs);
            const figures = JSON.parse(stdout || "{}") as WarmFigures;
            if (figures.stored !== objects) throw new Error(`Cannot measure ${kind}: ${output}`);
            results[i].push(figures);
          }
        }
        const rows = KINDS.map((kind, i) => {
          const of = (figure: keyof WarmFigures) => median(results[i].map((one) => one[figure]))!;
          const size = sizes.get(kind);
          return [
            LABELS[kind],
            digits(of("firstReadMs")),
            digits(of("syncedMs")),
            size === undefined ? "-" : digits(size / 1e6),
            kind === "none" ? "-" : digits(of("firstReadBytes") / 1e6),
            digits(of("firstReadRssBytes") / 1e6),
            digits(of("peakRssBytes") / 1e6),
          ];
        });
        parts.push(
          `${count(objects)} pods ${
            isSmall ? "with type and metadata only" : `(${digits(server.listBytes / 1e6)} MB as a list)`
          }:`,
          markdownTable([
            "snapshot",
            "first read (ms)",
            "synced (ms)",
            "file (MB)",
            "read until the first read (MB)",
            "RSS at the first read (MB)",
            "peak RSS, all read (MB)",
          ], rows),
        );
      }
    }
    return parts.join("\n\n");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function start(given: WarmArguments, tools: Tools, programs: Programs) {
  const result = await run(tools.node, [
    "--no-warnings",
    join(programs.bundles, "warm_start.mjs"),
    `--given=${JSON.stringify(given)}`,
  ], { timeoutMs: 180_000 });
  if (result.code !== 0) throw new Error(`Cannot measure ${given.kind}: ${result.output}`);
  return result;
}
