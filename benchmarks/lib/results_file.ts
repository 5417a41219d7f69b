/**
 * The file with the results: a section for each kind of run, so that one can be measured again by itself.
 *
 * @module
 */

import { cpus, totalmem } from "node:os";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import { digits } from "./statistics.ts";

/** Which part of the file. */
export type Section = "comparison" | "growth";

const TITLES: Record<Section, string> = {
  comparison: "Beside its peers",
  growth: "Cost per object",
};

const HEAD = `# Results

Written by \`deno task bench\`; [docs/benchmarks.md](../docs/benchmarks.md) tells how each figure is measured.
`;

/** The file's text with one section replaced, or added. */
export function withSection(text: string, section: Section, content: string): string {
  const [begin, end] = [`<!-- begin ${section} -->`, `<!-- end ${section} -->`];
  const part = `${begin}\n\n## ${TITLES[section]}\n\n${content.trim()}\n\n${end}`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from !== -1 && to > from) return text.slice(0, from) + part + text.slice(to + end.length);
  return `${(text.trim() === "" ? HEAD : text).trimEnd()}\n\n${part}\n`;
}

/** Replaces a section of the file at `path`, or begins the file. */
export async function writeSection(path: string, section: Section, content: string): Promise<void> {
  const text = await Deno.readTextFile(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  });
  await Deno.writeTextFile(path, withSection(text, section, content));
}

/** When, on what, with which versions and by which command this was measured. */
export async function circumstances(command: string, versions: readonly string[]): Promise<string> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: ROOT })).stdout.trim();
  const changes = await git("status", "--porcelain", "--", "src", "mod.ts");
  const commit = `${await git("rev-parse", "--short", "HEAD")}${
    changes === "" ? "" : ", with changes to src/"
  }`;
  const kernel = (await run("uname", ["-sr"])).stdout.trim();
  const [{ model } = { model: "unknown CPU" }] = cpus();
  return [
    `- Command: \`${command}\``,
    `- Measured ${new Date().toISOString().slice(0, 10)} at commit ${commit || "unknown"}`,
    `- Machine: ${cpus().length} x ${model.trim()}, ${digits(totalmem() / 1e9)} GB, ${kernel}`,
    `- Versions: ${versions.join("; ")}`,
  ].join("\n");
}
