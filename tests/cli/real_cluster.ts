import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer } from "@listwatch/cache/testing";

/** An in-memory API server on a socket, and a kubeconfig that names it as context `test`. */
export class RealCluster {
  readonly server: InMemoryApiServer;
  readonly url: string;
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly #stop: AbortController;
  readonly #finished: Promise<void>;

  private constructor(parts: {
    readonly server: InMemoryApiServer;
    readonly url: string;
    readonly folder: string;
    readonly stop: AbortController;
    readonly finished: Promise<void>;
  }) {
    this.server = parts.server;
    this.url = parts.url;
    this.#folder = parts.folder;
    this.kubeconfig = join(parts.folder, "config");
    this.#stop = parts.stop;
    this.#finished = parts.finished;
  }

  static async start(): Promise<RealCluster> {
    const stop = new AbortController();
    const server = new InMemoryApiServer();
    const options = { host: "127.0.0.1", port: 0, signal: stop.signal };
    const { url, finished } = await serveFetch(
      (request: Request) => server.fetch(request).catch(closed),
      options,
    );
    const folder = await mkdtemp(join(tmpdir(), "listwatch-cli-"));
    const cluster = new RealCluster({ server, url, folder, stop, finished });
    await writeFile(cluster.kubeconfig, kubeconfigText(url));
    return cluster;
  }

  /** Refuses connections from now on. */
  async stopListening(): Promise<void> {
    this.server.closeWatches();
    this.server.close();
    this.#stop.abort();
    await this.#finished;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopListening();
    await rm(this.#folder, { recursive: true });
  }
}

/** Ignores the rejections of requests that are open when the server is closed: Deno would log them. */
function closed(): Response {
  return new Response(null, { status: 503 });
}

/** A kubeconfig with one context, `test`. */
export function kubeconfigText(server: string): string {
  return `apiVersion: v1
kind: Config
current-context: test
clusters:
  - name: test
    cluster:
      server: ${server}
users:
  - name: test
    user:
      token: s3cret
contexts:
  - name: test
    context:
      cluster: test
      user: test
`;
}
