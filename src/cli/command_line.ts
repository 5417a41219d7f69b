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
  /** For the error of a missing value. */
  readonly example?: string;
}

const FLAGS = {
  kubeconfig: { type: "string", example: "--kubeconfig ~/.kube/config" },
  context: { type: "string", example: "--context NAME, which `kubectl config get-contexts` lists" },
  resource: { type: "string", short: "r", multiple: true, example: "--resource pods,nodes,deployments.apps" },
  namespace: { type: "string", short: "n", multiple: true, example: "--namespace shop,blog" },
  host: { type: "string", example: "--host 127.0.0.1" },
  port: { type: "string", short: "p", example: "--port 8787, or --port 0 for any free port" },
  token: { type: "string", example: "--token TEXT, which readers must present" },
  "token-file": {
    type: "string",
    example: "--token-file FILE, which contains the token that readers must present",
  },
  "cluster-rbac": { type: "boolean" },
  "reader-namespaces": { type: "string", multiple: true, example: "--reader-namespaces shop,blog" },
  "reader-resources": { type: "string", multiple: true, example: "--reader-resources pods,deployments.apps" },
  "allow-host": { type: "string", multiple: true, example: "--allow-host cache.example.com" },
  "cors-origin": { type: "string", multiple: true, example: "--cors-origin https://dashboard.example" },
  "tls-cert": { type: "string", example: "--tls-cert FILE --tls-key FILE" },
  "tls-key": { type: "string", example: "--tls-cert FILE --tls-key FILE" },
  "access-log": { type: "string", example: "--access-log line, or json" },
  "max-lag": { type: "string", example: "--max-lag 90s, or 5m" },
  "keep-alive": { type: "string", example: "--keep-alive 75s" },
  "shutdown-grace": { type: "string", example: "--shutdown-grace 10s" },
  "max-watches": { type: "string", example: "--max-watches 20000" },
  "max-watches-per-client": { type: "string", example: "--max-watches-per-client 1000" },
  metrics: { type: "boolean" },
  drop: { type: "string", multiple: true, example: "--drop 'spec.containers[].env'" },
  freshness: { type: "string", example: "--freshness consistent, stale-if-error or as-is" },
  storage: { type: "string", example: "--storage texts or short-texts" },
  snapshot: { type: "string", example: "--snapshot /var/cache/listwatch" },
  "pass-through": { type: "boolean" },
  "pass-through-writes": { type: "boolean" },
  "allow-anonymous": { type: "boolean" },
  "allow-secrets": { type: "boolean" },
  seed: { type: "string", example: "--seed 42" },
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
  const accessLog = oneOf("access-log", values.get("access-log")?.[0], ["line", "json"]);
  return {
    name: "serve",
    verbose: values.has("verbose"),
    ...(accessLog !== undefined && { accessLog }),
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
  const value = (name: FlagName): string | undefined => values.get(name)?.[0];
  const list = (name: FlagName): string[] | undefined => {
    const given = values.get(name);
    const items = given?.flatMap((text) => text.split(",")).map((item) => item.trim()).filter((item) =>
      item !== ""
    );
    if (items?.length === 0) {
      throw new UsageError(`Flag --${name} has an empty list: ${(FLAGS[name] as Flag).example}`);
    }
    return items;
  };
  const [kubeconfig, context] = [value("kubeconfig"), value("context")];
  const real = kubeconfig !== undefined || context !== undefined;
  if (real && values.has("seed")) {
    throw new UsageError(
      "Flag --seed is only for the embedded cluster: remove it, or --kubeconfig and --context",
    );
  }
  const source: ClusterSource = real
    ? { kind: "kubeconfig", path: kubeconfig, context }
    : { kind: "embedded", seed: integer("seed", value("seed"), 0, 2 ** 32 - 1) };
  const isSet = (name: FlagName): true | undefined => values.has(name) || undefined;
  const hasOtherToken = values.has("token-file") || values.has("cluster-rbac") || values.has("pass-through");
  return defined<ServeOptions>({
    source,
    resources: list("resource"),
    namespace: oneOrMany(list("namespace")),
    host: value("host"),
    port: integer("port", value("port"), 0, 65_535),
    token: value("token") ?? (hasOtherToken ? undefined : env["LISTWATCH_TOKEN"] || undefined),
    tokenFile: value("token-file"),
    clusterRbac: isSet("cluster-rbac"),
    readerNamespaces: list("reader-namespaces"),
    readerResources: list("reader-resources"),
    allowedHosts: list("allow-host"),
    corsOrigins: list("cors-origin"),
    tlsCert: value("tls-cert"),
    tlsKey: value("tls-key"),
    maxLagMs: durationMs("max-lag", value("max-lag")),
    keepAliveMs: durationMs("keep-alive", value("keep-alive")),
    shutdownGraceMs: durationMs("shutdown-grace", value("shutdown-grace")),
    maxWatches: integer("max-watches", value("max-watches"), 1, 1e9),
    maxWatchesPerClient: integer("max-watches-per-client", value("max-watches-per-client"), 1, 1e9),
    drop: list("drop"),
    freshness: oneOf("freshness", value("freshness"), FRESHNESSES),
    storage: oneOf("storage", value("storage"), STORAGE_NAMES),
    snapshot: value("snapshot"),
    passThrough: isSet("pass-through"),
    passThroughWrites: isSet("pass-through-writes"),
    metrics: isSet("metrics"),
    allowAnonymous: isSet("allow-anonymous"),
    allowSecrets: isSet("allow-secrets"),
  });
}

function oneOf<T extends string>(
  name: FlagName,
  text: string | undefined,
  known: readonly T[],
): T | undefined {
  const found = known.find((one) => one === text);
  if (text === undefined || found !== undefined) return found;
  throw new UsageError(
    `Flag --${name} must be ${known.join(known.length > 2 ? ", " : " or ")}, not ${quote(text)}`,
  );
}

function integer(name: FlagName, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^[0-9]{1,10}$/.test(text) ? Number(text) : NaN;
  if (!(number >= min && number <= max)) {
    throw new UsageError(`Flag --${name} must be a whole number from ${min} to ${max}, not ${quote(text)}`);
  }
  return number;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function durationMs(name: FlagName, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, unit] = /^([0-9]{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * UNITS_MS[unit];
  throw new UsageError(`Flag --${name} must be a duration such as 90s or 5m, not ${quote(text)}`);
}

function oneOrMany(items: string[] | undefined): string | string[] | undefined {
  return items?.length === 1 ? items[0] : items;
}
