//! Commands that the driver has beside those of WebDriver itself.

use fantoccini::wd::WebDriverCompatibleCommand;
use http::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A command to a session, by its path below it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Session {
    pub(crate) fn post(path: &str, body: Option<Value>) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            body: Some(body.unwrap_or_else(|| json!({}))),
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            body: None,
        }
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self {
            method: Method::DELETE,
            path: path.to_owned(),
            body: None,
        }
    }
}

impl WebDriverCompatibleCommand for Session {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/{}", self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = self.body.as_ref().map(Value::to_string);
        (self.method.clone(), body)
    }
}
