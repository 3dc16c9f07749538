//! One replacement in a large file, and the shell output that nobody will see.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tau_core::text::truncate::Limits;
use tau_core::tools::edit_apply::apply;
use tau_core::tools::output::OutputTail;

const MB: usize = 1 << 20;

/// Lines of words around one line that occurs once.
fn file(line: &str, bytes: usize) -> Vec<u8> {
    let half = line.repeat(bytes / 2 / line.len());
    [half.as_bytes(), b"THE UNIQUE LINE\n", half.as_bytes()].concat()
}

fn edit(c: &mut Criterion) {
    let words = "the quick brown fox jumps over the lazy dog and then some more words follow\n";
    let cases = [
        ("plain", words.to_owned(), "THE UNIQUE LINE"),
        ("several lines", words.to_owned(), "THE UNIQUE LINE\nthe quick"),
        ("blanks at line ends", format!("some words  \n{words}"), "THE UNIQUE LINE\nsome words"),
        ("some lines beyond ASCII", format!("{}naïve “quoted” text…\n", words.repeat(20)), "THE UNIQUE LINE"),
        ("CRLF", words.replace('\n', "\r\n"), "THE UNIQUE LINE"),
    ];
    let mut group = c.benchmark_group("edit 20 MB");
    group.throughput(Throughput::Bytes(20 * MB as u64)).sample_size(10);
    for (name, line, old) in cases {
        let file = file(&line, 20 * MB);
        group.bench_function(name, |b| {
            b.iter_batched(
                || file.clone(),
                |file| apply(file, &[(old, "changed")], "f"),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn output(c: &mut Criterion) {
    let piece = b"a line of output that is about as long as lines are\n".repeat(1260);
    let mut group = c.benchmark_group("output 200 MB");
    group.throughput(Throughput::Bytes(200 * MB as u64)).sample_size(10);
    group.bench_function("ASCII", |b| {
        b.iter(|| {
            let mut tail = OutputTail::new(Limits::default());
            for _ in 0..200 * MB / piece.len() {
                tail.push(piece.clone());
            }
            tail.finish();
            tail.snapshot(tau_core::text::clean::clean)
        });
    });
    group.finish();
}

criterion_group!(benches, edit, output);
criterion_main!(benches);
