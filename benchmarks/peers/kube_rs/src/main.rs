//! The contestant kube-rs: a watcher of pods that fills a reflector's store. It has no index, and no garbage to collect.
//! It takes the arguments and prints the measurement that lib/measurement.ts describes.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config};

const KUBE_VERSION: &str = "5.0.0";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = argument("server");
    let last_resource_version = argument("last-resource-version");
    let is_burst = argument("phases").split(',').any(|phase| phase == "burst");
    let client = Client::try_from(Config::new(server.parse()?))?;

    let (reader, writer) = reflector::store::<Pod>();
    let api: Api<Pod> = Api::all(client.clone());
    let start_rss = peak_rss();
    let start = Instant::now();
    let mut events = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .boxed();

    while !matches!(events.try_next().await?, None | Some(watcher::Event::InitDone)) {}
    let sync = start.elapsed();
    let sync_rss = peak_rss();
    let mut result = serde_json::json!({
        "version": KUBE_VERSION,
        "stored": reader.len(),
        "syncMs": milliseconds(sync),
        "handledMs": milliseconds(sync),
        "startRssBytes": start_rss,
        "syncRssBytes": sync_rss,
    });

    if is_burst {
        let request = http::Request::post("/control/burst").body(Vec::new())?;
        tokio::spawn(async move { client.request::<serde_json::Value>(request).await });
        let mut count = 0;
        let mut first = None;
        while let Some(event) = events.try_next().await? {
            let watcher::Event::Apply(pod) = event else {
                continue;
            };
            count += 1;
            let begun = *first.get_or_insert_with(Instant::now);
            if pod.metadata.resource_version.as_deref() == Some(last_resource_version.as_str()) {
                result["burstMs"] = milliseconds(begun.elapsed()).into();
                break;
            }
        }
        result["burstEvents"] = count.into();
        result["endRssBytes"] = peak_rss().into();
    }
    println!("MEASUREMENT {result}");
    Ok(())
}

fn argument(name: &str) -> String {
    let prefix = format!("--{name}=");
    std::env::args()
        .find_map(|argument| argument.strip_prefix(&prefix).map(String::from))
        .unwrap_or_default()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
