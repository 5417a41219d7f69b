/**
 * A read-only copy of a Kubernetes resource in a page: one watch over a WebSocket keeps it, and resumes after cuts where it
 * was.
 *
 * @module
 */

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";
// The server sends a bookmark each 30 s.
const SILENCE_MS = 90_000;
const CONFIRMED_MESSAGES = 32;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/**
 * @typedef {{ metadata: { name: string, namespace?: string, resourceVersion: string, annotations?: Record<string, string> } }} KubernetesObject
 */

/**
 * @typedef {object} Options
 * @property {string} url The collection, such as `wss://cache.example/api/v1/pods`.
 * @property {string} [token] What the reader presents, as a subprotocol: a page cannot set headers of a WebSocket.
 * @property {(url: string, protocols: string[]) => WebSocket} [newSocket]
 * @property {(callback: () => void, ms: number) => number} [setTimeout]
 * @property {(timer: number | undefined) => void} [clearTimeout]
 * @property {() => number} [now]
 * @property {() => number} [random]
 */

/** Dispatches `change` when its content or its state has changed. */
export class WatchedStore extends EventTarget {
  /**
   * The objects by `namespace/name`.
   * @type {ReadonlyMap<string, KubernetesObject>}
   */
  objects = new Map();
  /**
   * `live`: it follows the server. `stale`: it did, and shows the last state that it knows.
   * @type {"connecting" | "live" | "stale" | "stopped"}
   */
  state = "connecting";
  /** Up to where it has read; `""` before the first list. */
  resourceVersion = "";
  /** @type {Required<Omit<Options, "token">> & Options} */
  #options;
  /** @type {Map<string, KubernetesObject> | undefined} */
  #incoming;
  /** @type {WebSocket | undefined} */
  #socket;
  #lastContactMs = -Infinity;
  #failures = 0;
  #messages = 0;
  /** @type {number | undefined} */
  #timer;

  /** @param {Options} options */
  constructor(options) {
    super();
    this.#options = {
      newSocket: (url, protocols) => new WebSocket(url, protocols),
      setTimeout: (callback, ms) => globalThis.setTimeout(callback, ms),
      clearTimeout: (timer) => globalThis.clearTimeout(timer),
      now: () => performance.now(),
      random: Math.random,
      ...options,
    };
    this.#connect();
  }

  /** The time since the last contact with the server, in milliseconds. */
  get ageMs() {
    return this.#options.now() - this.#lastContactMs;
  }

  /** Ends it. The content stays. */
  stop() {
    this.#options.clearTimeout(this.#timer);
    this.#drop();
    this.#become("stopped");
  }

  #connect() {
    const { url, token, newSocket } = this.#options;
    const watch = new URL(url);
    watch.searchParams.set("watch", "true");
    watch.searchParams.set("allowWatchBookmarks", "true");
    if (this.resourceVersion === "") {
      watch.searchParams.set("sendInitialEvents", "true");
      watch.searchParams.set("resourceVersionMatch", "NotOlderThan");
      this.#incoming = new Map();
    } else {
      watch.searchParams.set("resourceVersion", this.resourceVersion);
    }
    const protocols = token === undefined
      ? []
      : [`base64url.bearer.authorization.k8s.io.${base64url(token)}`, "watch"];
    const socket = newSocket(watch.href, protocols);
    this.#socket = socket;
    this.#messages = 0;
    socket.onopen = () => this.#onOpen();
    socket.onmessage = ({ data }) => this.#onMessage(JSON.parse(data));
    socket.onclose = () => this.#onClose();
    this.#awaitMessage();
  }

  #onOpen() {
    this.#lastContactMs = this.#options.now();
    // The changes since come next; a quiet server sends nothing for a while.
    if (this.#incoming === undefined) this.#become("live");
  }

  /** @param {{ type: string, object: KubernetesObject }} event */
  #onMessage({ type, object }) {
    this.#lastContactMs = this.#options.now();
    this.#awaitMessage();
    // Workers cannot see how much of what they have sent is read; an API server ignores it.
    if (++this.#messages % CONFIRMED_MESSAGES === 0) this.#socket?.send(String(this.#messages));
    if (type === "ERROR") {
      // 410: the server does not know any more what has changed since. The next watch begins with all objects.
      this.resourceVersion = "";
      this.#onClose();
      return;
    }
    const { name, namespace, resourceVersion, annotations } = object.metadata;
    const key = namespace === undefined ? name : `${namespace}/${name}`;
    const content = this.#incoming ?? /** @type {Map<string, KubernetesObject>} */ (this.objects);
    if (type === "DELETED") content.delete(key);
    else if (type !== "BOOKMARK") content.set(key, object);
    if (this.#incoming !== undefined) {
      if (type !== "BOOKMARK" || annotations?.[INITIAL_EVENTS_END] !== "true") return;
      this.objects = this.#incoming;
      this.#incoming = undefined;
    }
    this.resourceVersion = resourceVersion;
    this.#failures = 0;
    this.#become("live");
  }

  #onClose() {
    this.#drop();
    this.#become(this.objects.size > 0 || this.state === "live" ? "stale" : this.state);
    const { setTimeout, clearTimeout, random } = this.#options;
    const ms = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, LONGEST_RETRY_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), ms * (0.5 + 0.5 * random()));
  }

  /** A connection may die without an end. */
  #awaitMessage() {
    const { setTimeout, clearTimeout } = this.#options;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onClose(), SILENCE_MS);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  /** @param {WatchedStore["state"]} state */
  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

/** @param {string} text */
function base64url(text) {
  const binary = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
