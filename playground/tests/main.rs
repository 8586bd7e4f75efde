//! The tests of the page's requests, as one program.

mod links;
mod requests;

use cutlet_playground::respond;
use serde_json::Value;

fn ask(request: Value) -> Value {
    serde_json::from_str(&respond(&request.to_string())).unwrap()
}
