import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import process from "node:process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { newAcceptProbe } from "../../src/node/serving/accept_probe.ts";
import { realClock } from "../../src/util/clock.ts";
import { until } from "../until.ts";

const PROGRAM = fileURLToPath(new URL("./served_program.ts", import.meta.url));
const LIMIT = 512;
const skip = process.platform === "linux"
  ? false
  : "the limit of file descriptors is set by a shell of Linux";

describe("newAcceptProbe", { skip }, () => {
  it("lets a server listen again, until it can, after it had no file descriptor left for connections, and says so", async () => {
    const child = spawn("sh", ["-c", 'ulimit -n "$LIMIT"; exec "$DENO" run -A --no-check "$PROGRAM"'], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, DENO: process.execPath, PROGRAM, LIMIT: String(LIMIT) },
    });
    let text = "";
    child.stdout.on("data", (chunk) => (text += String(chunk)));
    const shows = async (pattern: RegExp) => {
      for (;;) {
        const found = pattern.exec(text);
        if (found !== null) return found;
        await new Promise((resolve) => child.stdout.once("data", resolve));
      }
    };
    const sockets: Socket[] = [];
    try {
      const port = Number((await shows(/serving http:\/\/127\.0\.0\.1:(\d+)/))[1]);
      for (let i = 0; i < LIMIT + 200; i++) {
        const socket = connect({ host: "127.0.0.1", port });
        socket.on("error", () => {});
        socket.write("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        sockets.push(socket);
      }
      // The next connections wait, and find none left.
      for (let full = 0; full < 5;) {
        const { length } = await readdir(`/proc/${child.pid}/fd`);
        full = length >= LIMIT ? full + 1 : 0;
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      for (const socket of sockets) socket.destroy();
      await shows(/accepts no connections any more: listening again/);
      for (let text = ""; text !== "here";) {
        text = await fetch(`http://127.0.0.1:${port}/`).then((response) => response.text(), () => "");
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("close", resolve));
    }
  });
});

describe("newAcceptProbe, where nothing listens", () => {
  for (const isStopped of [false, true]) {
    it(isStopped ? "does nothing more once it is stopped" : "tries again and again", async () => {
      const { setTimeout: realTimeout, clearTimeout: clearReal } = realClock;
      const looks: (() => void)[] = [];
      Object.assign(realClock, { setTimeout: (look: () => void) => looks.push(look), clearTimeout() {} });
      try {
        const server = createServer();
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const { port } = server.address() as AddressInfo;
        await new Promise((resolve) => server.close(resolve));
        let tries = 0;
        const probe = newAcceptProbe("127.0.0.1", () => port, () => {
          tries++;
          return Promise.reject(new Error("no file descriptor"));
        });
        looks.shift()!();
        await until(() => looks.length === 1);
        looks.shift()!();
        if (isStopped) probe.stop();
        // The connection of the probe is refused before this one.
        const client = connect({ host: "127.0.0.1", port });
        await new Promise((resolve) => client.on("error", () => {}).once("close", resolve));
        if (!isStopped) await until(() => looks.length === 1);
        else await new Promise((resolve) => setTimeout(resolve, 20));
        assert.deepEqual([tries, looks.length], isStopped ? [0, 0] : [1, 1]);
      } finally {
        Object.assign(realClock, { setTimeout: realTimeout, clearTimeout: clearReal });
      }
    });
  }
});
