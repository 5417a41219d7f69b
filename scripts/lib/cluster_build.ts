/**
 * Builds the Go programs of tests/cluster, once, into a cache folder of the user.
 *
 * The folder is `$XDG_CACHE_HOME/listwatch/cluster` (or `~/.cache/listwatch/cluster`), with one
 * folder per version of a program's sources; the API server has 110 MB, the others 50. Go's own
 * caches make a second build of changed sources quick.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { ClusterUnavailableError, GO_ENVIRONMENT, integrationTests, moduleDir, runGo } from "./go_command.ts";

export { ClusterUnavailableError } from "./go_command.ts";

const progressPeriodMs = 10_000;
const keepUnusedMs = 30 * 24 * 3600_000;

/**
 * The programs: the API server, clients of it, what it calls of a node, and suites of Kubernetes' own tests.
 */
export type GoProgram = "cluster" | "kubectl" | "informer" | "kubelet" | "fault_client" | GoSuite;

/** The suites. */
export type GoSuite =
  | "e2e"
  | "storage"
  | "controller_runtime"
  | "client_integration"
  | "apimachinery_integration";

/** What every run of the integration tests needs. */
export const GO_PROGRAMS: readonly GoProgram[] = ["cluster", "kubectl", "informer", "kubelet"];

/** What `--suites` needs besides. */
export const GO_SUITES: readonly GoSuite[] = [
  "e2e",
  "storage",
  "controller_runtime",
  "client_integration",
  "apimachinery_integration",
];

/** What each one is for people, and how long it takes to build with empty caches of Go. */
const DESCRIPTIONS: Record<GoProgram, { readonly title: string; readonly buildTime: string }> = {
  cluster: { title: "kube-apiserver", buildTime: "5 to 10 minutes" },
  kubectl: { title: "kubectl", buildTime: "1 to 3 minutes" },
  informer: { title: "client-go's informers", buildTime: "1 to 3 minutes" },
  kubelet: { title: "a kubelet for tests", buildTime: "1 to 2 minutes" },
  fault_client: { title: "client-go's informer under faults", buildTime: "1 to 3 minutes" },
  e2e: { title: "Kubernetes' end-to-end tests", buildTime: "2 to 4 minutes" },
  storage: { title: "the suite of kube-apiserver's storage", buildTime: "1 to 2 minutes" },
  controller_runtime: { title: "controller-runtime's tests of its cache", buildTime: "1 to 2 minutes" },
  client_integration: { title: "Kubernetes' integration tests of client-go", buildTime: "1 to 3 minutes" },
  apimachinery_integration: {
    title: "Kubernetes' integration tests of watches",
    buildTime: "1 to 3 minutes",
  },
};

export interface EnsureGoProgramOptions {
  /** Receives progress lines while it builds. Default: standard error. */
  log?: (line: string) => void;
  /** Ends the build. */
  signal?: AbortSignal;
}

/**
 * Returns the path of a program of tests/cluster, building it first where that is needed:
 * minutes on two cores with empty caches of Go, under 30 seconds with warm ones. Processes
 * that need it at the same time wait for one build.
 *
 * @throws {ClusterUnavailableError} if Go is missing or too old, or the build fails
 */
export async function ensureGoProgram(
  program: GoProgram,
  options: EnsureGoProgramOptions = {},
): Promise<string> {
  const log = options.log ?? console.error;
  const sources = await readSources(program);
  const cacheDir = clusterCacheDir();
  const binary = join(cacheDir, sources.hash, Deno.build.os === "windows" ? `${program}.exe` : program);
  if (!(await exists(binary))) {
    await Deno.mkdir(dirname(binary), { recursive: true });
    // Freed by the system also when its holder dies.
    using lock = await Deno.open(join(cacheDir, sources.hash, "lock"), { create: true, write: true });
    const waiting = setTimeout(
      () => log(`waiting for another process that builds ${DESCRIPTIONS[program].title}`),
      1000,
    );
    try {
      await lock.lock(true);
    } finally {
      clearTimeout(waiting);
    }
    if (!(await exists(binary))) await build(sources, binary, { log, signal: options.signal });
  }
  const now = new Date();
  await Deno.utime(binary, now, now);
  await removeUnused(cacheDir, dirname(binary), now.getTime());
  return binary;
}

/** The folder that holds the built binaries. */
export function clusterCacheDir(): string {
  const home = Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE");
  const cacheHome = Deno.env.get("XDG_CACHE_HOME") || (home ? join(home, ".cache") : undefined);
  if (!cacheHome) throw new ClusterUnavailableError("Cannot find a cache folder: set XDG_CACHE_HOME or HOME");
  return join(cacheHome, "listwatch", "cluster");
}

interface Sources {
  program: GoProgram;
  hash: string;
  /** The version of Kubernetes, without "v": "1.36.3". */
  version: string;
  /** The Go version that go.mod asks for. */
  goMajor: number;
  goMinor: number;
  flags: string[];
}

/** The package whose own tests a program is. */
const TESTED_PACKAGES: Partial<Record<GoProgram, string>> = {
  controller_runtime: "sigs.k8s.io/controller-runtime/pkg/cache",
};

/** The folder in test/integration of Kubernetes whose tests a program is. */
const INTEGRATION_TESTS: Partial<Record<GoProgram, string>> = {
  client_integration: "client",
  apimachinery_integration: "apimachinery",
};

/** The folder of a program's package, in the one module. */
function packageOf(program: GoProgram): string {
  return program === "cluster"
    ? "."
    : `./${INTEGRATION_TESTS[program] === undefined ? program : "integration"}`;
}

/** The version of Kubernetes that a go.mod requires, without "v"; also that of a pre-release. */
export function kubernetesVersionOf(goMod: string): string | undefined {
  return /^\s*k8s\.io\/kubernetes v(\d+\.\d+\.\d+(?:-\S+)?)$/m.exec(goMod)?.[1];
}

async function readSources(program: GoProgram): Promise<Sources> {
  const goMod = await Deno.readTextFile(join(moduleDir, "go.mod"));
  const version = kubernetesVersionOf(goMod);
  const go = /^go (\d+)\.(\d+)/m.exec(goMod);
  if (version === undefined || go === null) {
    throw new Error(`${join(moduleDir, "go.mod")} names no version of Go or of k8s.io/kubernetes`);
  }
  const [major, minor] = version.split(".");
  // Unset, the server calls itself v0.0.0-master, and clients refuse to work with it.
  const versionPackage = "k8s.io/component-base/version";
  const linkerFlags = [
    "-s",
    "-w",
    `-X ${versionPackage}.gitVersion=v${version}`,
    `-X ${versionPackage}.gitMajor=${major}`,
    `-X ${versionPackage}.gitMinor=${minor}`,
  ].join(" ");
  // More compilers at once need more memory than a small machine has.
  const parallel = Math.max(1, Math.min(navigator.hardwareConcurrency, 4));
  const flags = ["-trimpath", "-buildvcs=false", `-ldflags=${linkerFlags}`];

  const names = ["go.mod", "go.sum"];
  for await (const { name } of Deno.readDir(join(moduleDir, packageOf(program)))) {
    if (name.endsWith(".go")) names.push(`${packageOf(program)}/${name}`);
  }
  names.sort();
  let content = JSON.stringify([Deno.build.target, flags]);
  for (const name of names) content += `\n--- ${name}\n${await Deno.readTextFile(join(moduleDir, name))}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content)));
  return {
    program,
    hash: digest.toHex().slice(0, 16),
    version,
    goMajor: Number(go[1]),
    goMinor: Number(go[2]),
    flags: [...flags, "-p", String(parallel)],
  };
}

async function build(
  sources: Sources,
  binary: string,
  options: { log: (line: string) => void; signal: AbortSignal | undefined },
): Promise<void> {
  const { log, signal } = options;
  await checkGo(sources);
  const startedMs = Date.now();
  const { title, buildTime } = DESCRIPTIONS[sources.program];
  const packagePath = packageOf(sources.program);
  log(`building ${title} v${sources.version} for tests (once; ${buildTime} if Go has to compile all of it)`);
  let downloads = 0;
  let compiled = 0;
  let total = 0;
  const tempDir = await Deno.makeTempDir({ prefix: "listwatch-build-" });
  const progress = setInterval(() => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    const what = total === 0
      ? `${downloads} modules downloaded`
      : compiled < total
      ? `${compiled} of ${total} packages compiled`
      : "linking";
    log(`building ${title} v${sources.version}: ${what}, ${seconds} s`);
  }, progressPeriodMs);
  try {
    // Downloads missing modules, and counts the packages to compile.
    await runGo(["list", "-deps", packagePath], {
      signal,
      onOut: () => total++,
      onError: (line) => {
        if (line.startsWith("go: downloading ")) downloads++;
      },
    });
    // The name is final only when the file is complete.
    const unfinished = `${binary}.unfinished`;
    const tested = TESTED_PACKAGES[sources.program];
    const integration = INTEGRATION_TESTS[sources.program];
    const what = integration !== undefined
      ? await integrationTests(integration, tempDir)
      : tested !== undefined
      ? ["test", "-c", tested]
      : ["build", "-v", packagePath];
    const [command, ...args] = what;
    await runGo([command, ...sources.flags, "-o", unfinished, ...args], {
      signal,
      onError: (line) => {
        if (!line.startsWith("go: ")) compiled++;
      },
    });
    await Deno.rename(unfinished, binary);
  } finally {
    clearInterval(progress);
    await Deno.remove(tempDir, { recursive: true });
  }
  log(`built ${binary} in ${Math.round((Date.now() - startedMs) / 1000)} s`);
}

async function checkGo(sources: Sources): Promise<void> {
  const needed = `${sources.goMajor}.${sources.goMinor}`;
  const remedy = `install Go >= ${needed} or set LISTWATCH_TEST_KUBECONFIG`;
  let version: string;
  try {
    const command = new Deno.Command("go", {
      args: ["env", "GOVERSION"],
      env: GO_ENVIRONMENT,
      stderr: "null",
    });
    version = new TextDecoder().decode((await command.output()).stdout).trim();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new ClusterUnavailableError(
      `Go is needed to build a real kube-apiserver and its clients: ${remedy}`,
      {
        cause: error,
      },
    );
  }
  const found = /go(\d+)\.(\d+)/.exec(version);
  const isRecent = found !== null && (Number(found[1]) > sources.goMajor ||
    (Number(found[1]) === sources.goMajor && Number(found[2]) >= sources.goMinor));
  if (!isRecent) {
    throw new ClusterUnavailableError(
      `Go ${version || "of unknown version"} is too old to build kube-apiserver: ${remedy}`,
    );
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Removes binaries of other sources that no run asked for in a month. */
async function removeUnused(cacheDir: string, usedDir: string, nowMs: number): Promise<void> {
  for await (const entry of Deno.readDir(cacheDir)) {
    const dir = join(cacheDir, entry.name);
    if (!entry.isDirectory || dir === usedDir) continue;
    let newestMs = 0;
    for await (const file of Deno.readDir(dir)) {
      const { mtime } = await Deno.stat(join(dir, file.name));
      newestMs = Math.max(newestMs, mtime?.getTime() ?? nowMs);
    }
    if (nowMs - newestMs > keepUnusedMs) await Deno.remove(dir, { recursive: true });
  }
}
