/**
 * Credentials that a program gives.
 * @module
 */

import process from "node:process";
import { tokenFault } from "../client/credentials.ts";
import type { FetchFunction } from "../client/rest_config.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { type ExecConfig, type KubeconfigCluster, KubeconfigError } from "./kubeconfig.ts";
import { toBase64 } from "./base64.ts";
import { runProgram } from "./run_program.ts";
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
  /** How long the plugin may take, in milliseconds; a minute by default. */
  readonly timeoutMs?: number;
}

const VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const LONGEST_OUTPUT_BYTES = 1024 * 1024;
const TIMEOUT_MS = 60_000;

/**
 * Runs a credential plugin, and keeps what it gives until that expires or is refused. Requests that come meanwhile
 * share one run. A client certificate that changes makes new connections.
 *
 * Mirrors client-go's `exec` authenticator, without asking a person anything, and with an end to the plugin's time. What
 * the plugin says is told nowhere: it may hold credentials.
 */
export class ExecCredentials {
  readonly #config: ExecConfig;
  readonly #options: ExecCredentialsOptions;
  #pending: Promise<ExecStatus> | undefined;
  #status: ExecStatus | undefined;
  /** When the credentials expire, on the monotonic clock: a wall clock that is set back must not keep them. */
  #expiresMs = Infinity;
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
    const { clock } = this.#options;
    if (this.#status !== undefined && !this.#isExpired()) return this.#status;
    this.#pending ??= this.#run().finally(() => (this.#pending = undefined));
    this.#status = await this.#pending;
    const expires = Date.parse(this.#status.expirationTimestamp ?? "");
    this.#expiresMs = Number.isNaN(expires) ? Infinity : monotonicNow(clock) + expires - clock.now();
    return this.#status;
  }

  /** By either clock: the monotonic one stands still while the computer is suspended. */
  #isExpired(): boolean {
    const { clock } = this.#options;
    const expires = Date.parse(this.#status?.expirationTimestamp ?? "");
    return expires <= clock.now() || this.#expiresMs <= monotonicNow(clock);
  }

  async #run(): Promise<ExecStatus> {
    const { command, args, env, installHint, apiVersion = VERSIONS[0] } = this.#config;
    const fail = (why: string) =>
      new KubeconfigError(
        `Cannot get credentials for the context ${JSON.stringify(this.#options.context)}: ${command} ${why}` +
          (installHint ? `\n${installHint}` : ""),
      );
    if (!VERSIONS.includes(apiVersion)) throw fail(`speaks ${apiVersion}, which is not known here`);
    if (this.#config.interactiveMode === "Always") {
      throw fail("wants to ask a person (interactiveMode: Always), which is not possible here");
    }
    const info = { apiVersion, kind: "ExecCredential", spec: { interactive: false, ...this.#clusterInfo() } };
    const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options;
    let output: string;
    try {
      output = await runProgram(command, args ?? [], {
        env: { ...process.env, ...variables, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
        clock,
        timeoutMs,
        maxOutputBytes: LONGEST_OUTPUT_BYTES,
      });
    } catch (error) {
      throw fail(`failed: ${errorMessage(error)}`);
    }
    let answer: { apiVersion?: string; status?: ExecStatus };
    try {
      answer = JSON.parse(output);
    } catch {
      // Without the cause: runtimes quote what they cannot parse.
      throw fail("answered with something else than JSON");
    }
    if (answer?.apiVersion !== apiVersion) throw fail(`answered in another version than ${apiVersion}`);
    const { status } = answer;
    if (!status?.token && !(status?.clientCertificateData && status.clientKeyData)) {
      throw fail("gave neither a token nor a client certificate with its key");
    }
    const fault = status.token ? tokenFault(status.token) : undefined;
    if (fault !== undefined) throw fail(`gave a token that cannot be sent: ${fault}`);
    for (const pem of [status.clientCertificateData, status.clientKeyData]) {
      if (pem && typeof pem !== "string") throw fail("gave a client certificate or key that is no text");
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
