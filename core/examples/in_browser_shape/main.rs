//! The shape of an agent in a web page: the core without `std`, driven by bytes that are fed by hand. `page.rs` is
//! all of it; here the bytes come from a constant instead of `fetch`, three at a time.
//!
//! `cargo run -p tau-core --example in_browser_shape`
#![no_std]

extern crate alloc;
extern crate std;

#[allow(unreachable_pub, reason = "the file is a library of its own, too")]
mod page;

use page::{Page, Wish};
use std::{print, println};

const BODY: &str = r#"data: {"choices":[{"delta":{"content":"Bytes in, "}}]}

data: {"choices":[{"delta":{"content":"text out: "}}]}

data: {"choices":[{"delta":{"content":"ünïcödé in any pieces."},"finish_reason":"stop"}]}

data: [DONE]

"#;

fn main() {
    let mut page = Page::new("https://models.example/v1", "key-of-the-page", [7; 32], 0);
    let mut clock = 1;
    let mut wishes = page.prompt("Hello from the page", clock);
    while !wishes.is_empty() {
        let mut next = alloc::vec::Vec::new();
        for wish in wishes {
            clock += 1;
            match wish {
                Wish::Fetch(number, request) => {
                    println!("[{} {} with {} bytes]", request.method, request.url, request.body.len());
                    next.extend(page.head(number, 200, clock));
                    for piece in BODY.as_bytes().chunks(3) {
                        next.extend(page.bytes(number, piece, clock));
                    }
                    next.extend(page.end(number, clock));
                }
                Wish::AbortFetch(number) => next.extend(page.failed(number, "aborted", clock)),
                Wish::Text(text) => print!("{text}"),
                Wish::Settled => println!("\n[settled; a tick is due at {:?}]", page.due()),
            }
        }
        if let (true, Some(due)) = (next.is_empty(), page.due()) {
            next = page.tick(due);
        }
        wishes = next;
    }
}
