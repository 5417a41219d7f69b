/**
 * Calls of Go in the module of tests/cluster.
 * @module
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the module. */
export const moduleDir: string = fileURLToPath(new URL("../../tests/cluster", import.meta.url));

/** Why the test cluster cannot be had, and what to do about it. */
export class ClusterUnavailableError extends Error {
  override readonly name = "ClusterUnavailableError";
}

/** Set for every call of Go, so that a user's own settings change nothing. */
export const GO_ENVIRONMENT: Readonly<Record<string, string>> = {
  GOTOOLCHAIN: "local",
  GOFLAGS: "",
  GOWORK: "off",
  CGO_ENABLED: "0",
};

interface RunGoOptions {
  signal: AbortSignal | undefined;
  onOut?: (line: string) => void;
  onError: (line: string) => void;
}

/**
 * Runs Go in the module.
 *
 * @throws {ClusterUnavailableError} It failed.
 */
export async function runGo(args: string[], options: RunGoOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const child = new Deno.Command("go", {
    args,
    cwd: moduleDir,
    env: GO_ENVIRONMENT,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: options.signal,
  }).spawn();
  const lastLines: string[] = [];
  const [status] = await Promise.all([
    child.status,
    eachLine(child.stdout, (line) => options.onOut?.(line)),
    eachLine(child.stderr, (line) => {
      options.onError(line);
      lastLines.push(line);
      if (lastLines.length > 15) lastLines.shift();
    }),
  ]);
  options.signal?.throwIfAborted();
  if (!status.success) {
    throw new ClusterUnavailableError(
      `Cannot build the test cluster: "go ${args[0]}" in ${moduleDir} ended with code ${status.code}:\n${
        lastLines.join("\n")
      }`,
    );
  }
}

/**
 * The arguments of Go that build integration tests of Kubernetes. Each of them starts an API server by a
 * package of Kubernetes; Go is made to see them in our module, with our package `integration` in its place.
 */
export async function integrationTests(folder: string, tempDir: string): Promise<string[]> {
  let kubernetes = "";
  await runGo(["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"], {
    signal: undefined,
    onOut: (line) => kubernetes = line,
    onError() {},
  });
  const from = join(kubernetes, "test", "integration", folder);
  const replaced: Record<string, string> = {};
  for await (const { name } of Deno.readDir(from)) {
    if (!name.endsWith("_test.go")) continue;
    const text = await Deno.readTextFile(join(from, name));
    const path = join(tempDir, name);
    await Deno.writeTextFile(
      path,
      text.replaceAll(`"${SERVER_PACKAGE}"`, '"listwatch/tests/cluster/integration"'),
    );
    replaced[join(moduleDir, "integration", folder, name)] = path;
  }
  const overlay = join(tempDir, "overlay.json");
  await Deno.writeTextFile(overlay, JSON.stringify({ Replace: replaced }));
  // Vet would look for the folder.
  return ["test", "-c", "-vet=off", `-overlay=${overlay}`, `./integration/${folder}`];
}

const SERVER_PACKAGE = "k8s.io/kubernetes/cmd/kube-apiserver/app/testing";

/** Calls `take` with each line of a stream of UTF-8 text, until the stream ends. */
export async function eachLine(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (line: string) => void,
): Promise<void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
  if (rest !== "") take(rest);
}
