#!/usr/bin/env bash
# Proves that tau-core builds without std: a sysroot that holds nothing but core, alloc and compiler_builtins.
# Any use of std, in core or in one of its dependencies, then fails with E0463.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
lib=$(rustc --print sysroot)/lib/rustlib/$host/lib
# The path is part of RUSTFLAGS: a fixed folder keeps the build cache.
root=$PWD/target/no-std/sysroot
mkdir -p "$root/lib/rustlib/$host/lib"
rm -f "$root/lib/rustlib/$host/lib/"*
for crate in core alloc compiler_builtins; do
  for file in "$lib"/lib"$crate"-*.rlib "$lib"/lib"$crate"-*.rmeta; do
    [ -e "$file" ] && ln -s "$file" "$root/lib/rustlib/$host/lib/"
  done
done

RUSTFLAGS="--sysroot=$root" cargo build --locked -p tau-core --target "$host" --target-dir target/no-std/build
echo "no_std: tau-core and its dependencies build with core and alloc alone"

# The example of a page is compiled the same way.
out=target/no-std/build/$host/debug
printf '#![no_std]\nextern crate alloc;\n#[path = "%s"]\npub mod page;\n' "$PWD/core/examples/in_browser_shape/page.rs" \
  > target/no-std/page.rs
rustc --edition 2024 --crate-type rlib --emit metadata --sysroot "$root" -L "dependency=$out/deps" -L dependency=target/no-std/build/debug/deps \
  --extern "tau_core=$out/libtau_core.rlib" --out-dir target/no-std target/no-std/page.rs
echo "no_std: so does the example in_browser_shape"
