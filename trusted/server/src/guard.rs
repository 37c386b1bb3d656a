//! Keeps web pages out of an open server.
//!
//! A server without keys on a loopback address trusts whoever can connect, and
//! every page in a browser on this machine can. Two things tell a page's
//! requests from a program's:
//!
//! - `Host`: a page of `evil.example` that has this name resolve to 127.0.0.1
//!   (DNS rebinding) is of the server's own origin for the browser, but its
//!   requests name `evil.example`.
//! - `Origin`: browsers send it with every request across origins but plain
//!   `GET`s, whose answers they keep from the page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::app::App;
use crate::error::ApiError;

/// Whether a request came while the server was open to everybody on this
/// machine; an extension of the request, so that it is looked up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open(pub(crate) bool);

/// The layer that refuses them.
pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let checked = match app.is_open().await {
        Ok(open) => {
            request.extensions_mut().insert(Open(open));
            if open {
                check(request.headers(), request.uri(), &app.config.allowed_hosts)
            } else {
                Ok(())
            }
        }
        Err(error) => Err(error.into()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(headers: &HeaderMap, uri: &Uri, allowed: &[String]) -> Result<(), ApiError> {
    let foreign = |what: &str| {
        Err(ApiError::Foreign(format!(
            "this server has no API keys and is open to this machine's programs only, not to web \
             pages: {what}"
        )))
    };
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return foreign("there must be one Host header");
    };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return foreign("the Host header is not a host");
    };
    // A target in absolute form overrides the header.
    for authority in [Some(&host), uri.authority()].into_iter().flatten() {
        if !is_own(authority, allowed) {
            return foreign("the Host is foreign; settings may name it in `allowed_hosts`");
        }
    }
    for origin in headers.get_all(ORIGIN) {
        let own = origin.to_str().ok().and_then(|origin| {
            origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
        });
        if !own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_str())) {
            return foreign("the Origin is foreign");
        }
    }
    Ok(())
}

/// Whether a host is this machine by every resolver's account, or allowed.
fn is_own(authority: &Authority, allowed: &[String]) -> bool {
    let host = authority.host();
    // User information would only be there to mislead.
    if authority.as_str().contains('@') {
        return false;
    }
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
        || allowed.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins() {
        let cases = [
            // host                     origin                           let in
            ("localhost", None, true),
            ("LocalHost:7070", None, true),
            ("127.0.0.1:7070", None, true),
            ("127.8.9.1", None, true),
            ("[::1]:7070", None, true),
            ("proxy.test:1", None, true),
            ("evil.example", None, false),
            ("evil.example:7070", None, false),
            ("localhost.evil.example", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("localhost@evil.example", None, false),
            ("evil@localhost", None, false),
            ("192.168.1.1", None, false),
            ("0.0.0.0:7070", None, false),
            ("", None, false),
            ("localhost:7070", Some("http://localhost:7070"), true),
            ("localhost:7070", Some("http://localhost:3000"), false),
            ("localhost:7070", Some("http://evil.example"), false),
            ("localhost:7070", Some("null"), false),
            ("localhost:7070", Some("file://"), false),
        ];
        for (host, origin, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            let uri = Uri::from_static("/v1/exec");
            let checked = check(&headers, &uri, &["proxy.test".into()]);
            assert_eq!(checked.is_ok(), want, "{host} {origin:?}");
        }
        assert!(check(&HeaderMap::new(), &Uri::from_static("/"), &[]).is_err());
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let absolute = Uri::from_static("http://evil.example/v1/exec");
        assert!(check(&headers, &absolute, &[]).is_err());
    }
}
