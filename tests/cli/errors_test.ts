import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import {
  briefReason,
  CommandError,
  explainError,
  explainListenError,
  explainServerError,
  nearNames,
  oneLine,
  quote,
  UsageError,
} from "../../src/cli/errors.ts";
import { ListenError } from "../../src/node/serving/serve_fetch.ts";

// A text that once took a regular expression 14 s.
const BLANKS = " ".repeat(8_000_000);

describe("oneLine and briefReason", () => {
  it("return one line of at most 1,024 characters, in linear time", () => {
    assert.equal(oneLine(`a  \r\n\n  b\n`), "a b");
    assert.equal(oneLine(`a${BLANKS}b`), "a…");
    assert.equal(oneLine(`${"a\n".repeat(4_000_000)}`).length, 1024);
    assert.equal(briefReason({ code: "Other", message: BLANKS }), "…");
    const longest = "x".repeat(200);
    assert.equal(briefReason({ code: "Other", message: longest }), longest);
    assert.equal(briefReason({ code: "Other", message: `${longest}y` }), `${longest.slice(1)}…`);
    const error = explainServerError(new TypeError(`certificate${"certificate".repeat(500_000)}`), "list", {
      server: "https://x",
    });
    assert.ok(error.message.length <= 1024);
  });

  it("say how to log in again after a 401", () => {
    const error = new StatusError(newStatus(401, "Unauthorized", "no"));
    const { message } = explainServerError(error, "list pods", { server: "https://x", context: "dev" });
    assert.match(
      message,
      /401 Unauthorized\. .* try `kubectl --context "dev" get --raw \/version`, then log in/,
    );
  });

  it("say what an error says where the server's own message is empty", () => {
    const status = newStatus(500, "InternalError", "");
    const error = new StatusError(status, { message: "the server answered 500" });
    const { message } = explainServerError(error, "list pods", { server: "https://x" });
    assert.equal(message, "Cannot list pods at https://x: 500 the server answered 500");
  });

  it("say nothing of names that only contain a word of two letters (nearNames)", () => {
    assert.deepEqual(nearNames("no", ["annotations", "nodes"]), []);
    assert.deepEqual(nearNames("nod", ["annotations", "nodes"]), ["nodes"]);
    assert.deepEqual(nearNames("node", ["nodea", "nodeb", "nodec", "noded"]), ["nodea", "nodeb", "nodec"]);
  });

  it("remove terminal control characters and text direction marks", () => {
    assert.equal(oneLine("a\u202eb\x1b[2J\u2066"), "a\\u202eb�[2J\\u2066");
    assert.equal(quote("a\u202e\x9b"), '"a\\u202e\\x9b"');
    assert.equal(oneLine("a\x9b2J"), "a\ufffd2J");
  });

  it("return only the code of credential errors (briefReason)", () => {
    for (const code of ["Credentials", "Kubeconfig", "Unauthorized"]) {
      const text = briefReason({ code, message: "the token is abc" });
      assert.ok(text.includes(code) && !text.includes("abc"), text);
    }
  });
});

describe("nearNames", () => {
  it("has the names first of which the fewest letters differ, then the shortest, then by letters", () => {
    assert.deepEqual(nearNames("deployments", ["deploymentz1", "deployment"]), [
      "deployment",
      "deploymentz1",
    ]);
    assert.deepEqual(nearNames("deployments", ["deploymen", "deploymentss"]), ["deploymentss", "deploymen"]);
    assert.deepEqual(nearNames("pods", ["podsx", "pod"]), ["pod", "podsx"]);
    assert.deepEqual(nearNames("node", ["nodec", "nodea", "nodeb"]), ["nodea", "nodeb", "nodec"]);
  });

  it("lets a third of the letters of the shorter one differ, and always one; a swap is one", () => {
    assert.deepEqual(nearNames("konfigmabs", ["configmaps"]), ["configmaps"]);
    assert.deepEqual(nearNames("po", ["pv"]), ["pv"]);
    assert.deepEqual(nearNames("nodesx", ["nods"]), []);
    assert.deepEqual(nearNames("nods", ["nodesx"]), []);
    assert.deepEqual(nearNames("ndoe", ["node"]), ["node"]);
    assert.deepEqual(nearNames("onde", ["node"]), ["node"]);
    assert.deepEqual(nearNames("noed", ["node"]), ["node"]);
    assert.deepEqual(nearNames("nxde", ["nyze"]), []);
    assert.deepEqual(nearNames("cofnimgaps", ["configmaps"]), ["configmaps"]);
  });

  it("has after them what contains the name, or is contained in it with four letters or more", () => {
    assert.deepEqual(nearNames("event", ["eventsandmore", "evens"]), ["evens", "eventsandmore"]);
    assert.deepEqual(nearNames("mypodsthing", ["pods"]), ["pods"]);
    assert.deepEqual(nearNames("mypodthing", ["pod"]), []);
  });

  it("takes letters for the same in both cases", () => {
    assert.deepEqual(nearNames("PODS", ["pods"]), ["pods"]);
    assert.deepEqual(nearNames("pods", ["PODS"]), ["PODS"]);
  });
});

describe("explainServerError", () => {
  const SERVER = { server: "https://x" };
  const explained = (error: unknown) => explainServerError(error, "list pods", SERVER).message;

  it("is the error itself if that is in these words already, and has it as its cause otherwise", () => {
    const own = new CommandError("Cannot do it");
    assert.equal(explainServerError(own, "list pods", SERVER), own);
    assert.equal(own.code, "Command");
    assert.equal(new UsageError("Cannot do it").code, "Usage");
    const error = new Error("no");
    assert.equal(explainServerError(error, "list pods", SERVER).cause, error);
  });

  it("names what was not done where an error says nothing of a server or a connection", () => {
    assert.equal(explained(new Error("no")), "Cannot list pods at https://x: no");
    const unauthorized = new StatusError(newStatus(401, "Unauthorized", "no"));
    assert.match(explained(unauthorized), /try `kubectl get --raw/);
  });

  it("says in our words why there is no connection, or else in those of the innermost error", () => {
    const reach = (why: string) =>
      `Cannot reach https://x: ${why}. Check that the server runs and that the address is right`;
    const refused = new NetworkError("ConnectionRefused", "os error 111");
    assert.equal(explained(refused), reach("connection refused"));
    const noHost = Object.assign(new Error("lookup"), { code: "ENOTFOUND" });
    assert.equal(explained(new TypeError("fetch failed", { cause: noHost })), reach("no such host"));
    const unreachable = new NetworkError("Unreachable", "sending failed", { cause: new Error("no route") });
    assert.equal(explained(unreachable), reach("no route"));
    assert.equal(explained(new TypeError("fetch failed", { cause: new Error("") })), reach("fetch failed"));
    assert.equal(
      explained(new TypeError("fetch failed", { cause: new Error("x".repeat(1_100) + " ENOTFOUND") })).length,
      1024,
    );
  });

  it("ends where an error is its own cause", () => {
    const error = new TypeError("fetch failed");
    error.cause = error;
    assert.match(explained(error), /: fetch failed\. Check/);
  });
});

describe("explainListenError", () => {
  it("says what to do where that is known", () => {
    const inUse = new ListenError("AddressInUse", "Cannot listen on 127.0.0.1:1: the port is in use");
    assert.match(
      explainListenError(inUse).message,
      /^Cannot listen .* is in use; choose another with --port/,
    );
    assert.equal(
      explainListenError(new ListenError("Listen", "Cannot listen: why")).message,
      "Cannot listen: why",
    );
    const other = Object.assign(new Error("no"), { code: "AddressInUse" });
    assert.equal(explainListenError(other).message, "no");
  });
});

describe("explainError", () => {
  it("has one line, and the exit code of the command's own errors", () => {
    assert.deepEqual(explainError(new UsageError("wrong\nflag")), { line: "wrong flag", exitCode: 2 });
    assert.deepEqual(explainError(new CommandError("no")), { line: "no", exitCode: 1 });
    assert.deepEqual(explainError(Object.assign(new Error(""), { exitCode: 2 })), {
      line: "unknown error",
      exitCode: 1,
    });
  });
});
