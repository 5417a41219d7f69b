import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { silentLogger } from "@listwatch/cache";
import { loadCluster, loadKubeconfig } from "@listwatch/cache/node";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { ENTRY_FIELDS } from "../../src/node/kubeconfig/kubeconfig.ts";
import { fixture, pem } from "../sockets/certificates.ts";
import { skipWithoutOwnServer } from "./connection.ts";
import { KUBECONFIG_CASES, type KubeconfigCase } from "./kubeconfig_cases.ts";

type Kind = "context" | "cluster" | "user";

/** What a context leads to; `refused` if it cannot be read. */
type Resolved = Readonly<Record<"name" | Kind, unknown>> | "refused";

/** What a request says of its sender. */
interface Sent {
  readonly path: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly certificate: string | undefined;
}

describe("loadCluster beside kubectl, on odd kubeconfig files", { skip: skipWithoutOwnServer }, () => {
  let kubectl: string;
  let root: string;
  let server: Server;
  let url: string;
  const received: Sent[] = [];

  before(async () => {
    kubectl = await ensureGoProgram("kubectl");
    root = await Deno.makeTempDir({ prefix: "listwatch-kubeconfigs-" });
    const tls = { cert: pem("server.crt"), key: pem("server.key"), ca: pem("ca.crt") };
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      received.push(sentWith(request));
      response.setHeader("Content-Type", "application/json").end("{}");
    };
    server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, answer);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    if (root !== undefined) await Deno.remove(root, { recursive: true });
  });

  for (const [name, odd] of Object.entries(KUBECONFIG_CASES)) {
    it(`reads what kubectl reads: ${name}`, { timeout: 60_000 }, async () => {
      const folder = await write(odd);
      const list = (odd.list ?? ["config"]).map((path) => path && join(folder, path));
      const env = { HOME: folder, KUBECONFIG: list.join(delimiter), PATH: "/usr/bin:/bin" };
      const [theirs, ours] = [await sent(env, odd), await sentByOurs(env, odd)];
      if (odd.differs !== undefined) {
        assert.notDeepEqual(ours, theirs, `it no longer differs: ${odd.differs}`);
        return;
      }
      assert.deepEqual(ours, theirs);
      // One of them may find with the file what the other finds with the request.
      const [expected, actual] = [await viewed(env, odd), await loaded(env, odd)];
      if (ours.length > 0 || (expected !== "refused" && actual !== "refused")) {
        assert.deepEqual(actual, expected);
      }
    });
  }

  it("gives a plugin what kubectl gives it", { timeout: 60_000 }, async () => {
    const odd = KUBECONFIG_CASES["a plugin that reads its cluster"];
    const folder = await write(odd);
    const env = { HOME: folder, KUBECONFIG: join(folder, "config"), PATH: "/usr/bin:/bin" };
    const given = async () => JSON.parse(await Deno.readTextFile(join(folder, "info")));
    assert.equal((await sent(env, odd)).length, 1);
    const expected = await given();
    await Deno.remove(join(folder, "info"));
    assert.equal((await sentByOurs(env, odd)).length, 1);
    assert.deepEqual(await given(), expected);
  });

  async function write({ files }: KubeconfigCase): Promise<string> {
    const folder = await Deno.makeTempDir({ dir: root });
    for (const name of ["ca.crt", "client.crt", "client.key"]) {
      await Deno.copyFile(fixture(name), join(folder, name));
    }
    await Deno.writeTextFile(join(folder, "token"), "of-a-file\n");
    await Deno.writeTextFile(join(folder, "empty"), "");
    const data = (name: string) => btoa(pem(name));
    const words: Readonly<Record<string, string>> = {
      UPPER_SERVER: url.replace("https", "HTTPS"),
      SERVER: url,
      HOST: new URL(url).host,
      CA_DATA: data("ca.crt"),
      CA_LINES: data("ca.crt").replaceAll(/.{64}/g, "$&\n      "),
      CERT_DATA: data("client.crt"),
      KEY_DATA: data("client.key"),
      FOLDER: folder,
    };
    for (const [path, text] of Object.entries(files)) {
      await Deno.mkdir(dirname(join(folder, path)), { recursive: true });
      const filled = Object.entries(words).reduce(
        (text, [word, value]) => text.replaceAll(word, value),
        text,
      );
      await Deno.writeTextFile(join(folder, path), filled, { mode: 0o700 });
    }
    return folder;
  }

  async function run(args: readonly string[], env: Record<string, string>): Promise<Deno.CommandOutput> {
    const options = { args: [...args], cwd: env.HOME, clearEnv: true, env, stdin: "null" as const };
    return await new Deno.Command(kubectl, { ...options, stdout: "piped", stderr: "piped" }).output();
  }

  async function viewed(env: Record<string, string>, odd: KubeconfigCase): Promise<Resolved> {
    const given = odd.context === undefined ? [] : ["--context", odd.context];
    const { code, stdout } = await run(["config", "view", "--raw", "--minify", "-o", "json", ...given], env);
    if (code !== 0) return "refused";
    const view = JSON.parse(new TextDecoder().decode(stdout));
    const kubeconfig = await loadKubeconfig({ env }).catch(() => undefined);
    // Paths are shown as they are written.
    const read = (kind: Kind, entry: { name: string } & Partial<Record<Kind, object>> | undefined) => {
      const file = kubeconfig?.origins?.get(`${kind} ${entry?.name}`);
      return known(kind, entry?.[kind], file === undefined ? env.HOME : dirname(file));
    };
    return {
      name: view["current-context"],
      context: read("context", view.contexts?.[0]),
      cluster: read("cluster", view.clusters?.[0]),
      user: read("user", view.users?.[0]),
    };
  }

  async function loaded(env: Record<string, string>, odd: KubeconfigCase): Promise<Resolved> {
    try {
      const kubeconfig = await loadKubeconfig({ env });
      const name = odd.context ?? kubeconfig["current-context"];
      const context = kubeconfig.contexts.get(name ?? "");
      if (context === undefined) return "refused";
      return {
        name,
        context: known("context", context, env.HOME),
        cluster: known("cluster", kubeconfig.clusters.get(context.cluster), env.HOME),
        // kubectl does not show a user without a name.
        user: known("user", context.user ? kubeconfig.users.get(context.user) : {}, env.HOME),
      };
    } catch {
      return "refused";
    }
  }

  /** What reaches the server. */
  async function sent(env: Record<string, string>, { context }: KubeconfigCase): Promise<Sent[]> {
    const given = context === undefined ? [] : ["--context", context];
    await run(["get", "--raw", "/probe", ...given], env);
    return received.splice(0);
  }

  async function sentByOurs(env: Record<string, string>, { context }: KubeconfigCase): Promise<Sent[]> {
    try {
      const cluster = await loadCluster({
        env,
        logger: silentLogger,
        ...(context !== undefined && { context }),
      });
      await cluster.request("/probe");
    } catch {
      // Nothing has reached the server.
    }
    return received.splice(0);
  }
});

const PATHS = ["certificate-authority", "client-certificate", "client-key", "tokenFile", "command"];

/** The fields that are read, without empty ones; relative paths as from the folder. */
function known(kind: Kind, entry: object | undefined, folder: string): unknown {
  const clean = (value: unknown, shape: unknown, field = ""): unknown => {
    if (typeof value === "string") {
      const isPath = PATHS.includes(field) && (field !== "command" || value.includes("/"));
      // kubectl writes base64 without line ends.
      return isPath ? resolve(folder, value) : value.replaceAll("\n", "");
    }
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      return value.map((item) => clean(item, Array.isArray(shape) ? shape[0] : shape));
    }
    const fields = Object.entries(value)
      .filter(([name]) => typeof shape !== "object" || shape === null || name in shape)
      .map(([name, item]) => [name, clean(item, (shape as Record<string, unknown>)[name], name)] as const);
    return Object.fromEntries(fields.filter(([, item]) => !isEmpty(item)));
  };
  return clean(entry ?? {}, ENTRY_FIELDS[kind]);
}

function isEmpty(value: unknown): boolean {
  // What kubectl writes for a plugin that does not say.
  if (value === "IfAvailable") return true;
  return value === undefined || value === null || value === "" || value === false ||
    (typeof value === "object" && Object.keys(value).length === 0);
}

function sentWith({ url, headers, socket }: IncomingMessage): Sent {
  const names = Object.keys(headers).filter((name) => /^(authorization|impersonate-.*)$/.test(name));
  return {
    path: url,
    headers: Object.fromEntries(names.map((name) => [name, headers[name]])),
    certificate: (socket as TLSSocket).getPeerCertificate()?.subject?.CN as string | undefined,
  };
}
