// Runs a bundled suite in a page of headless Chromium, and prints the lines that it reports. Arguments: the bundle. The
// browser is that of CHROMIUM, or the one of @sparticuz/chromium, which is for Linux. Needs Node >= 22.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PAGE = `<!doctype html><script type="module">
const send = (line) => fetch("/report", { method: "POST", body: line });
try {
  const { default: worker } = await import("/suite.mjs");
  const lines = (await worker.fetch(new Request(location.href), {})).body.pipeThrough(new TextDecoderStream());
  let sent = Promise.resolve();
  for await (const line of lines) sent = sent.then(() => send(line));
  await sent;
} catch (error) {
  await send(String(error?.stack ?? error));
}
await fetch("/end", { method: "POST" });
</script>`;

const [bundle] = process.argv.slice(2);
const { promise: ended, resolve: end } = Promise.withResolvers();
const server = createServer(async (request, response) => {
  if (request.url === "/suite.mjs") {
    response.setHeader("Content-Type", "text/javascript");
    response.end(await readFile(bundle));
  } else if (request.method === "POST") {
    for await (const chunk of request) process.stdout.write(chunk);
    response.end();
    if (request.url === "/end") end();
  } else {
    response.setHeader("Content-Type", "text/html");
    response.end(request.url === "/" ? PAGE : "");
  }
}).listen(0, "127.0.0.1");
await once(server, "listening");
const profile = await mkdtemp(join(tmpdir(), "listwatch-chromium-"));
const { default: chromium } = process.env.CHROMIUM
  ? { default: undefined }
  : await import("@sparticuz/chromium");
const browser = spawn(process.env.CHROMIUM || await chromium.executablePath(), [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`],
  // What is in the background is slowed down.
  ...["--disable-background-timer-throttling", "--disable-renderer-backgrounding"],
  `http://127.0.0.1:${server.address().port}/`,
], { stdio: ["ignore", "ignore", "inherit"] });
browser.once("exit", (code) => {
  process.exitCode ||= code === null ? 0 : 1;
  end();
});
await ended;
browser.removeAllListeners("exit");
browser.kill("SIGKILL");
server.closeAllConnections();
server.close();
await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
