//! Framing: server-sent events and lines of JSON, MB a second.

#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tau_core::wire::jsonl::JsonLines;
use tau_core::wire::sse::SseDecoder;

/// A streamed answer as servers send it: one short JSON document an event.
fn answer(events: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for i in 0..events {
        let delta = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {i} of a long answer \"}},\
             \"finish_reason\":null}}]}}\n\n"
        );
        body.extend_from_slice(delta.as_bytes());
    }
    body
}

/// An Anthropic stream: named events.
fn named(events: usize) -> Vec<u8> {
    let event = b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
                  \"delta\":{\"type\":\"text_delta\",\"text\":\"some words of text \"}}\n\n";
    event.repeat(events)
}

fn sse(c: &mut Criterion) {
    let mut group = c.benchmark_group("sse");
    for (name, body) in [("data", answer(20_000)), ("named", named(20_000))] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        for chunk in [16 << 10, 1 << 10, 97] {
            group.bench_with_input(BenchmarkId::new(name, chunk), &chunk, |b, &chunk| {
                b.iter(|| {
                    let (mut decoder, mut bytes) = (SseDecoder::new(), 0);
                    for piece in body.chunks(chunk) {
                        decoder.feed(piece, &mut |event| bytes += event.data.len());
                    }
                    decoder.finish(&mut |event| bytes += event.data.len());
                    black_box(bytes)
                });
            });
        }
    }
    group.finish();
}

fn jsonl(c: &mut Criterion) {
    let mut group = c.benchmark_group("jsonl");
    let line = format!("{{\"type\":\"message\",\"text\":\"{}\"}}\n", "x".repeat(500));
    let body = line.repeat(10_000).into_bytes();
    group.throughput(Throughput::Bytes(body.len() as u64));
    for chunk in [64 << 10, 4 << 10] {
        group.bench_with_input(BenchmarkId::new("lines", chunk), &chunk, |b, &chunk| {
            b.iter(|| {
                let (mut lines, mut bytes) = (JsonLines::new(), 0);
                for piece in body.chunks(chunk) {
                    lines.feed(piece, &mut |line| bytes += line.text().len());
                }
                lines.finish(&mut |line| bytes += line.text().len());
                black_box(bytes)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, sse, jsonl);
criterion_main!(benches);
