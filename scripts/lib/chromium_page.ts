/**
 * A page of headless Chromium, driven by its DevTools protocol: for pictures, and for tests of pages. Uses
 * `node:` modules and web APIs only, as tests on Node use it as well.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"];
const KEY_CODES: Readonly<Record<string, number>> = { Enter: 13, Escape: 27, ArrowUp: 38, ArrowDown: 40 };

interface Answer {
  readonly id?: number;
  /** The name of an event, which answers no call. */
  readonly method?: string;
  readonly params?: {
    readonly encodedDataLength?: number;
    readonly exceptionDetails?: { readonly exception?: { readonly description?: string } };
  };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

/** One page, and the browser that has nothing else open. */
export class ChromiumPage implements AsyncDisposable {
  readonly #browser: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<NonNullable<Answer["result"]>>>();
  #calls = 0;
  #receivedBytes = 0;
  /** What scripts of pages have thrown, and rejected, and no handler has caught. */
  readonly exceptions: string[] = [];

  private constructor(browser: ChildProcess, profile: string, socket: WebSocket) {
    this.#browser = browser;
    this.#profile = profile;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, method, params, result, error } = JSON.parse(String(data)) as Answer;
      if (method === "Runtime.exceptionThrown") {
        this.exceptions.push(params?.exceptionDetails?.exception?.description ?? "");
      }
      if (method === "Network.dataReceived") this.#receivedBytes += params?.encodedDataLength ?? 0;
      const waiting = id === undefined ? undefined : this.#waiting.get(id);
      if (error !== undefined) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result ?? {});
    });
  }

  /** Starts the browser of a path. */
  static async start(executable: string): Promise<ChromiumPage> {
    const profile = await mkdtemp(join(tmpdir(), "listwatch-chromium-"));
    const args = [...FLAGS, `--user-data-dir=${profile}`, "--remote-debugging-port=0", "about:blank"];
    const browser = spawn(executable, args, { stdio: ["ignore", "ignore", "pipe"] });
    const { host } = new URL(await addressOf(browser));
    const targets = await (await fetch(`http://${host}/json`)).json() as {
      type: string;
      webSocketDebuggerUrl: string;
    }[];
    const target = targets.find(({ type }) => type === "page");
    if (target === undefined) throw new Error(`Cannot use ${executable}: it has no page`);
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", () => reject(new Error(`Cannot drive ${executable}`)));
    });
    const page = new ChromiumPage(browser, profile, socket);
    await page.#call("Runtime.enable", {});
    return page;
  }

  /** What the bodies of all responses took on the wire, since `evaluateFirst` was called. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** The JavaScript objects of the page, without garbage. */
  async heapBytes(): Promise<number> {
    await this.#call("HeapProfiler.collectGarbage", {});
    return Number((await this.#call("Runtime.getHeapUsage", {})).usedSize);
  }

  /** Evaluates a script in each page that is opened from now on, before its own; counts what they receive. */
  async evaluateFirst(source: string): Promise<void> {
    await this.#call("Network.enable", {});
    await this.#call("Page.enable", {});
    await this.#call("Page.addScriptToEvaluateOnNewDocument", { source });
  }

  async open(url: string): Promise<void> {
    await this.#call("Page.navigate", { url });
  }

  async resize(width: number, height: number, scheme: "light" | "dark" = "light"): Promise<void> {
    const size = { width, height, deviceScaleFactor: 1, mobile: width < 500 };
    await this.#call("Emulation.setDeviceMetricsOverride", size);
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.#call("Emulation.setEmulatedMedia", { features });
  }

  /** The value of an expression in the page, as JSON; promises are waited for. */
  async evaluate<T>(expression: string): Promise<T> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#call("Runtime.evaluate", options);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value: T }).value;
  }

  /** Presses a key: a character, or one with a name, such as `Enter`. */
  async press(key: string): Promise<void> {
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const windowsVirtualKeyCode = KEY_CODES[key] ?? key.toUpperCase().charCodeAt(0);
    const event = { key, windowsVirtualKeyCode, ...(text && { text }) };
    await this.#call("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.#call("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  async type(text: string): Promise<void> {
    await this.#call("Input.insertText", { text });
  }

  /** The picture of what is seen, as PNG. */
  async picture(): Promise<Uint8Array> {
    const { data } = await this.#call("Page.captureScreenshot", { format: "png" });
    return Uint8Array.from(atob(String(data)), (character) => character.charCodeAt(0));
  }

  async #call(method: string, params: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const id = ++this.#calls;
    const waiting = Promise.withResolvers<NonNullable<Answer["result"]>>();
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method, params }));
    try {
      return await waiting.promise;
    } finally {
      this.#waiting.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    const ended = once(this.#browser, "exit");
    this.#browser.kill("SIGKILL");
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Where the protocol is spoken, which the browser prints. */
async function addressOf({ stderr }: ChildProcess): Promise<string> {
  let text = "";
  for await (const chunk of stderr!.iterator({ destroyOnReturn: false })) {
    text += chunk;
    const found = /DevTools listening on (ws:\S+)/.exec(text)?.[1];
    if (found === undefined) continue;
    stderr!.resume();
    return found;
  }
  throw new Error(`Cannot start Chromium: ${text}`);
}
