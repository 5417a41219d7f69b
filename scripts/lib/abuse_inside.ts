/**
 * Loaded into the server of `scripts/abuse.ts` before the program: measures how late its timers are, and
 * writes that to the file that `ABUSE_DELAYS` names when the process ends.
 *
 * @module
 */

import { writeFileSync } from "node:fs";
import process from "node:process";

const PERIOD_MS = 10;

const delays: [atMs: number, lateMs: number][] = [];
let lastMs = performance.now();
setInterval(() => {
  const nowMs = performance.now();
  delays.push([performance.timeOrigin + nowMs, nowMs - lastMs - PERIOD_MS]);
  lastMs = nowMs;
}, PERIOD_MS).unref();
process.on("exit", () => writeFileSync(process.env.ABUSE_DELAYS!, JSON.stringify(delays)));
