/**
 * The scripted server of the suite `reflector` on a real socket, for runtimes that can open one.
 *
 * It writes HTTP by hand: a script wants connections that are cut in
 * the middle, and a port that refuses for a while.
 * @module
 */

import { createServer, type Server, type Socket } from "node:net";
import type { Answer, ScriptedServer } from "../suites/reflector.ts";

/** Starts it on a free port of 127.0.0.1. */
export async function serveOnSocket(answer: Answer): Promise<ScriptedServer> {
  const sockets = new Set<Socket>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  let server: Server | undefined;
  let closed = false;
  const after = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(() => (timers.delete(timer), resolve()), ms);
      timers.add(timer);
    });
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      const opened = createServer((socket) => serve(socket));
      server = opened;
      opened.once("error", reject);
      opened.listen(port, "127.0.0.1", () => resolve((opened.address() as { port: number }).port));
    });
  const refuse = async (ms: number | undefined) => {
    if (ms === undefined) return;
    const stopped = server!;
    const stop = new Promise<void>((resolve) => stopped.close(() => resolve()));
    await Promise.race([stop, after(5)]); // no longer listens, even while a connection is open
    after(ms).then(() => closed ? undefined : listen(port));
  };
  const serve = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let head = "";
    const onData = (data: Uint8Array) => {
      head += new TextDecoder().decode(data);
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", onData);
      socket.resume(); // so that the client's end is noticed
      const target = head.slice(head.indexOf(" ") + 1, head.indexOf(" HTTP/"));
      respond(socket, answer(new URL(target, `http://127.0.0.1:${port}`))).catch(() => socket.destroy());
    };
    socket.on("data", onData);
  };
  const respond = async (socket: Socket, response: ReturnType<Answer>) => {
    const { status, body, rawBody, frames, end, endDelayMs = 0, thenRefuseMs, hangup } = response;
    if (hangup) {
      await refuse(thenRefuseMs);
      socket.destroy();
      return;
    }
    const headers = { "Content-Type": "application/json", ...response.headers };
    const lines = [`HTTP/1.1 ${status} Scripted`, "Connection: close"];
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    if (end === undefined) {
      const bytes = new TextEncoder().encode(rawBody ?? JSON.stringify(body));
      await refuse(thenRefuseMs);
      socket.write(`${lines.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
      socket.end(bytes);
      return;
    }
    socket.write(`${lines.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    for (const frame of frames ?? []) {
      const bytes = new TextEncoder().encode("raw" in frame ? frame.raw : `${JSON.stringify(frame)}\n`);
      socket.write(`${bytes.length.toString(16)}\r\n`);
      socket.write(bytes);
      socket.write("\r\n");
      await after(0);
    }
    response.onSent?.();
    await after(endDelayMs);
    if (end === "open") return;
    if (end === "abort") await after(50);
    await refuse(thenRefuseMs);
    if (end === "close") socket.end("0\r\n\r\n");
    else socket.destroy();
  };
  const port = await listen(0);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      server?.close();
    },
  };
}
