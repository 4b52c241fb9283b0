//! The requests behind a number: `GET /api/v1/requests`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::query::{FilterParams, Parameters, WindowParams, number, read_selection, single};
use super::source::WindowSource;
use api::{RequestAnswer, RequestsAnswer, rfc3339};
use model::{Metric, Order, OrderKey, UnixNanos};

const WINDOW_AT: &str = "window_at";

/// The routes of this resource.
pub fn routes(windows: Arc<dyn WindowSource>) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(show)).with_state(windows)
}

/// The parameters that say which requests of a selection are shown first.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// A field to order by, largest first with a minus sign in front: a phase such as `gpu_queue_ms`, a part of the time
    /// to the first token such as `ttft_gateway_ms`, `duration_ms`, `ttft_ms`, `rate_stream`, `max_gap_ms`, `stall_rate`, or `window_at`. Requests
    /// that do not tell the field are left out.
    #[serde(deserialize_with = "single")]
    #[param(default = "-duration_ms")]
    order: Option<String>,
    /// How many requests at most.
    #[serde(deserialize_with = "number::<_, 1, 1000>")]
    #[param(default = 50, minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The first requests of a selection, by any measured field.
///
/// Each is as in `/api/v1/traces/{trace_id}`, without its spans. Requests of every state are listed, those that are
/// excluded too.
#[utoipa::path(
    get, path = "/api/v1/requests", tag = "read",
    params(WindowParams, FilterParams, ListParams),
    responses(
        (status = OK, body = RequestsAnswer, description = "The requests"),
        (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json",
         description = "A parameter that cannot be understood"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json",
         description = "The database is unavailable"),
    ),
)]
async fn show(
    State(windows): State<Arc<dyn WindowSource>>,
    Parameters((window, filters, list)): Parameters<(WindowParams, FilterParams, ListParams)>,
) -> Result<Json<RequestsAnswer>, ApiError> {
    let selection = read_selection(&window, &filters, UnixNanos::now())?;
    let order = read_order(list.order.as_deref().unwrap_or("-duration_ms"))?;
    let limit = list.limit.unwrap_or(50);
    let requests = windows.list(&selection, order, limit).await?;
    Ok(Json(RequestsAnswer {
        from: rfc3339(selection.window.start),
        to: rfc3339(selection.window.end),
        requests: requests.iter().map(RequestAnswer::from).collect(),
    }))
}

fn read_order(text: &str) -> Result<Order, ApiError> {
    let (descending, name) = match text.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, text),
    };
    if name == WINDOW_AT {
        return Ok(Order { key: OrderKey::WindowAt, descending });
    }
    if let Some(metric) = Metric::ALL.iter().copied().find(|metric| metric.field() == name) {
        return Ok(Order { key: OrderKey::Metric(metric), descending });
    }
    let accepted: Vec<String> = Metric::ALL.iter().map(|metric| metric.field()).chain([WINDOW_AT.to_owned()]).collect();
    let detail = format!(
        "order is {text:?}; give a field, with a minus sign in front for largest first: {}",
        accepted.join(", ")
    );
    Err(ApiError::Parameter { name: "order".to_owned(), detail, accepted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_fields_with_a_direction() {
        let order = |text| read_order(text).expect("an order");
        assert_eq!(order("-gpu_queue_ms"), Order { key: OrderKey::Metric(Metric::GpuQueue), descending: true });
        assert_eq!(order("-max_gap_ms"), Order { key: OrderKey::Metric(Metric::MaxGap), descending: true });
        assert_eq!(order("tpot_ms"), Order { key: OrderKey::Metric(Metric::Tpot), descending: false });
        assert_eq!(order("-window_at"), Order { key: OrderKey::WindowAt, descending: true });
        let error = read_order("gpu_queue").expect_err("no unit").to_string();
        assert!(error.contains("gpu_queue_ms"), "{error}");
    }
}
