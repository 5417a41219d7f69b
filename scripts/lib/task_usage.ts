/**
 * What `--help` prints, in one form for all tasks and scripts, and the reading of their options.
 *
 * @module
 */

import { parseArgs, type ParseArgsConfig } from "node:util";

/** A task, or a script that has none, and what can be given to it. */
export type TaskUsage = ({ readonly task: string } | { readonly script: string }) & {
  /** Arguments without a name, such as `[FILE...]`. */
  readonly takes?: string;
  /** The purpose of the task, in sentences. */
  readonly does: string;
  /** Each option, with the name of its value, and what it means. */
  readonly options?: Readonly<Record<string, string>>;
};

/** The text of `--help`. */
export function usage({ takes, does, options = {}, ...of }: TaskUsage): string {
  const command = "task" in of ? `deno task ${of.task}` : `deno run -A ${of.script}`;
  const all = { ...options, "--help": "show this text" };
  const width = Math.max(...Object.keys(all).map((option) => option.length));
  const lines = Object.entries(all).map(([option, meaning]) => `  ${option.padEnd(width)}  ${meaning}`);
  return [`Usage: ${command} [options]${takes ? ` ${takes}` : ""}`, "", does, "", ...lines, ""].join(
    "\n",
  );
}

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; options: T }>>["values"];

/**
 * The options and the arguments of this process. `--help` prints
 * the usage and exits; a wrong option does with 2.
 */
export function taskArguments<T extends Options>(
  text: string,
  options: T,
  { allowPositionals = true }: { readonly allowPositionals?: boolean } = {},
): { readonly values: Values<T>; readonly positionals: string[] } {
  if (Deno.args.includes("--help") || Deno.args.includes("-h")) {
    console.log(text);
    Deno.exit(0);
  }
  try {
    const { values, positionals } = parseArgs({ args: Deno.args, options, allowPositionals });
    return { values: values as Values<T>, positionals };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${text}`);
    Deno.exit(2);
  }
}

/** As {@linkcode taskArguments}, for a task that takes nothing but options. */
export function taskOptions<T extends Options>(text: string, options: T): Values<T> {
  return taskArguments(text, options, { allowPositionals: false }).values;
}
