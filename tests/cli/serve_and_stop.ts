/** Serves, reads and stops; the process must then exit by itself. Started by main_test.ts. */

import { serve } from "@listwatch/cache/cli";

const served = await serve({ port: 0 });
await served.synced();
const watch = await fetch(`${served.url}/api/v1/pods?watch=1`);
const window = await fetch(`${served.url}/api/v1/pods?watch=1&sortBy=metadata.name&limit=5`);
await served.stop();
await Promise.allSettled([watch.text(), window.text()]);
console.log("stopped");
