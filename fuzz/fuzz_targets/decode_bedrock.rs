//! Replies of Amazon Bedrock. Half of the inputs are framed here, so that the fuzzer need not guess checksums: lines of a
//! name and its JSON become events.

#![no_main]

mod reply;

use libfuzzer_sys::fuzz_target;
use tau_core::model::Model;
use tau_core::provider::event_stream::crc32;

fuzz_target!(|data: &[u8]| {
    let model = Model { id: "m".into(), api: "bedrock-converse-stream".into(), ..Model::default() };
    reply::check(model.clone(), "key", data);
    let Some((seed, lines)) = data.split_first() else { return };
    let mut framed = vec![*seed];
    for line in lines.split(|byte| *byte == b'\n') {
        let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (name, payload) = line.split_at(at);
        framed.extend(frame(name, payload));
    }
    reply::check(model, "key", &framed);
});

fn frame(name: &[u8], payload: &[u8]) -> Vec<u8> {
    let kind: &[u8] = if name.ends_with(b"Exception") { b"exception" } else { b"event" };
    let key: &[u8] = if name.ends_with(b"Exception") { b":exception-type" } else { b":event-type" };
    let mut headers = Vec::new();
    for (key, value) in [(&b":message-type"[..], kind), (key, name)] {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend(key);
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value);
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
