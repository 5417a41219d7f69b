/**
 * Ports that several processes listen on.
 * @module
 */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { newListenError } from "./serve_fetch.ts";

/** Whether HTTP servers of this runtime can listen on one port (`SO_REUSEPORT`): the kernel then spreads connections. */
export async function canSharePorts(): Promise<boolean> {
  const servers: Server[] = [];
  try {
    const [first, port] = await open({ host: "127.0.0.1", port: 0, reusePort: true });
    servers.push(first);
    const [second] = await open({ host: "127.0.0.1", port, reusePort: true });
    servers.push(second);
    return true;
  } catch {
    return false;
  } finally {
    await Promise.all(servers.map(close));
  }
}

/**
 * Checks that no socket listens on a port, also none that would share it, and returns the port: a free one for 0.
 *
 * @throws {ListenError} The port is in use, or the address is not one of this machine.
 */
export async function freePort(host: string, port: number): Promise<number> {
  try {
    const [server, found] = await open({ host, port });
    await close(server);
    return found;
  } catch (error) {
    throw newListenError(error, host, port);
  }
}

function open(
  options: { readonly host: string; readonly port: number; readonly reusePort?: boolean },
): Promise<[server: Server, port: number]> {
  const server = createServer((request) => request.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => resolve([server, (server.address() as AddressInfo).port]));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
