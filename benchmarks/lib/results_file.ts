/**
 * The file with the results: a section for each size, for where the time goes and for the growth, so that one
 * can be measured again by itself. Each names its own commit, command, machine and day.
 *
 * @module
 */

import { cpus, totalmem } from "node:os";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import { count } from "./report.ts";
import { digits } from "./statistics.ts";

/** A part of the file: the comparison with so many objects, or something else. */
export type Section =
  | number
  | "profile"
  | "growth"
  | "tasks"
  | "list"
  | "limit"
  | "million"
  | "screens"
  | "warm"
  | "controllers"
  | "start"
  | "fanout"
  | "size";

const TITLES = {
  profile: "Where the time goes",
  growth: "Cost per object",
  tasks: "The longest turn",
  list: "Lists",
  limit: "A small heap",
  million: "A million pods",
  screens: "Screens",
  warm: "A start with a snapshot",
  controllers: "Controllers",
  start: "Start",
  fanout: "Fan-out",
  size: "Size",
};

const HEAD = `# Tables of the benchmarks

Written by \`deno task bench\`; [docs/benchmarks.md](../docs/benchmarks.md) says how each figure is measured,
and [RESULTS.md](RESULTS.md) has what matters on one page (\`deno task readme\` writes it). Each section names
the run that it comes from; compare figures within one, not across them.
`;

/** The heading of a section, as Markdown. */
export function heading(section: Section): string {
  return `## ${typeof section === "number" ? `${count(section)} pods` : TITLES[section]}`;
}

/** The file's text with one section replaced, or added at its place: by size, then the others. */
export function withSection(text: string, section: Section, content: string): string {
  const name = nameOf(section);
  const [begin, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
  const part = `${begin}\n\n${heading(section)}\n\n${content.trim()}\n\n${end}`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from !== -1 && to > from) return text.slice(0, from) + part + text.slice(to + end.length);
  for (const { index, 1: other } of text.matchAll(/^<!-- begin (\S+) -->$/gm)) {
    if (rank(other) > rank(name)) return `${text.slice(0, index)}${part}\n\n${text.slice(index)}`;
  }
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

/** The name of a section, such as `comparison-20k`. */
function nameOf(section: Section): string {
  if (typeof section === "string") return section;
  return `comparison-${section % 1000 === 0 ? `${section / 1000}k` : section}`;
}

function rank(name: string): number {
  if (name === "size") return Number.MAX_SAFE_INTEGER / 1.5;
  if (name === "start") return Number.MAX_SAFE_INTEGER / 2;
  if (name === "list") return Number.MAX_SAFE_INTEGER / 8;
  if (name === "limit") return Number.MAX_SAFE_INTEGER / 6;
  if (name === "controllers") return Number.MAX_SAFE_INTEGER / 3;
  if (name === "million") return Number.MAX_SAFE_INTEGER / 5;
  if (name === "screens") return Number.MAX_SAFE_INTEGER / 4.5;
  if (name === "fanout") return Number.MAX_SAFE_INTEGER / 4;
  if (name === "tasks") return Number.MAX_SAFE_INTEGER;
  if (name === "profile") return Number.MAX_VALUE;
  const match = /^comparison-(\d+)(k?)$/.exec(name);
  return match === null ? Infinity : Number(match[1]) * (match[2] === "k" ? 1000 : 1);
}

/** The library's source at one moment. */
export interface SourceState {
  /** The commit, and whether there were changes to it. */
  readonly label: string;
  /** Another one when the source is another one. */
  readonly fingerprint: string;
}

/** The library's source as it is now. */
export async function sourceState(): Promise<SourceState> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: ROOT })).stdout.trim();
  const changes = await git("status", "--porcelain", "--", "src", "mod.ts");
  const commit = await git("rev-parse", "--short", "HEAD");
  return {
    label: `${commit || "unknown"}${changes === "" ? "" : ", with changes to src/"}`,
    fingerprint: [
      await git("rev-parse", "HEAD:src", "HEAD:mod.ts"),
      changes,
      await git("diff", "HEAD", "--", "src", "mod.ts"),
    ].join("\n"),
  };
}

/** What a run was, besides its figures. */
export interface Run {
  readonly command: string;
  readonly versions: readonly string[];
  /** The source when the programs were built. */
  readonly source: SourceState;
}

/** When, on what, with which versions and by which command this was measured. */
export async function circumstances({ command, versions, source }: Run): Promise<string> {
  // Ours is bundled once for Node and Bun, and read by Deno in every round.
  const isSame = (await sourceState()).fingerprint === source.fingerprint;
  const kernel = (await run("uname", ["-sr"])).stdout.trim();
  const [{ model } = { model: "unknown CPU" }] = cpus();
  return [
    `- Command: \`${command}\``,
    `- Measured ${new Date().toISOString().slice(0, 10)} at commit ${source.label}` +
    (isSame ? "" : "; src/ changed while it ran, which Deno may have taken in"),
    `- Machine: ${cpus().length} x ${model.trim()}, ${digits(totalmem() / 1e9)} GB, ${kernel}`,
    `- Versions: ${versions.join("; ")}`,
  ].join("\n");
}
