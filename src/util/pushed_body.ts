/**
 * Response bodies that are pushed.
 * @module
 */

/** Where a pushed body goes: the response of a server. */
export interface ByteSink {
  /** How many bytes wait in it. */
  readonly queuedBytes: number;
  /**
   * Sends a piece. Others send the same piece: it must not be changed or detached. `false`: it waits, and
   * {@linkcode SinkUser.onDrained} will be called.
   */
  write(piece: Uint8Array): boolean;
  /** Ends the response after what waits. */
  end(): void;
  /** Breaks the response off. */
  destroy(): void;
}

/** Who writes to a sink. */
export interface SinkUser {
  /** The sink has sent everything that waited in it. */
  onDrained(): void;
  /** The client has disconnected. */
  onGone(): void;
}

/**
 * A stream whose source can also write into a server's response itself. A server that knows it calls
 * {@linkcode PushedBody.pushTo}, which saves the copies, promises and queues of a stream for each piece; for
 * every other reader it is a stream of bytes.
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
