import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import { NetworkError } from "../../src/meta/request.ts";
import { newNetworkError } from "../../src/watch/network_failure.ts";

function failure(message: string, code?: string, cause?: unknown): Error {
  return Object.assign(new TypeError(message, { cause }), code === undefined ? {} : { code });
}

describe("newNetworkError", () => {
  const cases: [what: string, error: unknown, reason: string, text: string][] = [
    [
      "Node: refused",
      failure("fetch failed", undefined, failure("connect ECONNREFUSED 127.0.0.1:1", "ECONNREFUSED")),
      "ConnectionRefused",
      "connect ECONNREFUSED 127.0.0.1:1",
    ],
    [
      "Node: refused at each of several addresses",
      failure(
        "fetch failed",
        undefined,
        Object.assign(new AggregateError([failure("connect ECONNREFUSED ::1:1", "ECONNREFUSED")]), {
          code: "ECONNREFUSED",
        }),
      ),
      "ConnectionRefused",
      "connect ECONNREFUSED ::1:1",
    ],
    [
      "Deno: refused",
      failure(
        "fetch failed",
        undefined,
        new Error("error sending request: tcp connect error: Connection refused (os error 111)"),
      ),
      "ConnectionRefused",
      "error sending request: tcp connect error: Connection refused (os error 111)",
    ],
    [
      "Bun: refused",
      failure("Unable to connect. Is the computer able to access the url?", "ConnectionRefused"),
      "ConnectionRefused",
      "Unable to connect. Is the computer able to access the url? (ConnectionRefused)",
    ],
    [
      "workerd: refused",
      new Error("connect(): Connection refused"),
      "ConnectionRefused",
      "connect(): Connection refused",
    ],
    [
      "Node: reset",
      failure("terminated", undefined, failure("read ECONNRESET", "ECONNRESET")),
      "ConnectionReset",
      "read ECONNRESET",
    ],
    [
      "Deno: reset",
      failure("fetch failed", undefined, new Error("Connection reset by peer (os error 104)")),
      "ConnectionReset",
      "Connection reset by peer (os error 104)",
    ],
    [
      "Bun: closed",
      failure("ECONNRESET: The socket connection was closed unexpectedly", "ECONNRESET"),
      "ConnectionReset",
      "ECONNRESET: The socket connection was closed unexpectedly",
    ],
    [
      "Node: closed early",
      failure("terminated", undefined, failure("other side closed", "UND_ERR_SOCKET")),
      "UnexpectedEOF",
      "other side closed (UND_ERR_SOCKET)",
    ],
    [
      "node:http: closed early",
      failure("socket hang up", "ECONNRESET"),
      "UnexpectedEOF",
      "socket hang up (ECONNRESET)",
    ],
    [
      "Deno: closed early",
      new TypeError("error reading a body from connection"),
      "UnexpectedEOF",
      "error reading a body from connection",
    ],
    ["workerd: cut", new Error("Network connection lost."), "UnexpectedEOF", "Network connection lost."],
    [
      "no such host",
      failure("fetch failed", undefined, failure("getaddrinfo ENOTFOUND nowhere", "ENOTFOUND")),
      "Unreachable",
      "getaddrinfo ENOTFOUND nowhere",
    ],
    ["no error at all", "boom", "Unreachable", "boom"],
    ["nothing", undefined, "Unreachable", "undefined"],
  ];
  for (const [what, error, reason, text] of cases) {
    it(`takes "${what}" for ${reason}`, () => {
      const found = newNetworkError("Cannot list", error);
      assert.equal(found.reason, reason);
      assert.equal(found.message, `Cannot list: ${text}`);
      assert.equal(found.code, "Network");
    });
  }

  it("says what to do about a certificate that is not trusted", () => {
    const hint = "; the server's certificate is not trusted: give the authority (CA) that signed it";
    for (
      const error of [
        failure(
          "fetch failed",
          undefined,
          failure("unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ),
        failure("self signed certificate in certificate chain", "SELF_SIGNED_CERT_IN_CHAIN"),
        failure(
          "fetch failed",
          undefined,
          new Error("client error (Connect): invalid peer certificate: UnknownIssuer"),
        ),
      ]
    ) {
      const found = newNetworkError("x", error);
      assert.equal(found.reason, "UntrustedCertificate");
      assert.ok(found.message.endsWith(hint));
    }
    assert.ok(
      !newNetworkError("x", failure("other side closed", "UND_ERR_SOCKET")).message.includes("trusted"),
    );
  });

  it("says that a server speaks no TLS, in one line", () => {
    const openssl = "error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:tls.c:77:\n";
    const node = newNetworkError(
      "x",
      failure("fetch failed", undefined, failure(openssl, "ERR_SSL_WRONG_VERSION_NUMBER")),
    );
    assert.equal(
      node.message,
      `x: ${openssl.trim()} (ERR_SSL_WRONG_VERSION_NUMBER); the server has no TLS`,
    );
    const deno = new Error("client error (Connect): received corrupt message of type InvalidContentType");
    assert.equal(
      newNetworkError("x", deno).message,
      `x: ${deno.message}; the server has no TLS`,
    );
  });

  it("looks at codes, and says what has a text", () => {
    const coded = newNetworkError("x", failure("no luck", "ECONNREFUSED"));
    assert.deepEqual([coded.reason, coded.message], ["ConnectionRefused", "x: no luck (ECONNREFUSED)"]);
    const silent = new Error("outer", { cause: failure("", "EPIPE") });
    assert.deepEqual([newNetworkError("x", silent).reason, newNetworkError("x", silent).message], [
      "ConnectionReset",
      "x: outer",
    ]);
    assert.equal(newNetworkError("x", { message: "", cause: new Error("inner") }).message, "x: inner");
    assert.equal(newNetworkError("x", { message: "outer", cause: { message: 5 } }).message, "x: outer");
    assert.equal(newNetworkError("x", { message: "alone", cause: null }).message, "x: alone");
  });

  it("looks at the first four attempts, and at sixteen errors at most", () => {
    const refused = new Error("connection refused");
    const others = (count: number) => Array.from({ length: count }, () => new Error("no"));
    const reason = (error: unknown) => newNetworkError("x", error).reason;
    assert.equal(reason(new AggregateError([...others(3), refused])), "ConnectionRefused");
    assert.equal(reason(new AggregateError([...others(4), refused])), "Unreachable");
    const nested = (depth: number) => {
      let error = refused;
      for (let i = 1; i < depth; i++) error = new Error("no", { cause: error });
      return error;
    };
    assert.equal(reason(nested(16)), "ConnectionRefused");
    assert.equal(reason(nested(17)), "Unreachable");
  });

  it("gives a NetworkError back as it is", () => {
    const error = new NetworkError("ConnectionReset", "known");
    assert.equal(newNetworkError("again", error), error);
  });

  it("is not caught in a circle of causes", () => {
    const error: { message: string; cause?: unknown } = { message: "round" };
    error.cause = error;
    assert.equal(newNetworkError("x", error).reason, "Unreachable");
  });

  describe("of this runtime's own fetch", () => {
    async function failureOf(serve: (socket: Socket) => void): Promise<NetworkError> {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => serve(socket));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as { port: number };
        const response = await fetch(`http://127.0.0.1:${port}/`);
        await response.text();
      } catch (error) {
        return newNetworkError("x", error);
      } finally {
        server.close();
      }
      throw new Error("it did not fail");
    }

    it("distinguishes a refused connection", async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as { port: number };
      await new Promise((resolve) => server.close(resolve));
      const error = await fetch(`http://127.0.0.1:${port}/`).then(() => undefined, (error) => error);
      assert.equal(newNetworkError("x", error).reason, "ConnectionRefused");
    });

    it("distinguishes a connection that was closed without an answer, or in its middle, from one that failed to open", async () => {
      const lost = ["UnexpectedEOF", "ConnectionReset"];
      const without = await failureOf((socket) => socket.end());
      assert.ok(lost.includes(without.reason), without.message);
      const inTheMiddle = await failureOf((socket) => {
        socket.write(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
          () => socket.end(),
        );
      });
      assert.ok(lost.includes(inTheMiddle.reason), inTheMiddle.message);
    });
  });
});
