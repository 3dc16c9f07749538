//! What the words of a failure say about another try: one table for all policies (spec 10 §5.2, spec 30 §8.3).

use crate::text::phrase::contains_any;

/// What kind of failure a text tells of. Context overflow is decided before, see [`crate::overflow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Likely gone in a while: another try makes sense.
    Transient,
    /// Quota or money: final until a person does something about it.
    Quota,
    /// Anything else, also what is unknown: final.
    Final,
}

/// Classifies the text of a failure.
#[must_use]
pub fn classify(text: &str) -> Class {
    match text {
        _ if contains_any(text, TRANSIENT_STATUS) => Class::Transient,
        _ if contains_any(text, QUOTA) => Class::Quota,
        _ if contains_any(text, OWN_FINAL) => Class::Final,
        _ if contains_any(text, TRANSIENT) => Class::Transient,
        _ => Class::Final,
    }
}

/// Statuses that decide alone, whatever else the text says (D18). Our texts of HTTP failures begin with the status.
pub const TRANSIENT_STATUS: &[&str] = &["{start}529{edge}", "{start}http 529{edge}"];

/// Words of an exhausted quota and of billing; they win over everything transient.
pub const QUOTA: &[&str] = &[
    "GoUsageLimitError",
    "FreeUsageLimitError",
    "monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
    "subscription_sharing_usage_limit_exceeded",
    "subscription_sharing_workplace_individual_usage_limit_exceeded",
    "\"code\"{blanks}:{blanks}[\"]1308{no digit}",
];

/// Beginnings and phrases of our own texts for final failures: the details behind them (addresses, file names, words
/// of a filter) may look like anything.
pub const OWN_FINAL: &[&str] = &[
    "{start}TLS failure",
    "{start}The request cannot be made:",
    "{start}The reply is too large:",
    "safety filter of the service blocked",
];

/// Words of failures that pass.
pub const TRANSIENT: &[&str] = &[
    // Load.
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "rate~limit",
    "too many requests",
    "ResourceExhausted",
    // Statuses.
    "{edge}429{edge}",
    "{edge}500{edge}",
    "{edge}502{edge}",
    "{edge}503{edge}",
    "{edge}504{edge}",
    "{edge}520{edge}",
    "{edge}524{edge}",
    "{edge}529{edge}",
    // Servers.
    "service~unavailable",
    "service~is~unavailable",
    "service~temporarily~unavailable",
    "service~is~temporarily~unavailable",
    "server~error",
    "internal~error",
    // Gateways.
    "provider~returned~error",
    "provider~returned~an~error",
    "exceeded request buffer limit while retrying upstream",
    "unable to forward upstream",
    "upstream~request~failed",
    "upstream_stream_read_error",
    "stream was interrupted",
    "http[/]2 stream failed",
    "upstream~connect",
    "reset before headers",
    // Network.
    "network~error",
    "connection~error",
    "connection~refused",
    "connection~lost",
    "connection~closed",
    "other side closed",
    "fetch failed",
    "request to {word} failed, reason:",
    "getaddrinfo",
    "connection reset by peer",
    "ENOTFOUND",
    "EAI_AGAIN",
    "socket hang up",
    "socket connection was closed",
    "{rim}ECONNRESET{rim}",
    "{rim}ECONNABORTED{rim}",
    "{rim}ECONNREFUSED{rim}",
    "{rim}ETIMEDOUT{rim}",
    "{rim}EPIPE{rim}",
    // Time.
    "time[d] out",
    "timeout",
    "terminated",
    // WebSocket.
    "websocket~closed",
    "websocket~error",
    "websocket~connection~limit~reached",
    // A stream that ended early.
    "ended without",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "http2 request did not get a response",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "pending stream has been canceled",
    // Advice.
    "retry delay",
    "you can retry your request",
    "try your request again",
    "please retry your request",
    // Shared subscriptions.
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{FaultKind, IoFault};
    use crate::provider::error::{ABORTED, request_fault_message, stream_fault_message};
    use crate::text::phrase::tests::check_rows;

    #[test]
    fn every_row_of_the_final_tables() {
        check_rows(
            TRANSIENT_STATUS,
            &[
                ("{start}529{edge}", "529 billing", "5290"),
                ("{start}http 529{edge}", "HTTP 529: x", "code 529"),
            ],
        );
        check_rows(
            QUOTA,
            &[
                ("GoUsageLimitError", "429 gousagelimiterror", "Go usage limit"),
                ("FreeUsageLimitError", "FreeUsageLimitError: x", "usage limit"),
                ("monthly usage limit reached", "Monthly usage limit reached for t", "monthly limit"),
                ("available balance", "enable Available Balance usage", "balance"),
                ("insufficient_quota", "429 (insufficient_quota)", "insufficient quota"),
                ("out of budget", "out of budget, 503", "over budget"),
                ("quota exceeded", "Quota exceeded for metric", "quota was exceeded"),
                ("billing", "402 billing stop", "bill"),
                (
                    "subscription_sharing_usage_limit_exceeded",
                    "subscription_sharing_usage_limit_exceeded 429",
                    "subscription_sharing_usage_unavailable",
                ),
                (
                    "subscription_sharing_workplace_individual_usage_limit_exceeded",
                    "subscription_sharing_workplace_individual_usage_limit_exceeded",
                    "subscription_sharing_usage_limit_exceeded",
                ),
                (
                    "\"code\"{blanks}:{blanks}[\"]1308{no digit}",
                    "{\"code\" : \"1308\"} {\"code\":1308}",
                    "{\"code\":13080} code 1308",
                ),
            ],
        );
        check_rows(
            OWN_FINAL,
            &[
                ("{start}TLS failure", "TLS failure: timeout.example", "a TLS failure"),
                (
                    "{start}The request cannot be made:",
                    "The request cannot be made: x:500/",
                    "cannot be made",
                ),
                ("{start}The reply is too large:", "The reply is too large: 500 MB", "too large"),
                (
                    "safety filter of the service blocked",
                    "the safety filter of the service blocked the reply",
                    "503 safety filter unavailable",
                ),
            ],
        );
    }

    #[test]
    #[rustfmt::skip]
    fn every_row_of_the_transient_table() {
        check_rows(TRANSIENT, &[
            ("overloaded", "529 {\"type\":\"overloaded_error\"}", "over loaded"),
            ("server_busy", "server_busy", "server busy"),
            ("servers are currently busy", "The servers are currently busy", "server is busy"),
            ("currently experiencing high demand", "is currently experiencing high demand", "high demand"),
            ("model is at capacity", "The model is at capacity", "at capacity"),
            ("rate~limit", "rate limit, rate_limit_error", "rate a limit"),
            ("too many requests", "Too Many Requests", "too many files"),
            ("ResourceExhausted", "ResourceExhausted: busy", "RESOURCE_EXHAUSTED"),
            ("{edge}429{edge}", "HTTP 429: slow", "a429b"),
            ("{edge}500{edge}", "code_500", "500ms, port 5000"),
            ("{edge}502{edge}", "(502)", "x502"),
            ("{edge}503{edge}", "status=503,", "1503"),
            ("{edge}504{edge}", "504 Gateway Timeout", "5040"),
            ("{edge}520{edge}", "520 unknown", "job 5020"),
            ("{edge}524{edge}", "524", "525"),
            ("{edge}529{edge}", "code=529;", "id529"),
            ("service~unavailable", "Service Unavailable", "service currently unavailable"),
            ("service~is~unavailable", "the service is unavailable", "service was unavailable"),
            ("service~temporarily~unavailable", "service temporarily unavailable", "temporarily unavailable"),
            ("service~is~temporarily~unavailable", "service is temporarily unavailable", "service is still unavailable"),
            ("server~error", "server_error: x", "server's own error"),
            ("internal~error", "InternalError", "internal trouble"),
            ("provider~returned~error", "provider_returned_error", "provider returned it"),
            ("provider~returned~an~error", "provider returned an error", "provider gave an error"),
            ("exceeded request buffer limit while retrying upstream", "exceeded request buffer limit while retrying upstream", "buffer limit"),
            ("unable to forward upstream", "Unable to forward upstream", "unable to forward"),
            ("upstream~request~failed", "upstream_request_failed", "upstream failed"),
            ("upstream_stream_read_error", "upstream_stream_read_error", "upstream stream read"),
            ("stream was interrupted", "the stream was interrupted", "stream interrupted"),
            ("http[/]2 stream failed", "HTTP/2 stream failed, http2 stream failed", "http 2 stream failed"),
            ("upstream~connect", "upstream connect error", "upstream is connected"),
            ("reset before headers", "reset before headers", "reset after headers"),
            ("network~error", "Network_Error", "network is in error"),
            ("connection~error", "Connection error.", "connection has an error"),
            ("connection~refused", "connection refused", "conn refused"),
            ("connection~lost", "Connection lost before", "connection was lost"),
            ("connection~closed", "Connection closed.", "port 5000 closed"),
            ("other side closed", "other side closed", "side closed"),
            ("fetch failed", "TypeError: fetch failed", "fetching failed"),
            ("request to {word} failed, reason:", "request to https://x/y failed, reason: z", "request to  failed, reason:"),
            ("getaddrinfo", "getaddrinfo EBUSY", "get addr info"),
            ("connection reset by peer", "Connection reset by peer (os error)", "reset by peer"),
            ("ENOTFOUND", "(ENOTFOUND)", "ENOENT"),
            ("EAI_AGAIN", "EAI_AGAIN", "EAGAIN"),
            ("socket hang up", "socket hang up", "socket hung up"),
            ("socket connection was closed", "The socket connection was closed unexpectedly", "socket was closed"),
            ("{rim}ECONNRESET{rim}", "read ECONNRESET", "MYECONNRESET ECONNRESET_X"),
            ("{rim}ECONNABORTED{rim}", "ECONNABORTED.", "ECONNABORTED2"),
            ("{rim}ECONNREFUSED{rim}", "connect ECONNREFUSED 127.0.0.1:1", "_ECONNREFUSED"),
            ("{rim}ETIMEDOUT{rim}", "connect ETIMEDOUT", "ETIMEDOUTS"),
            ("{rim}EPIPE{rim}", "write EPIPE", "EPIPES"),
            ("time[d] out", "Request timed out. time out", "timed  out"),
            ("timeout", "operation Timeout", "time-out"),
            ("terminated", "terminated", "terminating"),
            ("websocket~closed", "websocket closed 1006", "websocket is closed"),
            ("websocket~error", "WebSocket error", "websocket: an error"),
            ("websocket~connection~limit~reached", "websocket_connection_limit_reached", "websocket limit reached"),
            ("ended without", "the stream ended without a stop reason", "ended with"),
            ("stream ended before message_stop", "The stream ended before message_stop.", "ended before the stop"),
            ("stream ended before a terminal response event", "stream ended before a terminal response event", "stream ended before it"),
            ("http2 request did not get a response", "http2 request did not get a response", "did not get a response"),
            ("stream disconnected before completion", "stream disconnected before completion: x", "stream disconnected"),
            ("cut short after the reply had begun", "was cut short after the reply had begun", "cut short"),
            ("pending stream has been canceled", "The pending stream has been canceled", "stream canceled"),
            ("retry delay", "asks for a retry delay of 90 s", "delay"),
            ("you can retry your request", "You can retry your request", "retry it"),
            ("try your request again", "please try your request again", "try again"),
            ("please retry your request", "please retry your request", "retry your request"),
            ("subscription_sharing_usage_unavailable", "subscription_sharing_usage_unavailable", "subscription_sharing_usage"),
            ("subscription_sharing_user_unavailable", "subscription_sharing_user_unavailable", "subscription_sharing_user"),
        ]);
    }

    #[test]
    fn order_of_the_tables() {
        assert_eq!(classify("529 quota exceeded"), Class::Transient);
        assert_eq!(classify("429 quota exceeded, 529 before"), Class::Quota);
        assert_eq!(classify("TLS failure: proxy-500.example: connection closed"), Class::Final);
        assert_eq!(classify("500 TLS failure upstream"), Class::Transient);
        assert_eq!(classify(""), Class::Final);
    }

    #[test]
    fn our_own_texts_are_classified_as_meant() {
        let fault = |kind| IoFault::new(kind, "api-500.timeout.example");
        for kind in
            [FaultKind::Dns, FaultKind::TimedOut, FaultKind::Reset, FaultKind::Proxy, FaultKind::Connect]
        {
            let plain = IoFault::new(kind, "x");
            assert_eq!(classify(&request_fault_message(&plain)), Class::Transient, "{kind:?}");
            assert_eq!(classify(&stream_fault_message(&plain)), Class::Transient, "{kind:?}");
        }
        for kind in [FaultKind::Tls, FaultKind::Invalid] {
            assert_eq!(classify(&request_fault_message(&fault(kind))), Class::Final, "{kind:?}");
        }
        for kind in [FaultKind::Tls, FaultKind::TooBig] {
            assert_eq!(classify(&stream_fault_message(&fault(kind))), Class::Final, "{kind:?}");
        }
        assert_eq!(classify(ABORTED), Class::Final);
    }
}
