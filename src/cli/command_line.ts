import { parseArgs } from "node:util";
import { defined } from "../util/json.ts";
import { FRESHNESSES } from "../hono/read_api_options.ts";
import { nearNames, quote, UsageError } from "./errors.ts";
import { type ClusterSource, type ServeOptions, STORAGE_NAMES } from "./serve/serve_options.ts";

/** A parsed command line. */
export type Command =
  | { readonly name: "help"; readonly topic: "listwatch" | "serve" }
  | { readonly name: "version" }
  | {
    readonly name: "serve";
    readonly verbose: boolean;
    /** The format of the access log; no log by default. */
    readonly accessLog?: "line" | "json";
    readonly options: ServeOptions;
  };

interface Flag {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** An example, for the error of a missing value. */
  readonly example?: string;
  /** The options of `serve` for the texts of a flag; flags without it have a meaning only together. */
  readonly read?: (texts: readonly string[], flag: string) => ServeOptions;
}

type Read<V> = (texts: readonly string[], flag: string) => V;

function yes(option: BooleanOption): Flag {
  return { type: "boolean", read: () => ({ [option]: true }) };
}

function one<K extends keyof ServeOptions>(option: K, read: Read<ServeOptions[K]>, example: string): Flag {
  return { type: "string", example, read: (texts, flag) => ({ [option]: read(texts, flag) }) };
}

function many<K extends keyof ServeOptions>(
  option: K,
  example: string,
  of: (items: string[]) => ServeOptions[K],
): Flag {
  return { ...one(option, (texts, flag) => of(items(texts, flag, example)), example), multiple: true };
}

type BooleanOption = {
  [K in keyof ServeOptions]-?: true extends ServeOptions[K] ? K : never;
}[keyof ServeOptions];

const all = (items: string[]): string[] => items;
const oneOrAll = (items: string[]): string | string[] => items.length === 1 ? items[0] : items;
const text: Read<string> = ([text]) => text;

const FLAGS = {
  kubeconfig: { type: "string", example: "--kubeconfig ~/.kube/config" },
  context: { type: "string", example: "--context NAME, which `kubectl config get-contexts` lists" },
  seed: { type: "string", example: "--seed 42" },
  resource: { ...many("resources", "--resource pods,nodes,deployments.apps", all), short: "r" },
  namespace: { ...many("namespace", "--namespace shop,blog", oneOrAll), short: "n" },
  host: one("host", text, "--host 127.0.0.1"),
  port: { ...one("port", integer(0, 65_535), "--port 8787, or --port 0 for any free port"), short: "p" },
  token: one("token", text, "--token TEXT, which readers must present"),
  "token-file": one(
    "tokenFile",
    text,
    "--token-file FILE, which contains the token that readers must present",
  ),
  "cluster-rbac": yes("clusterRbac"),
  "reader-namespaces": many("readerNamespaces", "--reader-namespaces shop,blog", all),
  "reader-resources": many("readerResources", "--reader-resources pods,deployments.apps", all),
  "allow-host": many("allowedHosts", "--allow-host cache.example.com", all),
  "cors-origin": many("corsOrigins", "--cors-origin https://dashboard.example", all),
  "tls-cert": one("tlsCert", text, "--tls-cert FILE --tls-key FILE"),
  "tls-key": one("tlsKey", text, "--tls-cert FILE --tls-key FILE"),
  "access-log": { type: "string", example: "--access-log line, or json" },
  "max-lag": one("maxLagMs", durationMs, "--max-lag 90s, or 5m"),
  "keep-alive": one("keepAliveMs", durationMs, "--keep-alive 75s"),
  "shutdown-grace": one("shutdownGraceMs", durationMs, "--shutdown-grace 10s"),
  "max-watches": one("maxWatches", integer(1, 1e9), "--max-watches 20000"),
  "max-watches-per-client": one("maxWatchesPerClient", integer(1, 1e9), "--max-watches-per-client 1000"),
  metrics: yes("metrics"),
  drop: many("drop", "--drop 'spec.containers[].env'", all),
  freshness: one("freshness", oneOf(FRESHNESSES), "--freshness consistent, stale-if-error or as-is"),
  storage: one("storage", oneOf(STORAGE_NAMES), "--storage texts or short-texts"),
  snapshot: one("snapshot", text, "--snapshot /var/cache/listwatch"),
  "pass-through": yes("passThrough"),
  "pass-through-writes": yes("passThroughWrites"),
  "allow-anonymous": yes("allowAnonymous"),
  "allow-secrets": yes("allowSecrets"),
  verbose: { type: "boolean", short: "v" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
} satisfies Record<string, Flag>;

type FlagName = keyof typeof FLAGS;

const COMMANDS = ["serve", "help", "version"] as const;

/**
 * Parses the arguments after the program's name.
 * @param args The arguments, such as `["serve", "--port", "8080"]`.
 * @param env The environment: `LISTWATCH_TOKEN` is the default of `--token`.
 * @throws {UsageError} An unknown command or flag (the message has the nearest known one), a missing or wrong
 * value, or flags that contradict each other.
 *
 * @example
 * ```ts
 * import { parseCommandLine } from "@listwatch/cache/cli";
 * const command = parseCommandLine(["serve", "--context", "prod", "--resource", "pods,nodes"], {});
 * if (command.name === "serve") console.log(command.options.resources); // ["pods", "nodes"]
 * ```
 */
export function parseCommandLine(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Command {
  // Not strict: the error texts of parseArgs differ between runtimes.
  const { tokens } = parseArgs({ args: [...args], options: FLAGS, strict: false, tokens: true });
  const words: string[] = [];
  const values = new Map<FlagName, string[]>();
  for (const token of tokens) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    if (!Object.hasOwn(FLAGS, token.name)) throw unknownFlag(token.rawName);
    const name = token.name as FlagName;
    const flag: Flag = FLAGS[name];
    if (flag.type === "boolean") {
      if (token.value !== undefined) {
        throw new UsageError(`Flag ${token.rawName} takes no value, but has ${quote(token.value)}`);
      }
      values.set(name, []);
      continue;
    }
    // In `--context --port 1`, parseArgs takes the next flag as the value.
    if (
      token.value === undefined || token.value === "" || (!token.inlineValue && token.value.startsWith("-"))
    ) {
      throw new UsageError(`Flag ${token.rawName} needs a value: ${flag.example}`);
    }
    const given = values.get(name) ?? [];
    if (given.length > 0 && !flag.multiple) {
      throw new UsageError(`Flag --${name} is repeated: ${quote(given[0])} and ${quote(token.value)}`);
    }
    given.push(token.value);
    values.set(name, given);
  }

  const word = words[0];
  for (const command of words.slice(0, word === "help" ? 2 : 1)) {
    if ((COMMANDS as readonly string[]).includes(command)) continue;
    const near = nearNames(command, COMMANDS)[0];
    const hint = near ? `did you mean ${near}?` : "the commands are serve, version and help.";
    throw new UsageError(`Unknown command ${quote(command)}: ${hint} See listwatch --help`);
  }
  if (word === "help" || values.has("help")) {
    return { name: "help", topic: words.includes("serve") ? "serve" : "listwatch" };
  }
  if (word === "version" || values.has("version")) return { name: "version" };
  if (word === undefined) throw new UsageError("Missing command: try listwatch serve, or listwatch --help");
  if (words.length > 1) {
    throw new UsageError(
      `serve takes only flags, but has the argument ${quote(words[1])}: ` +
        `resources are named with --resource ${words.slice(1).join(",")}`,
    );
  }
  const accessLog = values.get("access-log");
  return {
    name: "serve",
    verbose: values.has("verbose"),
    ...(accessLog && { accessLog: oneOf(["line", "json"])(accessLog, "access-log") }),
    options: serveOptions(values, env),
  };
}

function unknownFlag(rawName: string): UsageError {
  const near = nearNames(rawName.replace(/^-+/, ""), Object.keys(FLAGS))[0];
  return new UsageError(
    `Unknown flag ${rawName}: ${near ? `did you mean --${near}? ` : ""}See listwatch serve --help`,
  );
}

function serveOptions(
  values: ReadonlyMap<FlagName, readonly string[]>,
  env: Readonly<Record<string, string | undefined>>,
): ServeOptions {
  const [path, context, seed] = [values.get("kubeconfig"), values.get("context"), values.get("seed")];
  const real = path !== undefined || context !== undefined;
  if (real && seed !== undefined) {
    throw new UsageError(
      "Flag --seed is only for the embedded cluster: remove it, or --kubeconfig and --context",
    );
  }
  const source: ClusterSource = real
    ? { kind: "kubeconfig", path: path?.[0], context: context?.[0] }
    : { kind: "embedded", seed: seed && integer(0, 2 ** 32 - 1)(seed, "seed") };
  const hasToken = (["token", "token-file", "cluster-rbac", "pass-through"] as const).some((flag) =>
    values.has(flag)
  );
  const given = Array.from(values, ([flag, texts]) => (FLAGS[flag] as Flag).read?.(texts, flag));
  const token = hasToken ? undefined : env["LISTWATCH_TOKEN"] || undefined;
  return defined<ServeOptions>(Object.assign({ source, token }, ...given));
}

function items(texts: readonly string[], flag: string, example: string): string[] {
  const items = texts.flatMap((text) => text.split(",")).map((item) => item.trim()).filter(Boolean);
  if (items.length > 0) return items;
  throw new UsageError(`Flag --${flag} has an empty list: ${example}`);
}

function oneOf<T extends string>(known: readonly T[]): Read<T> {
  return ([text], flag) => {
    const found = known.find((one) => one === text);
    if (found !== undefined) return found;
    const names = known.join(known.length > 2 ? ", " : " or ");
    throw new UsageError(`Flag --${flag} must be ${names}, not ${quote(text)}`);
  };
}

function integer(min: number, max: number): Read<number> {
  return ([text], flag) => {
    const number = /^[0-9]{1,10}$/.test(text) ? Number(text) : NaN;
    if (number >= min && number <= max) return number;
    throw new UsageError(`Flag --${flag} must be a whole number from ${min} to ${max}, not ${quote(text)}`);
  };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function durationMs([text]: readonly string[], flag: string): number {
  const [, digits, unit] = /^([0-9]{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * UNITS_MS[unit];
  throw new UsageError(`Flag --${flag} must be a duration such as 90s or 5m, not ${quote(text)}`);
}
