/**
 * The read API over soaked informers, on a socket, and its readers: well-behaved, slow, stuck, vanishing,
 * with a permission that is revoked and granted, and with tokens that expire.
 * @module
 */

import {
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  type Running,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { type ReadApi, readApi } from "@listwatch/cache/hono";
import { type ServedFetch, serveFetch } from "@listwatch/cache/node";
import { newReflectorBackoff, realClock } from "@listwatch/cache/reflector";
import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { eventually } from "../cluster/eventually.ts";
import type { SoakedInformer } from "./soaked_informer.ts";

/** What the readers did. */
export interface ReaderCounts {
  /** Connections of bad readers. */
  bad: number;
  /** Answers of 429. */
  refused: number;
  /** Answers of 403. */
  forbidden: number;
  /** Watches that ended because a permission was revoked. */
  ended: number;
  /** Tokens that replaced an expired one. */
  renewed: number;
}

const TOKEN_LIFE_MS = 8_000;
const BAD_PAUSE_MS = 150;
const PERMISSION_PAUSE_MS = 3_000;
const MOST_OPEN = 60;
const WATCHES_PER_CLIENT = 12;
const WRITE_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 5_000;

/** The kinds of bad readers. */
const MANNERS = ["slow", "stuck", "vanishing", "half a request"] as const;

/** A well-behaved reader: an informer of the served copy. */
interface GoodReader {
  readonly name: string;
  readonly served: SoakedInformer;
  readonly informer: SharedIndexInformer<KubernetesObject>;
  readonly running: Running;
}

/** The served copies and their readers. */
export class ServedReaders {
  readonly counts: ReaderCounts = { bad: 0, refused: 0, forbidden: 0, ended: 0, renewed: 0 };
  readonly #served: readonly SoakedInformer[];
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #allowed = new Set(["jane", "joe", "tess", "stranger"]);
  readonly #good: GoodReader[] = [];
  readonly #open = new Set<Deno.TcpConn>();
  #api: ReadApi | undefined;
  #server: ServedFetch | undefined;
  #tessExpiresAtMs = 0;

  /** @param served The informers to serve; one of each resource. */
  constructor(served: readonly SoakedInformer[], random: () => number) {
    this.#served = served;
    this.#random = random;
  }

  /** Listens, and starts the well-behaved readers. */
  async start(): Promise<void> {
    const api = readApi({
      resources: this.#served.map(({ informer, resource }) => ({ informer, resource })),
      authenticate: (c) => {
        const [name, expiresAtMs] = (c.req.header("Authorization") ?? "").split(" at ");
        if (expiresAtMs === undefined) return { name };
        return { name, expiresAtMs: Number(expiresAtMs) };
      },
      authorize: ({ user }) => this.#allowed.has(user?.name ?? ""),
      // Full after a minute, so that a reader that is away for longer must list.
      eventWindow: 300,
      maxWatchesPerClient: WATCHES_PER_CLIENT,
      writeTimeoutMs: WRITE_TIMEOUT_MS,
      watchLifetimeMs: 45_000,
      watchRecheckMs: 10_000,
      bookmarkIntervalMs: 5_000,
      logger: silentLogger,
    });
    this.#api = api;
    this.#server = await serveFetch(api.fetch, {
      signal: this.#stop.signal,
      headersTimeoutMs: HEADERS_TIMEOUT_MS,
      logger: silentLogger,
    });
    for (const served of this.#served) {
      for (const name of ["jane", "joe", "tess"]) this.#good.push(this.#newGoodReader(name, served));
    }
  }

  /** Runs bad readers, and revokes and grants permissions, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#openBadReaders(signal), this.#changePermissions(signal)]);
  }

  /**
   * Waits until each well-behaved reader equals the served store; returns the differences after the timeout.
   */
  async compare(timeoutMs: number): Promise<string[]> {
    const differences: string[] = [];
    await Promise.all(this.#good.map(async ({ name, served, informer }) => {
      try {
        await eventually(() => {
          const held = summarize(informer.indexer.list());
          const expected = summarize(served.informer.indexer.list());
          if (held.size !== expected.size) throw new Error(`${held.size} objects, not ${expected.size}`);
          for (const [key, state] of expected) {
            if (held.get(key) !== state) {
              throw new Error(`${key} is ${held.get(key) ?? "absent"}, and served as ${state}`);
            }
          }
        }, { timeoutMs });
      } catch (error) {
        differences.push(
          `the reader ${name} of ${served.name}: ${(error as Error).message}; ` +
            JSON.stringify(informer.status()),
        );
      }
    }));
    return differences;
  }

  /** All go, and the server ends. */
  async stop(): Promise<void> {
    await Promise.all(this.#good.map(({ running }) => running.stop()));
    for (const connection of this.#open) close(connection);
    this.#stop.abort();
    await this.#server?.finished;
  }

  #newGoodReader(name: string, served: SoakedInformer): GoodReader {
    const random = this.#random;
    const cluster = newCluster({
      server: this.#server!.url,
      fetch: async (input, init) => {
        const headers = new Headers(init?.headers);
        headers.set("Authorization", name === "tess" ? this.#tessToken() : name);
        const response = await fetch(input, { ...init, headers });
        this.#count(response.status);
        return response;
      },
    });
    const backoff = { durationMs: 300, factor: 2, capMs: 3_000, jitter: 1 };
    const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>(served.resource), {
      name: `${name} of ${served.name}`,
      logger: silentLogger,
      reflector: {
        random,
        watchErrorHandler: () => {},
        backoff: newReflectorBackoff({ clock: realClock, random, backoff }),
      },
    });
    return { name, served, informer, running: informer.start() };
  }

  #tessToken(): string {
    if (this.#tessExpiresAtMs - Date.now() < 500) {
      this.#tessExpiresAtMs = Date.now() + TOKEN_LIFE_MS;
      this.counts.renewed++;
    }
    return `tess at ${this.#tessExpiresAtMs}`;
  }

  async #changePermissions(signal: AbortSignal): Promise<void> {
    const pause = () =>
      sleepUnlessAborted(this.#random() * 2 * PERMISSION_PAUSE_MS, { clock: realClock, signal });
    while (await pause()) {
      this.#allowed.delete("joe");
      this.counts.ended += this.#api!.endWatches((user) => user?.name === "joe");
      await pause();
      this.#allowed.add("joe");
    }
  }

  async #openBadReaders(signal: AbortSignal): Promise<void> {
    while (
      await sleepUnlessAborted(this.#random() * 2 * BAD_PAUSE_MS, { clock: realClock, signal })
    ) {
      // The oldest disconnects silently.
      if (this.#open.size >= MOST_OPEN) {
        const [oldest] = this.#open;
        this.#open.delete(oldest);
        close(oldest);
      }
      await this.#openBadReader(MANNERS[Math.floor(this.#random() * MANNERS.length)]);
    }
  }

  async #openBadReader(manner: typeof MANNERS[number]): Promise<void> {
    const { port } = this.#server!;
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    this.#open.add(connection);
    this.counts.bad++;
    const resource = this.#served[Math.floor(this.#random() * this.#served.length)].resource;
    const path = `/api/${resource}${this.#random() < 0.5 ? "" : "?watch=1&allowWatchBookmarks=1"}`;
    const head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: stranger\r\n`;
    const request = manner === "half a request" ? head : `${head}\r\n`;
    const goesAfterMs = this.#random() * 2_000;
    try {
      await connection.write(new TextEncoder().encode(request));
    } catch {
      return; // closed meanwhile
    }
    if (manner !== "half a request") this.#readBadly(connection, manner, goesAfterMs);
  }

  async #readBadly(connection: Deno.TcpConn, manner: string, goesAfterMs: number): Promise<void> {
    const bytes = new Uint8Array(16);
    try {
      const length = await connection.read(bytes) ?? 0;
      const line = new TextDecoder().decode(bytes.subarray(0, length));
      this.#count(Number(/^HTTP\/1\.1 (\d+)/.exec(line)?.[1]));
      if (manner === "stuck") return;
      if (manner === "slow") {
        while (await connection.read(bytes) !== null) {
          await sleepUnlessAborted(1_000, { clock: realClock, signal: this.#stop.signal });
        }
      } else await sleepUnlessAborted(goesAfterMs, { clock: realClock, signal: this.#stop.signal });
    } catch {
      // The connection was reset, or closed here.
    }
    this.#open.delete(connection);
    close(connection);
  }

  #count(status: number): void {
    if (status === 429) this.counts.refused++;
    if (status === 403) this.counts.forbidden++;
  }
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // The watch is closed.
  }
}

function summarize(objects: Iterable<KubernetesObject>): Map<string, string> {
  const summary = new Map<string, string>();
  for (const object of objects) {
    summary.set(metaNamespaceKey(object), `${object.metadata?.uid} at ${object.metadata?.resourceVersion}`);
  }
  return summary;
}
