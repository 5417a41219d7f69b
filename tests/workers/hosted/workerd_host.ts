/**
 * A workerd of its own, without miniflare: it starts in milliseconds.
 * @module
 */

import { join } from "node:path";
import { installTools } from "../../../scripts/lib/tools.ts";

/** What is served. */
export interface WorkerdHostOptions {
  /** Text of the configuration, whose socket is named `http`. */
  readonly configuration: string;
  /** Files beside it, by name: their text. */
  readonly files: Readonly<Record<string, string>>;
  /** More arguments of `workerd serve`. */
  readonly args?: readonly string[];
}

/** A workerd that can be killed, and started again with the same data. */
export class WorkerdHost implements AsyncDisposable {
  readonly #program: string;
  readonly #folder: string;
  readonly #args: readonly string[];
  #child: Deno.ChildProcess | undefined;
  /** The URL, such as `http://127.0.0.1:24680`; the same after a restart. */
  readonly url: string;
  /** The text that workerd has printed to stderr. */
  errors = "";

  private constructor(program: string, folder: string, args: readonly string[]) {
    this.#program = program;
    this.#folder = folder;
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const address = `127.0.0.1:${listener.addr.port}`;
    listener.close();
    this.url = `http://${address}`;
    this.#args = ["serve", "workerd.capnp", "--experimental", `--socket-addr=http=${address}`, ...args];
  }

  /** Starts it, with an empty folder `objects` beside its files. Resolves when it listens. */
  static async start({ configuration, files, args = [] }: WorkerdHostOptions): Promise<WorkerdHost> {
    const { workerd } = await installTools();
    const folder = await Deno.makeTempDir({ prefix: "listwatch-workerd-" });
    await Deno.mkdir(join(folder, "objects"));
    for (const [name, text] of Object.entries({ ...files, "workerd.capnp": configuration })) {
      await Deno.writeTextFile(join(folder, name), text);
    }
    const host = new WorkerdHost(workerd, folder, args);
    await host.restart();
    return host;
  }

  /** SIGKILL. Resolves when it has ended. */
  async kill(): Promise<void> {
    try {
      this.#child?.kill("SIGKILL");
    } catch {
      // The process has ended already.
    }
    await this.#child?.status;
  }

  /** Starts it again. Resolves when it listens. */
  async restart(): Promise<void> {
    this.#child = new Deno.Command(this.#program, {
      args: [...this.#args],
      cwd: this.#folder,
      stdout: "null",
      stderr: "piped",
    }).spawn();
    void this.#readErrors(this.#child.stderr);
    const untilMs = performance.now() + 120_000;
    const { hostname, port } = new URL(this.url);
    for (;;) {
      try {
        return (await Deno.connect({ hostname, port: Number(port) })).close();
      } catch (error) {
        if (performance.now() > untilMs) {
          throw new Error(`workerd does not listen: ${this.errors}`, { cause: error });
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
  }

  async #readErrors(stderr: ReadableStream<Uint8Array>): Promise<void> {
    for await (const text of stderr.pipeThrough(new TextDecoderStream())) this.errors += text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
