/**
 * Credentials that a program gives.
 * @module
 */

import { execFile } from "node:child_process";
import process from "node:process";
import type { FetchFunction } from "../client/rest_config.ts";
import type { Clock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { type ExecConfig, type KubeconfigCluster, KubeconfigError } from "./kubeconfig.ts";
import { toBase64 } from "./base64.ts";
import { createTlsFetch, type TlsOptions } from "./tls_fetch.ts";

/** What a plugin answered. */
interface ExecStatus {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  /** RFC 3339. */
  readonly expirationTimestamp?: string;
}

/** What {@linkcode ExecCredentials} needs. */
export interface ExecCredentialsOptions {
  readonly clock: Clock;
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly tls: TlsOptions;
}

const VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const LONGEST_OUTPUT_BYTES = 1024 * 1024;

/**
 * Runs a credential plugin, and keeps what it gives until that expires or is refused. Requests that come meanwhile
 * share one run. A client certificate that changes makes new connections.
 *
 * Mirrors client-go's `exec` authenticator, without asking a person anything.
 */
export class ExecCredentials {
  readonly #config: ExecConfig;
  readonly #options: ExecCredentialsOptions;
  #pending: Promise<ExecStatus> | undefined;
  #status: ExecStatus | undefined;
  #fetch: FetchFunction | undefined;
  #fetchCert: string | undefined;

  constructor(config: ExecConfig, options: ExecCredentialsOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** The bearer token, `""` if the plugin gives none. */
  async token(): Promise<string> {
    return (await this.#credentials()).token ?? "";
  }

  /** Makes requests with the client certificate, if the plugin gives one. */
  readonly fetch: FetchFunction = async (url, init) => {
    const { clientCertificateData: cert, clientKeyData: key } = await this.#credentials();
    if (this.#fetch === undefined || this.#fetchCert !== cert) {
      this.#fetch = createTlsFetch({ ...this.#options.tls, ...(cert && key && { cert, key }) });
      this.#fetchCert = cert;
    }
    return await this.#fetch(url, init);
  };

  /** The credentials were refused: the next request asks the plugin again. */
  forget(): void {
    this.#status = undefined;
  }

  async #credentials(): Promise<ExecStatus> {
    const expires = this.#status?.expirationTimestamp;
    const isExpired = expires !== undefined && Date.parse(expires) <= this.#options.clock.now();
    if (this.#status !== undefined && !isExpired) return this.#status;
    this.#pending ??= this.#run().finally(() => (this.#pending = undefined));
    this.#status = await this.#pending;
    return this.#status;
  }

  async #run(): Promise<ExecStatus> {
    const { command, args, env, installHint, apiVersion = VERSIONS[0] } = this.#config;
    const fail = (why: string, cause?: unknown) =>
      new KubeconfigError(
        `Cannot get credentials for the context ${JSON.stringify(this.#options.context)}: ${command} ${why}` +
          (installHint ? `\n${installHint}` : ""),
        { cause },
      );
    if (!VERSIONS.includes(apiVersion)) throw fail(`speaks ${apiVersion}, which is not known here`);
    if (this.#config.interactiveMode === "Always") {
      throw fail("wants to ask a person (interactiveMode: Always), which is not possible here");
    }
    const info = { apiVersion, kind: "ExecCredential", spec: { interactive: false, ...this.#clusterInfo() } };
    const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    let output: string;
    try {
      output = await runProgram(command, args ?? [], {
        ...process.env,
        ...variables,
        KUBERNETES_EXEC_INFO: JSON.stringify(info),
      });
    } catch (error) {
      throw fail(`failed: ${errorMessage(error)}`, error);
    }
    let answer: { apiVersion?: string; status?: ExecStatus };
    try {
      answer = JSON.parse(output);
    } catch (error) {
      throw fail("answered with something else than JSON", error);
    }
    if (answer?.apiVersion !== apiVersion) {
      throw fail(`answered in ${answer?.apiVersion}, not in ${apiVersion}`);
    }
    const { status } = answer;
    if (!status?.token && !(status?.clientCertificateData && status.clientKeyData)) {
      throw fail("gave neither a token nor a client certificate with its key");
    }
    return status;
  }

  #clusterInfo(): Record<string, unknown> {
    if (!this.#config.provideClusterInfo) return {};
    const { cluster } = this.#options;
    return {
      cluster: {
        server: cluster.server,
        "tls-server-name": cluster["tls-server-name"],
        "insecure-skip-tls-verify": cluster["insecure-skip-tls-verify"],
        "certificate-authority-data": this.#options.tls.ca && toBase64(this.#options.tls.ca),
      },
    };
  }
}

function runProgram(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const program = execFile(
      command,
      [...args],
      { env, maxBuffer: LONGEST_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        if (error === null) return resolve(String(stdout));
        const said = String(stderr).trim().split("\n").at(-1);
        reject(
          new Error(
            (error as { code?: unknown }).code === "ENOENT" ? "is not installed" : said || error.message,
          ),
        );
      },
    );
    // A plugin that asks something all the same reads an end, and does not wait for ever.
    program.stdin?.on("error", () => {});
    program.stdin?.end();
  });
}
