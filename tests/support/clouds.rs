//! What the servers of clouds do: check signatures, make frames. Written apart from the code under test.

use std::path::PathBuf;

use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::server::{Part, Reply, Request};

/// A private RSA key as a PEM file holds it.
#[must_use]
pub fn private_key() -> String {
    std::fs::read_to_string(key_file("service-account.key")).unwrap()
}

fn key_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("support/keys").join(name)
}

/// The claims of a web token that [`private_key`] signed.
///
/// # Panics
/// When the signature is wrong.
#[must_use]
pub fn claims_of(token: &str) -> Value {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let decode = |part: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap();
    let public = std::fs::read(key_file("service-account.public.der")).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let mut known = provider.signature_verification_algorithms.mapping.iter();
    let (_, ways) = known.find(|(scheme, _)| *scheme == rustls::SignatureScheme::RSA_PKCS1_SHA256).unwrap();
    ways[0].verify_signature(&public, signed.as_bytes(), &decode(&signature.replace('=', ""))).unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let header: Value = serde_json::from_slice(&decode(header)).unwrap();
    assert_eq!(header["alg"], "RS256");
    serde_json::from_slice(&decode(claims)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > 64 { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.resize(64, 0);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([&pad(0x36)[..], text].concat());
    Sha256::digest([&pad(0x5c)[..], &inner[..]].concat()).to_vec()
}

/// The scope that a request was signed for (`region/service`), by the holder of a secret.
///
/// # Panics
/// When the signature is not that of the request as it came.
#[must_use]
pub fn signed_scope(request: &Request, id: &str, secret: &str) -> String {
    let value = request.header("authorization").unwrap();
    let value = value.strip_prefix("AWS4-HMAC-SHA256 ").unwrap();
    let part = |name: &str| {
        let mut parts = value.split(", ").filter_map(|part| part.split_once('='));
        parts.find(|(own, _)| *own == name).unwrap().1.to_owned()
    };
    let (credential, names, signature) = (part("Credential"), part("SignedHeaders"), part("Signature"));
    let scope = credential.strip_prefix(&format!("{id}/")).unwrap();
    let steps: Vec<&str> = scope.split('/').collect();
    let [date, region, service, "aws4_request"] = steps[..] else { panic!("the scope {scope}") };
    let time = request.header("x-amz-date").unwrap();
    assert!(time.starts_with(date) && names.split(';').any(|name| name == "host"), "{time} {names}");
    assert_eq!(names.contains("x-amz-security-token"), request.header("x-amz-security-token").is_some());

    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    assert_eq!(query, "");
    let escape = |c: u8| match c {
        b'/' | b'-' | b'_' | b'.' | b'~' => char::from(c).to_string(),
        c if c.is_ascii_alphanumeric() => char::from(c).to_string(),
        c => format!("%{c:02X}"),
    };
    let mut text = format!("{}\n{}\n\n", request.method, path.bytes().map(escape).collect::<String>());
    for name in names.split(';') {
        text += &format!("{name}:{}\n", request.header(name).unwrap());
    }
    text += &format!("\n{names}\n{}", hex(&Sha256::digest(&request.raw)));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(&text)));
    let key =
        steps.iter().fold(format!("AWS4{secret}").into_bytes(), |key, step| hmac(&key, step.as_bytes()));
    assert_eq!(signature, hex(&hmac(&key, to_sign.as_bytes())), "for {text}");
    format!("{region}/{service}")
}

/// A reply of Bedrock: names of events and their JSON.
#[must_use]
pub fn event_stream(events: &[(&str, Value)]) -> Reply {
    let parts = events.iter().map(|(name, event)| {
        Part::Bytes(frame([(":event-type", name), (":message-type", "event")], event.to_string().as_bytes()))
    });
    in_frames(parts.collect())
}

/// A reply of frames, or of what pretends to be some.
#[must_use]
pub fn in_frames(parts: Vec<Part>) -> Reply {
    let headers = vec![("content-type".into(), "application/vnd.amazon.eventstream".into())];
    Reply { status: 200, headers, parts }
}

/// A failure of Bedrock in the midst of a reply.
#[must_use]
pub fn exception(name: &str, event: &Value) -> Part {
    let names = [(":exception-type", name), (":message-type", "exception")];
    Part::Bytes(frame(names, event.to_string().as_bytes()))
}

/// A frame with headers of texts beside its content type.
///
/// # Panics
/// When a header or the payload is too long.
#[must_use]
pub fn frame(names: [(&str, &str); 2], payload: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in names.into_iter().chain([(":content-type", "application/json")]) {
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend(key.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let mut out = Vec::new();
    out.extend(u32::try_from(16 + headers.len() + payload.len()).unwrap().to_be_bytes());
    out.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    out.extend(crc32(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload);
    out.extend(crc32(&out).to_be_bytes());
    out
}

/// Bit by bit, as the standard defines it.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
