//! The contestant kube-rs of `deno task bench --controllers`: the controller of examples/widget_controller.ts, as the
//! guides of kube.rs write one. It takes its connection from KUBECONFIG.
//!
//! It prints a line of JSON when it has reconciled so many different Widgets as its argument says, and runs until it is
//! killed.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Config};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const FINALIZER: &str = "example.com/widget";
const MANAGER: &str = "widgets";

/// What a user wants.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
#[kube(status = "WidgetStatus")]
struct WidgetSpec {
    color: Option<String>,
    size: Option<i64>,
}

/// What the controller has made of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WidgetStatus {
    ready: Option<bool>,
    observed_generation: Option<i64>,
    message: Option<String>,
}

#[derive(thiserror::Error, Debug)]
enum Error {
    #[error("{0}")]
    Kube(#[from] kube::Error),
    #[error("{0}")]
    Finalizer(#[from] Box<kube::runtime::finalizer::Error<Error>>),
    #[error("a Widget without a namespace")]
    NoNamespace,
}

struct Context {
    client: Client,
    recorder: Recorder,
    expected: usize,
    seen: Mutex<HashSet<String>>,
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = widget.namespace().ok_or(Error::NoNamespace)?;
    let widgets: Api<Widget> = Api::namespaced(context.client.clone(), &namespace);
    let name = widget.name_any();
    let has_finalizer = widget.finalizers().iter().any(|name| name == FINALIZER);
    let action = finalizer(&widgets, FINALIZER, widget, |event| async {
        match event {
            Finalizer::Apply(widget) => apply(&widget, &namespace, &context).await,
            Finalizer::Cleanup(widget) => cleanup(&widget, &namespace, &context).await,
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))?;
    if has_finalizer {
        count(&context, format!("{namespace}/{name}"));
    }
    Ok(action)
}

async fn apply(widget: &Widget, namespace: &str, context: &Context) -> Result<Action, Error> {
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let widgets: Api<Widget> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PatchParams::apply(MANAGER).force();
    let color = widget.spec.color.clone().unwrap_or("none".into());
    let size = widget.spec.size.unwrap_or_default().to_string();
    let name = config_map_name(widget);
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([
            ("color".into(), color.clone()),
            ("size".into(), size),
        ])),
        ..ConfigMap::default()
    };
    config_maps
        .patch(&name, &parameters, &Patch::Apply(&config_map))
        .await?;

    let status = widget.status.as_ref();
    if status.and_then(|status| status.message.as_ref()) != Some(&color) {
        let event = Event {
            type_: EventType::Normal,
            reason: "Configured".into(),
            note: Some(format!("color {color}")),
            action: "Configure".into(),
            secondary: None,
        };
        context
            .recorder
            .publish(&event, &widget.object_ref(&()))
            .await?;
    }
    let status = json!({
        "apiVersion": Widget::api_version(&()),
        "kind": Widget::kind(&()),
        "status": WidgetStatus {
            ready: Some(true),
            observed_generation: widget.metadata.generation,
            message: Some(color),
        },
    });
    widgets
        .patch_status(&widget.name_any(), &parameters, &Patch::Apply(&status))
        .await?;
    Ok(Action::await_change())
}

async fn cleanup(widget: &Widget, namespace: &str, context: &Context) -> Result<Action, Error> {
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    match config_maps
        .delete(&config_map_name(widget), &DeleteParams::default())
        .await
    {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    Ok(Action::await_change())
}

fn config_map_name(widget: &Widget) -> String {
    format!("widget-{}", widget.name_any())
}

/// Prints a line when so many different Widgets were reconciled.
fn count(context: &Context, key: String) {
    let mut seen = context.seen.lock().unwrap();
    if seen.insert(key) && seen.len() == context.expected {
        println!(
            "{}",
            json!({ "reconciled": context.expected, "pid": std::process::id() })
        );
    }
}

fn error_policy(_: Arc<Widget>, error: &Error, _: Arc<Context>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let expected = std::env::args()
        .nth(1)
        .ok_or("the number of Widgets is missing")?
        .parse()?;
    let client = Client::try_default().await?;
    let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
    let context = Context {
        client: client.clone(),
        recorder,
        expected,
        seen: Mutex::default(),
    };
    Controller::new(
        Api::<Widget>::all(client.clone()),
        watcher::Config::default(),
    )
    .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
    .with_config(Config::default().concurrency(4))
    .run(reconcile, error_policy, Arc::new(context))
    .for_each(|_| async {})
    .await;
    Ok(())
}
