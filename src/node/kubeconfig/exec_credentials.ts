import process from "node:process";
import { type FetchFunction, tokenFault } from "../../client/rest_config.ts";
import { ageMs, type Clock, type Moment, momentOf } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { visibleText } from "../../util/logger.ts";
import { type ExecConfig, type KubeconfigCluster, KubeconfigError } from "./kubeconfig.ts";
import { toBase64 } from "../../util/bytes.ts";
import { createTlsFetch, type TlsFetchOptions } from "../fetch/tls_fetch.ts";

interface ExecStatus {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  /** RFC 3339. */
  readonly expirationTimestamp?: string;
}

export interface ExecCredentialsOptions {
  readonly clock: Clock;
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly tls: TlsFetchOptions;
  readonly timeoutMs?: number;
}

const VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#input-and-output-formats
const PLUGIN_EXTENSION = "client.authentication.k8s.io/exec";
const LONGEST_OUTPUT_BYTES = 1024 * 1024;
const LONGEST_HINT_LINE = 1_000;
const TIMEOUT_MS = 60_000;

/**
 * Runs a credential plugin, and keeps its credentials until they expire or are refused. Concurrent requests
 * share one run. A new client certificate opens new connections.
 *
 * Mirrors client-go's `exec` authenticator, without a terminal and with a timeout. The plugin's output
 * appears in no message or log, as it may contain credentials.
 */
export class ExecCredentials {
  readonly #config: ExecConfig;
  readonly #options: ExecCredentialsOptions;
  #pending: Promise<ExecStatus> | undefined;
  #status: ExecStatus | undefined;
  /** When the credentials came. */
  #since: Moment;
  /** How long they are valid from then on; `NaN` if they do not expire. */
  #validMs = NaN;
  #fetch: FetchFunction | undefined;
  #fetchCert: string | undefined;

  constructor(config: ExecConfig, options: ExecCredentialsOptions) {
    this.#config = config;
    this.#options = options;
    this.#since = momentOf(options.clock);
  }

  /** Returns the bearer token, `""` if the plugin gives none. */
  async token(): Promise<string> {
    return (await this.#credentials()).token ?? "";
  }

  /** A `fetch` that uses the client certificate, if the plugin gives one. */
  readonly fetch: FetchFunction = async (url, init) => {
    const status = await this.#credentials();
    const response = await this.#fetchWith(status)(url, init);
    if (response.status !== 401) return response;
    const sent = new Headers(init?.headers).get("Authorization");
    this.forget((sent ?? "").replace(/^Bearer /, ""), status);
    // A caller that sent a token sends another one; another certificate can only be presented here.
    if (sent !== null) return response;
    const renewed = await this.#credentials().catch(() => status);
    if (renewed.token || renewed.clientCertificateData === status.clientCertificateData) return response;
    response.body?.cancel().catch(() => {});
    return await this.#fetchWith(renewed)(url, init);
  };

  #fetchWith({ clientCertificateData: cert, clientKeyData: key }: ExecStatus): FetchFunction {
    if (this.#fetch === undefined || this.#fetchCert !== cert) {
      this.#fetch = createTlsFetch({ ...this.#options.tls, ...(cert && { cert, key }) });
      this.#fetchCert = cert;
    }
    return this.#fetch;
  }

  /**
   * Makes the next request run the plugin again, if the token is in use, and the certificate of these
   * credentials; for a server that refused them.
   */
  forget(refused: string, { clientCertificateData }: ExecStatus = this.#status ?? {}): void {
    const { token = "", clientCertificateData: cert } = this.#status ?? {};
    if (token === refused && cert === clientCertificateData) this.#status = undefined;
  }

  async #credentials(): Promise<ExecStatus> {
    const { clock } = this.#options;
    // By either clock: the wall clock may be set back, and the monotonic one stop during a suspension.
    const isExpired = ageMs(this.#since, clock) >= this.#validMs;
    if (this.#status !== undefined && !isExpired) return this.#status;
    this.#pending ??= this.#run().finally(() => (this.#pending = undefined));
    this.#status = await this.#pending;
    this.#since = momentOf(clock);
    this.#validMs = Date.parse(this.#status.expirationTimestamp ?? "") - clock.now();
    return this.#status;
  }

  async #run(): Promise<ExecStatus> {
    const { command, args, env, installHint, apiVersion = VERSIONS[0] } = this.#config;
    // What could change the state of a terminal is shown, as by client-go.
    const hint = installHint?.split("\n").map((line) => `\n${visibleText(line, LONGEST_HINT_LINE)}`).join("");
    const fail = (why: string) =>
      new KubeconfigError(
        `Cannot get credentials for the context ${JSON.stringify(this.#options.context)}: ${command} ${why}` +
          (hint ?? ""),
      );
    if (!VERSIONS.includes(apiVersion)) throw fail(`uses the version ${apiVersion}, which is not supported`);
    if (this.#config.interactiveMode === "Always") {
      throw fail("needs a terminal (interactiveMode: Always), which is not supported");
    }
    const info = { apiVersion, kind: "ExecCredential", spec: { interactive: false, ...this.#clusterInfo() } };
    const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const { runProgram } = await import("../run_program.ts");
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
      // The cause is left out, as runtimes quote the text.
      throw fail("printed something other than JSON");
    }
    if (answer?.apiVersion !== apiVersion) throw fail(`answered in a version other than ${apiVersion}`);
    const status = answer.status ?? {};
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: expires } = status;
    if (!token && !cert && !key) throw fail("gave neither a token nor a client certificate with its key");
    if (!cert !== !key) {
      throw fail("gave a client certificate without its key, or a key without its certificate");
    }
    const fault = token ? tokenFault(token) : undefined;
    if (fault !== undefined) throw fail(`gave a token that is not valid: ${fault}`);
    for (const pem of [cert, key]) {
      if (pem && typeof pem !== "string") throw fail("gave a client certificate or key that is not a string");
    }
    // Credentials that seem to be valid for ever would not be renewed.
    if (expires && (typeof expires !== "string" || Number.isNaN(Date.parse(expires)))) {
      throw fail("gave an expirationTimestamp that is not a time");
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
        "proxy-url": cluster["proxy-url"],
        "disable-compression": cluster["disable-compression"],
        config: cluster.extensions?.find(({ name }) => name === PLUGIN_EXTENSION)?.extension,
      },
    };
  }
}
