/**
 * `deno task readme`: makes README's figures, and the page of results with its pictures, from
 * benchmarks/TABLES.md; with `--picture` also README's picture of the page of `serve`: by Chromium, from the
 * embedded cluster. `--help` says more.
 *
 * @module
 */

import { join } from "node:path";
import { ChromiumPage } from "./lib/chromium_page.ts";
import { ROOT } from "./lib/gate.ts";
import { withFigures } from "./lib/readme_figures.ts";
import { resultsFiles } from "./lib/results_page.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";

const USAGE = usage({
  task: "readme",
  does: "Writes README's figures, and benchmarks/RESULTS.md with its pictures, from benchmarks/TABLES.md.",
  options: {
    "--picture": 'also make docs/pictures/page.png (needs Chromium: CHROMIUM, or "chromium" of the PATH)',
  },
});

const PORT = 18_787;
// The page has changes to show then.
const CHANGES_MS = 20_000;

async function main(): Promise<void> {
  const { picture } = taskOptions(USAGE, { picture: { type: "boolean" } });
  const path = join(ROOT, "README.md");
  const tables = await Deno.readTextFile(join(ROOT, "benchmarks/TABLES.md"));
  await Deno.writeTextFile(path, withFigures(await Deno.readTextFile(path), tables));
  const files = resultsFiles(tables);
  for (const [file, text] of Object.entries(files)) await Deno.writeTextFile(join(ROOT, file), text);
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", path, ...Object.keys(files)],
    cwd: ROOT,
  }).output();
  if (!success) throw new Error("Cannot write the results: deno fmt fails; run it to see why");
  if (picture) await takePicture(join(ROOT, "docs/pictures/page.png"));
}

/** Photographs the page of the embedded cluster, once it runs for a while. */
async function takePicture(path: string): Promise<void> {
  const url = `http://127.0.0.1:${PORT}/`;
  if (await isReady(`${url}readyz`)) throw new Error(`Cannot make a picture: another server runs at ${url}`);
  const command = { cwd: ROOT, stdout: "null", stderr: "null" } as const;
  const serve = new Deno.Command(Deno.execPath(), {
    ...command,
    args: ["run", "-A", "src/cli/main.ts", "serve", "--port", String(PORT)],
  }).spawn();
  try {
    for (let tries = 0; !await isReady(`${url}readyz`); tries++) {
      if (tries === 120) throw new Error(`Cannot make a picture: ${url} is not ready after a minute`);
      await pause(500);
    }
    await using page = await ChromiumPage.start(Deno.env.get("CHROMIUM") || "chromium");
    await page.resize(1280, 860);
    await page.open(url);
    await pause(CHANGES_MS);
    await Deno.writeFile(path, await page.picture());
  } finally {
    serve.kill("SIGTERM");
    await serve.status;
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (import.meta.main) await main();
