import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { monotonicNow, realClock, type TimerHandle } from "../util/clock.ts";
import { errorChain } from "../util/errors.ts";
import { visibleText } from "../util/logger.ts";
import { type AccessLogEntry, accessLogJson, accessLogLine } from "./readers/access_log.ts";
import { parseCommandLine } from "./command_line.ts";
import { CommandError, explainError, oneLine } from "./errors.ts";
import { serve, SHUTDOWN_GRACE_MS } from "./serve/serve.ts";
import { checkToken, type ServeOptions, type ServeStep, type SyncProgress } from "./serve/serve_options.ts";
import { type OutputStream, type Style, Terminal, terminalLogger, verboseLogger } from "./terminal.ts";

/** Options of {@linkcode main}. */
export interface MainOptions {
  /** Stops the program, like Ctrl-C; SIGINT and SIGTERM of this process by default. */
  readonly signal?: AbortSignal;
  /** Receives results; the stdout of this process by default. */
  readonly stdout?: OutputStream;
  /** Receives errors and progress; the stderr of this process by default. */
  readonly stderr?: OutputStream;
  /** The environment variables; those of this process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Runs the program with the arguments after its name, and resolves with its exit code: 0 when it was stopped
 * or has finished, 1 when it could not start or continue, 2 when the command line was wrong. Never rejects;
 * each error is one line on stderr.
 *
 * The first Ctrl-C (SIGINT) stops it, also while it starts. If that takes longer than 0.9 s, the process
 * exits with 130. The first SIGTERM lets answers that are under way end first, for `--shutdown-grace`.
 *
 * @example
 * ```ts
 * import { main } from "@listwatch/cache/cli";
 * console.log(await main(["version"])); // 0
 * ```
 */
export async function main(args: readonly string[], options: MainOptions = {}): Promise<number> {
  const { stdout = process.stdout, stderr = process.stderr, env = process.env } = options;
  const now = () => monotonicNow(realClock);
  const terminal = new Terminal({ stdout, stderr, env, clock: realClock });
  let isVerbose = false;
  const { signal, onTerminate, release } = options.signal
    ? { signal: options.signal, onTerminate() {}, release() {} }
    : listenForSignals();
  try {
    const command = parseCommandLine(args, env);
    switch (command.name) {
      case "help":
        terminal.print((command.topic === "serve" ? SERVE_USAGE : LISTWATCH_USAGE).trimEnd());
        return 0;
      case "version":
        terminal.print(VERSION);
        return 0;
      case "serve":
        isVerbose = command.verbose;
        // By default V8 lets a small heap grow to several times what is live: in a flood of requests, by
        // hundreds of megabytes. The process of another program keeps its flags.
        if (options.signal === undefined) setFlagsFromString("--heap-growing-percent=50");
        checkTokenSource(command.options, env);
        await runServe(terminal, {
          ...command.options,
          signal,
          logger: isVerbose ? verboseLogger(terminal) : terminalLogger(terminal, now),
          ...(command.accessLog && { accessLog: accessLogTo(terminal, command.accessLog) }),
        }, onTerminate);
        return 0;
    }
  } catch (error) {
    // Stopped while it was starting.
    if (signal.aborted && !(error instanceof CommandError)) {
      terminal.print("Stopped.");
      return 0;
    }
    const { line, exitCode } = explainError(error);
    terminal.error(line);
    if (isVerbose && error instanceof Error) terminal.warn(chain(error));
    return exitCode;
  } finally {
    release();
  }
}

async function runServe(
  terminal: Terminal,
  options: ServeOptions,
  onTerminate: (graceful: GracefulStop) => void,
): Promise<void> {
  let listening: Listening | undefined;
  const onStep = (step: ServeStep): void => {
    if (step.type === "listening") listening = step;
    printStep(terminal, step);
    if (step.type === "synced" && listening !== undefined) printNext(terminal, listening, options);
  };
  const served = await serve({ ...options, onStep });
  const { shutdownGraceMs: graceMs = SHUTDOWN_GRACE_MS } = options;
  onTerminate({ stop: () => served.stop().catch(() => {}), graceMs });
  await served.finished;
  terminal.print("Stopped.");
}

/** Checks the token here, too: the message then says where the token comes from. */
function checkTokenSource({ token }: ServeOptions, env: NonNullable<MainOptions["env"]>): void {
  if (token === undefined) return;
  checkToken(token, `The token of ${token === env["LISTWATCH_TOKEN"] ? "LISTWATCH_TOKEN" : "--token"}`);
}

function accessLogTo(terminal: Terminal, format: "line" | "json"): (entry: AccessLogEntry) => void {
  return (entry) => terminal.print(format === "json" ? accessLogJson(entry) : accessLogLine(entry));
}

type Listening = Extract<ServeStep, { type: "listening" }>;

function printStep(terminal: Terminal, step: ServeStep): void {
  const warn = (style: Style, word: string, text: string) =>
    terminal.warn(terminal.styleError(style, word) + " ".repeat(11 - word.length) + text);
  switch (step.type) {
    case "connected":
      return terminal.print(`Cluster    ${shown(step.cluster)} (${shown(step.server)})`);
    case "away":
      terminal.print(`Cluster    ${shown(step.cluster)} (${shown(step.server)})`);
      return warn("yellow", "Away", `${oneLine(step.message)}. Serving the snapshots until it is back.`);
    case "skipped":
      return warn("yellow", "Skipped", `${shownAll(step.resources)}: the server refuses to list them`);
    case "listening":
      terminal.print(`Reflecting ${shownAll(step.resources)}`);
      terminal.print(`Serving    ${terminal.style("bold", step.url)}`);
      return terminal.print(`Readers    ${step.access}`);
    case "syncing":
      return terminal.progress(progressLine(step.progress));
    case "synced": {
      const seconds = (step.durationMs / 1_000).toFixed(1);
      return terminal.print(`Synced     ${step.objects.toLocaleString("en")} objects in ${seconds} s`);
    }
    case "trouble": {
      const why = `${shown(step.resource)} cannot be read: ${oneLine(step.message)}`;
      return warn("yellow", "Trouble", `${why}. Retrying; the last known state is served.`);
    }
    case "recovered":
      return warn("green", "Recovered", "all resources are watched again.");
  }
}

// Names of resources and contexts come from servers and files: they must not control the terminal.
function shown(name: string): string {
  return visibleText(name, 200);
}

function shownAll(names: readonly string[]): string {
  return names.map(shown).join(", ");
}

/** `Syncing 3 of 9: pods 4,500 of 12,000, configmaps 1,000`. */
function progressLine(progress: readonly SyncProgress[]): string {
  const open = progress.filter(({ synced }) => !synced);
  const parts = open.map(({ resource, items, remaining }) => {
    const total = remaining === undefined ? "" : ` of ${(items + remaining).toLocaleString("en")}`;
    return items === 0 ? shown(resource) : `${shown(resource)} ${items.toLocaleString("en")}${total}`;
  });
  return `Syncing ${progress.length - open.length} of ${progress.length}: ${parts.join(", ")}`;
}

function printNext(terminal: Terminal, { url, resources }: Listening, options: ServeOptions): void {
  const name = shown(resources.includes("pods") ? "pods" : resources[0]);
  const { token, tokenFile, clusterRbac, tlsCert } = options;
  const needsToken = token !== undefined || tokenFile !== undefined || clusterRbac === true;
  const variable = clusterRbac ? "$TOKEN" : "$LISTWATCH_TOKEN";
  const ca = tlsCert === undefined ? "" : " --certificate-authority=CA.crt";
  const cacert = tlsCert === undefined ? "" : " --cacert CA.crt";
  // An address that means every interface is replaced by loopback.
  const base = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  terminal.print();
  terminal.print(`Open ${terminal.style("cyan", `${base}/`)} in a browser, or try:`);
  if (!needsToken) {
    terminal.print(`  kubectl --server=${base}${ca} get ${name} -A`);
    terminal.print(`  kubectl --server=${base}${ca} get ${name} -A --watch`);
    terminal.print(`  curl${cacert} "${base}/readyz?verbose"`);
  } else if (tlsCert !== undefined) {
    terminal.print(`  kubectl --server=${base}${ca} --token="${variable}" get ${name} -A`);
    terminal.print(`  curl${cacert} -H "Authorization: Bearer ${variable}" ${base}/api`);
  } else {
    terminal.print(`  curl -H "Authorization: Bearer ${variable}" ${base}/api`);
    terminal.print("kubectl sends tokens over https only: use --tls-cert and --tls-key, or a TLS proxy.");
  }
  terminal.print();
  terminal.print("Press Ctrl-C to stop.");
}

function chain(error: Error): string {
  const stacks = errorChain(error).map(({ stack, message }) =>
    (stack ?? message).split("\n").slice(0, 40).map(oneLine).join("\n    ")
  );
  return stacks.join("\ncaused by: ");
}

/** A clean stop takes some milliseconds; after this time the process is ended. */
const STOP_LIMIT_MS = 900;
/** The exit code that shells give to a program ended by SIGINT. */
const EXIT_FORCED = 130;

interface GracefulStop {
  readonly stop: () => unknown;
  readonly graceMs: number;
}

/**
 * Turns the first SIGINT or SIGTERM of this process into a stop; further ones of its kind are ignored. Its
 * signal is aborted by the first SIGINT, and by the first SIGTERM unless there is an `onTerminate`.
 */
function listenForSignals() {
  const controller = new AbortController();
  let graceful: GracefulStop | undefined;
  let isTerminating = false;
  let timer: TimerHandle | undefined;
  const exitAfter = (ms: number): void => {
    realClock.clearTimeout(timer);
    timer = realClock.setTimeout(() => process.exit(EXIT_FORCED), ms);
  };
  const interrupt = (): void => {
    // The terminal sends Ctrl-C to every process, and task runners forward it: it arrives twice.
    if (controller.signal.aborted) return;
    exitAfter(STOP_LIMIT_MS);
    controller.abort();
  };
  const terminate = (): void => {
    if (graceful === undefined) return interrupt();
    if (isTerminating || controller.signal.aborted) return;
    isTerminating = true;
    exitAfter(graceful.graceMs + STOP_LIMIT_MS);
    graceful.stop();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", terminate);
  return {
    signal: controller.signal,
    onTerminate: (given: GracefulStop) => void (graceful = given),
    release() {
      realClock.clearTimeout(timer);
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", terminate);
    },
  };
}

/** The package's version; a test compares it with `deno.json`. */
export const VERSION: string = "0.1.0";

export const LISTWATCH_USAGE: string = `\
listwatch keeps a live, indexed copy of a Kubernetes cluster's state and serves it with Kubernetes' own HTTP API.

Usage:
  listwatch serve [flags]    reflect a cluster and serve the copy
  listwatch version          print the version
  listwatch help serve       print the flags of serve

Try it without a cluster:
  listwatch serve
`;

export const SERVE_USAGE: string = `\
Reflects a cluster with list and watch, and serves the copy: a dashboard at /, and the Kubernetes read API.

Usage:
  listwatch serve [flags]

Cluster (by default a small simulated one in this process):
      --kubeconfig FILE    the cluster of a kubeconfig file
      --context NAME       a context of the kubeconfig instead of its current one; without --kubeconfig,
                           of the files in KUBECONFIG, else of ~/.kube/config
      --seed NUMBER        the seed of the simulated cluster; 1 by default

Resources:
  -r, --resource LIST      resources by the names that kubectl accepts, separated by commas:
                           pods,nodes,deploy,deployments.apps,certificates.v1.cert-manager.io
                           by default namespaces, nodes, pods, services, configmaps, and of apps
                           deployments, replicasets, statefulsets and daemonsets;
                           of the simulated cluster all that it has
  -n, --namespace LIST     reflect only this namespace, or these; all by default
      --storage FORM       how objects are held: texts (the default), or short-texts (in less memory, for more time per
                           request)
      --snapshot DIR       keep the content in this folder: starts while the API server is away, and serves what it
                           had, marked as stale, until the server is back
      --allow-secrets      allow Secrets among the resources; refused by default
      --drop PATHS         fields that are neither stored nor served: 'spec.containers[].env'; with them goes kubectl's
                           last-applied annotation, which has the whole object in it. By default everything is kept

Server and readers:
      --host ADDRESS       the address to listen on; 127.0.0.1 by default; any other than loopback needs
                           --token-file, --token, --cluster-rbac or --allow-anonymous
  -p, --port NUMBER        the port to listen on; 8787 by default, 0 for any free port
      --token-file FILE    the bearer token of readers, 16 characters or more, in a file; it is read again about every
                           minute (a browser asks for it as a password; kubectl sends it over https only)
      --token TEXT         the token itself, which every user of this machine can read in the list of processes;
                           prefer --token-file or LISTWATCH_TOKEN in the environment, which it replaces
      --cluster-rbac       readers present a token of the reflected cluster, and may read what its RBAC allows
                           (TokenReview and SubjectAccessReview: needs system:auth-delegator)
      --reader-namespaces LIST
                           only these namespaces may be read; requests for all namespaces are refused
      --reader-resources LIST
                           with --reader-namespaces: only these resources may be read
      --allow-anonymous    allow a --host other than loopback without a token: everyone who can reach it may read
      --pass-through       send what is not cached (logs, events, other resources, access reviews) to the API server,
                           with the reader's own token
      --pass-through-writes
                           with --pass-through: writes, too
      --freshness MODE     how fresh reads without a resourceVersion are: consistent (as the API server's, or 504),
                           stale-if-error (the default: the last known state, with a warning, for 504), as-is
      --allow-host NAMES   host names of requests without a token, besides IP addresses (against DNS rebinding)
      --cors-origin ORIGINS
                           pages of these origins may read, such as https://dashboard.example; '*' needs a token
      --tls-cert FILE      serve over https with this certificate; both files are reloaded when they change
      --tls-key FILE       the private key of the certificate
      --max-lag DURATION   /readyz fails when the last contact with the API server was longer ago: 90s, 5m;
                           by default 120s, and 11m for an API server without bookmarks
      --max-watches NUMBER
                           how many watches may be open; 20000 by default. A client (user or address) may have as
                           many as are still free: alone half of them, beside another one a third
      --max-watches-per-client NUMBER
                           how many of these may be one client's at most
      --keep-alive DURATION
                           how long a connection stays open for the next request; 75s by default, which is longer
                           than most load balancers keep theirs
      --shutdown-grace DURATION
                           how long answers that are under way may take after SIGTERM; 10s by default
      --metrics            serve /metrics in the text format of Prometheus
      --access-log FORMAT  print each request on stdout when it has ended: line, or json

  -v, --verbose            print all warnings with their causes, and the stacks of errors
  -h, --help
      --version

The cache reads with its own permissions. Without --cluster-rbac, every reader can read everything in the cache.

Ctrl-C (SIGINT) stops it within a second. SIGTERM lets answers end first (--shutdown-grace): /readyz fails, no
connection is accepted, watches end in good order.
Exit codes: 0 stopped; 1 could not start or continue; 2 wrong command line; 130 had to be killed.
`;
