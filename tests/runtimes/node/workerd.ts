/**
 * Workers in a real workerd, through miniflare.
 * @module
 */

import process from "node:process";

// The parts of miniflare and esbuild that the tests use. Deno does not
// know them, so they are imported by variables.

/** A WebSocket of a response. */
export interface Socket {
  accept(): void;
  close(): void;
  addEventListener(type: "message", listener: (event: { data: string }) => void): void;
}

/** A running workerd. */
export interface Miniflare {
  dispatchFetch(url: string, init?: RequestInit): Promise<Response & { webSocket?: Socket }>;
  dispose(): Promise<void>;
}

interface MiniflareModule {
  Miniflare: new (options: Record<string, unknown>) => Miniflare;
  Response: typeof Response;
}

interface EsbuildModule {
  build(options: Record<string, unknown>): Promise<{ outputFiles: { text: string }[] }>;
}

/** Loads miniflare. */
export async function loadMiniflare(): Promise<MiniflareModule> {
  const name = "miniflare";
  return await import(name);
}

/**
 * A program in TypeScript as one module, with the package that was built, as an installation would find it.
 */
export async function bundle(contents: string): Promise<string> {
  const name = "esbuild";
  const { build } = await import(name) as EsbuildModule;
  const { outputFiles } = await build({
    // The driver runs these suites in tests/runtimes.
    stdin: { contents, loader: "ts", resolveDir: process.cwd() },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker"],
    logLevel: "silent",
  });
  return outputFiles[0].text;
}
