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
