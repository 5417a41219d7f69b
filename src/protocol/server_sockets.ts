/** Parts of a server for the responses of a fetch function: its sockets and its WebSockets. */

/** The response of a server, to which a pushed body is written. */
export interface ByteSink {
  /** How many bytes wait in the sink. */
  readonly queuedBytes: number;
  /**
   * Sends a piece. Others send the same piece: it must not be changed or detached. `false`: it waits, and
   * {@linkcode SinkUser.onDrained} will be called.
   */
  write(piece: Uint8Array): boolean;
  /** Ends the response after the waiting pieces. */
  end(): void;
  /** Breaks the response off. */
  destroy(): void;
}

/** The writer to a sink. */
export interface SinkUser {
  /** The sink has sent everything that waited in it. */
  onDrained(): void;
  /** The client has disconnected. */
  onGone(): void;
}

/**
 * A stream of bytes whose source can also write into a server's response itself, which saves the copies,
 * promises and queues of a stream: a server that knows it calls {@linkcode PushedBody.pushTo}.
 */
export class PushedBody extends ReadableStream<Uint8Array> {
  /** Connects the source with a sink, permanently; the stream must not be read any more. */
  readonly pushTo: (sink: ByteSink) => SinkUser;

  /**
   * @param source Feeds the stream.
   * @param pushTo See {@linkcode PushedBody.pushTo}.
   */
  constructor(source: UnderlyingByteSource, pushTo: (sink: ByteSink) => SinkUser) {
    // The types of some environments do not know that a derived stream may be one of bytes.
    super(source as unknown as UnderlyingDefaultSource<Uint8Array>, { highWaterMark: 0 });
    this.pushTo = pushTo;
  }
}

/** The body of a response, if it can be pushed and has no reader. */
export function pushedBodyOf({ body }: Response): PushedBody | undefined {
  return body instanceof PushedBody && !body.locked ? body : undefined;
}

// The handshake of a WebSocket: https://www.rfc-editor.org/rfc/rfc6455#section-4.2.1
export const SOCKET_VERSION: string = "13";
export const SOCKET_KEY: RegExp = /^[A-Za-z0-9+/]{22}==$/;

/**
 * The part of a server's WebSocket that watches need; those of Deno, Workers and the package `ws` have it.
 */
export interface ServerWebSocket {
  /** 1 while it is open. */
  readonly readyState: number;
  /**
   * How many bytes wait to be sent; absent where the runtime does not say. A client then sends the number of
   * messages that it has read, as text; the socket of one that does not is closed after 16 MiB.
   */
  readonly bufferedAmount?: number;
  /** Sends a message of text. */
  send(text: string): void;
  /** Closes it after what was sent. */
  close(code?: number, reason?: string): void;
  /** Calls a listener when it opens, closes or breaks, or has a message. */
  addEventListener(
    type: "open" | "close" | "error" | "message",
    listener: (event: Event) => void,
  ): void;
}

/**
 * Accepts a WebSocket: returns the response (101) and the server's end, or `undefined` if it cannot; the
 * request is then answered as any other one. `Deno.upgradeWebSocket` is such a function.
 */
export type UpgradeWebSocket = (
  request: Request,
  options: {
    readonly protocol?: string;
    /** The second argument with which the server called the `fetch` function. */
    readonly env?: unknown;
  },
) => AcceptedWebSocket | undefined | Promise<AcceptedWebSocket | undefined>;

/** The result of {@linkcode UpgradeWebSocket}. */
export interface AcceptedWebSocket {
  /** Goes back to the client. */
  readonly response: Response;
  readonly socket: ServerWebSocket;
}

/** The part of `serveFetch`'s second argument that `fetch` receives with `webSockets`. */
export interface WebSocketEnv {
  /** Accepts the WebSocket that the request wants; absent if it wants none. */
  acceptWebSocket?(protocol: string | undefined): AcceptedWebSocket | undefined;
  readonly accepted?: AcceptedConnection;
}

/** The connection of a WebSocket. */
export interface AcceptedConnection {
  /** How many bytes were sent to the client. */
  readonly sentBytes: number;
  readonly closed: Promise<void>;
}
