import type { Server } from "node:http";
import { connect } from "node:net";
import { realClock, type TimerHandle } from "../../util/clock.ts";

// How often it looks, and how long an accepted connection may be on its way.
const LOOK_MS = 3_000;
const ACCEPT_MS = 1_000;

/**
 * Listens again where a server has stopped to accept. Deno's ends silently when the process has no file
 * descriptor left for a connection, and stays so when it has them again: nothing but a connection shows it.
 * One is made to the server's own port while no others come.
 */
export class AcceptProbe {
  readonly #host: string;
  readonly #port: () => number;
  readonly #listenAgain: () => Promise<void>;
  #timer: TimerHandle | undefined;
  #hasAccepted = true;
  #isStopped = false;

  /**
   * @param port Where it listens now.
   * @param listenAgain Called until it succeeds.
   */
  constructor(host: string, port: () => number, listenAgain: () => Promise<void>) {
    this.#host = host;
    this.#port = port;
    this.#listenAgain = listenAgain;
    this.#look();
  }

  observe(server: Server): void {
    server.on("connection", () => (this.#hasAccepted = true));
  }

  stop(): void {
    this.#isStopped = true;
    realClock.clearTimeout(this.#timer);
  }

  #look(): void {
    if (this.#isStopped) return;
    this.#timer = realClock.setTimeout(() => this.#check().finally(() => this.#look()), LOOK_MS);
  }

  async #check(): Promise<void> {
    if (!this.#hasAccepted && await this.#isDeaf()) {
      // A failure is found again: it has accepted nothing.
      await this.#listenAgain().catch(() => {});
    }
    this.#hasAccepted = false;
  }

  /** Whether a connection is made and not accepted, or refused. Otherwise one that fails says nothing. */
  #isDeaf(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect({ host: loopbackOf(this.#host), port: this.#port() });
      const end = (isDeaf: boolean) => {
        realClock.clearTimeout(this.#timer);
        socket.destroy();
        resolve(isDeaf && !this.#isStopped);
      };
      // Nothing listens: listening again has failed.
      socket.on("error", ({ code }: NodeJS.ErrnoException) => end(code === "ECONNREFUSED"));
      socket.on("connect", () => {
        this.#timer = realClock.setTimeout(() => end(!this.#hasAccepted), ACCEPT_MS);
      });
    });
  }
}

/** The address by which a process reaches its own server. */
function loopbackOf(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}
