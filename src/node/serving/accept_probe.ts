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
 *
 * @param port Where it listens now.
 * @param listenAgain Called until it succeeds.
 */
export function newAcceptProbe(
  host: string,
  port: () => number,
  listenAgain: () => Promise<void>,
): { observe(server: Server): void; stop(): void } {
  let timer: TimerHandle;
  let hasAccepted = true;
  let isStopped = false;
  /** Whether a connection is made and not accepted, or refused. Otherwise one that fails says nothing. */
  const isDeaf = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ host: loopbackOf(host), port: port() });
      const end = (isDeaf: boolean) => {
        realClock.clearTimeout(timer);
        socket.destroy();
        resolve(isDeaf && !isStopped);
      };
      // Nothing listens: listening again has failed.
      socket.on("error", ({ code }: NodeJS.ErrnoException) => end(code === "ECONNREFUSED"));
      socket.on("connect", () => {
        timer = realClock.setTimeout(() => end(!hasAccepted), ACCEPT_MS);
      });
    });
  const check = async () => {
    // A failure is found again: it has accepted nothing.
    if (!hasAccepted && await isDeaf()) await listenAgain().catch(() => {});
    hasAccepted = false;
  };
  const look = () => {
    if (!isStopped) timer = realClock.setTimeout(() => check().finally(look), LOOK_MS);
  };
  look();
  return {
    observe: (server) => void server.on("connection", () => (hasAccepted = true)),
    stop() {
      isStopped = true;
      realClock.clearTimeout(timer);
    },
  };
}

/** The address by which a process reaches its own server. */
function loopbackOf(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}
