import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { ObjectHost } from "/work/wt/object/tests/workers/hosted/object_host.ts";
import { CountedUpstream } from "/work/wt/object/tests/workers/hosted/counted_upstream.ts";
const server = new InMemoryApiServer();
for (let i = 0; i < 5; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
await using upstream = new CountedUpstream((r) => server.fetch(r));
await using host = await ObjectHost.start({ options: { server: upstream.url, resource: "v1/pods" } });
const show = async () => {
  for (let i = 0; i < 100; i++) {
    const r = await fetch(`${host.url}/api/v1/pods`);
    const t = await r.text();
    if (r.status === 200) {
      console.log(
        r.status,
        [...r.headers].filter(([k]) => /cache|age|version|warn/i.test(k)).join(" "),
        JSON.parse(t).items.length,
        JSON.parse(t).metadata,
      );
      return;
    }
    await new Promise((d) => setTimeout(d, 50));
    if (i === 99) console.log(r.status, t);
  }
};
await show();
server.create("v1/pods", pod(`web-9`, { namespace: "shop" }));
await new Promise((d) => setTimeout(d, 300));
await show();
await host.kill();
server.delete("v1/pods", "web-1", "shop");
await host.restart();
console.log(upstream.requests.map((r) => `${r.kind} ${r.status} ${new URL(r.url).search}`));
await new Promise((d) => setTimeout(d, 500));
await show();
console.log(upstream.requests.map((r) => `${r.kind} ${r.status} ${new URL(r.url).search}`));
