/**
 * What differs between the workloads of a large cluster: names, labels, images and environments of pods. The
 * pods of one replica set share most of it, those of different workloads little.
 *
 * @module
 */

type Random = () => number;

/** What a pod has of its own, or of its workload. */
export interface PodTraits {
  /** The name of its workload. */
  readonly app: string;
  readonly image: string;
  /** Labels besides name, version and hash. */
  readonly labels: Readonly<Record<string, string>>;
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

const FIRST =
  "amber,arctic,atlas,aurora,basalt,beacon,birch,bravo,cobalt,comet,coral,crimson,delta,ember,falcon,fjord,garnet,granite,harbor,helix,indigo,iris,jade,juniper,kestrel,lagoon,lumen,maple,meadow,mosaic,nebula,nimbus,ocean,onyx,opal,orbit,pebble,phoenix,quartz,quill,raven,river,saffron,sierra,sol,spruce,summit,tango,terra,tidal,topaz,umber,velvet,vertex,violet,walnut,willow,xenon,yarrow,zephyr"
    .split(",");
const SECOND =
  "account,address,alert,asset,audit,backup,basket,billing,booking,campaign,cart,catalog,chat,claim,consent,content,coupon,credit,customer,device,dispatch,document,email,export,feed,fleet,forecast,fraud,gift,identity,import,index,invoice,ledger,license,location,loyalty,media,message,metric,offer,order,partner,payment,payout,price,profile,quote,rating,refund,report,return,review,route,search,session,shipment,stock,tax,ticket"
    .split(",");
const THIRD =
  "api,worker,consumer,gateway,sync,cron,proxy,store,loader,indexer,mailer,planner,router,scorer,streamer,watcher"
    .split(",");
const KEYS =
  "LOG_FORMAT,HTTP_PORT,GRPC_PORT,CACHE_URL,QUEUE_URL,TOPIC,BUCKET,REGION,TIMEOUT_MS,POOL_SIZE,BATCH_SIZE,FEATURES,TENANT,SENTRY_DSN,OTEL_ENDPOINT,RETRIES,SECRET_PATH,PEER_HOSTS,GC_PERCENT,RELEASE_ID"
    .split(",");
const REGISTRIES = [
  "registry.example.com",
  "ghcr.example.io",
  "eu.artifacts.example.dev",
  "mirror.example.net:5000",
];
const TIERS = ["frontend", "backend", "batch", "edge", "data"];

/** The traits of one pod of a workload, as the workload's own numbers and the pod's decide. */
export function variedTraits(team: string, shared: Random): PodTraits {
  const one = <V>(values: readonly V[]): V => values[Math.floor(shared() * values.length)];
  const app = `${one(FIRST)}-${one(SECOND)}-${one(THIRD)}`;
  const commit = hexText(shared, 12);
  const env: { name: string; value: string }[] = [];
  const first = Math.floor(shared() * KEYS.length);
  for (let i = Math.floor(shared() * 4); i >= 0; i--) {
    env.push({ name: KEYS[(first + 3 * i) % KEYS.length], value: valueOf(shared, app, one) });
  }
  return {
    app,
    image: `${one(REGISTRIES)}/${team}/${app}:${Math.floor(shared() * 9)}.${
      Math.floor(shared() * 60)
    }-${commit}`,
    labels: {
      "app.kubernetes.io/instance": `${app}-${one(["blue", "green", "canary", "main"])}`,
      tier: one(TIERS),
    },
    env,
  };
}

function valueOf(shared: Random, app: string, one: <V>(values: readonly V[]) => V): string {
  switch (Math.floor(shared() * 5)) {
    case 0:
      return String(Math.floor(shared() * 60_000));
    case 1:
      return `https://${one(FIRST)}-${one(SECOND)}.${one(["internal", "svc", "prod"])}.example.com:${
        8_000 + Math.floor(shared() * 999)
      }/v${1 + Math.floor(shared() * 3)}`;
    case 2:
      return `${app}.${one(SECOND)}.${Math.floor(shared() * 64)}`;
    case 3:
      return hexText(shared, 24);
    default:
      return shared() < 0.5 ? "true" : "false";
  }
}

function hexText(random: Random, digits: number): string {
  let text = "";
  while (text.length < digits) text += Math.floor(random() * 16 ** 6).toString(16).padStart(6, "0");
  return text.slice(0, digits);
}
