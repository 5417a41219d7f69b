//! kube-rs' reflectors of ConfigMaps on a cache: one that lists, and one that streams its lists. The argument is the
//! URL. It prints one line of JSON when both have synced, and for each line of standard input what both stores hold.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, reflector, reflector::Store, watcher};
use kube::{Api, Client, Config, ResourceExt};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::args().nth(1).ok_or("the URL is missing")?;
    let client = Client::try_from(Config::new(server.parse()?))?;
    let listing = reflect(client.clone(), watcher::Config::default());
    let streaming = reflect(client, watcher::Config::default().streaming_lists());
    listing.wait_until_ready().await?;
    streaming.wait_until_ready().await?;
    println!("{}", serde_json::json!({ "synced": true }));

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while lines.next_line().await?.is_some() {
        println!(
            "{}",
            serde_json::json!({ "listing": held(&listing), "streaming": held(&streaming) })
        );
    }
    Ok(())
}

fn reflect(client: Client, config: watcher::Config) -> Store<ConfigMap> {
    let (store, writer) = reflector::store::<ConfigMap>();
    let events = watcher(Api::<ConfigMap>::all(client), config)
        .default_backoff()
        .reflect(writer);
    tokio::spawn(events.for_each(|_| async {}));
    store
}

fn held(store: &Store<ConfigMap>) -> Vec<serde_json::Value> {
    store
        .state()
        .iter()
        .map(|object| {
            serde_json::json!({
                "metadata": {
                    "namespace": object.namespace(),
                    "name": object.name_any(),
                    "uid": object.uid(),
                    "resourceVersion": object.resource_version(),
                    "labels": object.labels(),
                },
                "data": object.data,
            })
        })
        .collect()
}
