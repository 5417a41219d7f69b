//! kube-rs' reflector of ConfigMaps, with its default backoff. The argument is the path of a kubeconfig. It prints one
//! line of JSON when it has synced, and for each line of standard input what it holds and which events it has had since
//! the line before.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, reflector, watcher, watcher::Event};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

const KUBE_VERSION: &str = "5.0.0";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the kubeconfig is missing")?;
    let kubeconfig = Kubeconfig::read_from(path)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let (store, writer) = reflector::store::<ConfigMap>();
    let events = Arc::new(Mutex::new(Vec::<Value>::new()));
    let recorded = events.clone();
    let stream = watcher(Api::<ConfigMap>::all(Client::try_from(config)?), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    tokio::spawn(stream.for_each(move |event| {
        let line = match &event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => Some(summary("set", object)),
            Ok(Event::Delete(object)) => Some(summary("delete", object)),
            _ => None,
        };
        recorded.lock().unwrap().extend(line);
        async {}
    }));
    store.wait_until_ready().await?;
    println!("{}", json!({ "pid": std::process::id(), "version": KUBE_VERSION }));

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while lines.next_line().await?.is_some() {
        let held: Vec<Value> = store.state().iter().map(|object| summary("set", object)).collect();
        let since = std::mem::take(&mut *events.lock().unwrap());
        println!("{}", json!({ "held": held, "events": since }));
    }
    Ok(())
}

/// What happened, the key, the resourceVersion and the content.
fn summary(what: &str, object: &ConfigMap) -> Value {
    let key = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    let value = object.data.as_ref().and_then(|data| data.get("value"));
    json!([what, key, object.resource_version(), value])
}
