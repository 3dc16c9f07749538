#!/usr/bin/env bash
# Runs each fuzz target for a few seconds, starting from the committed corpora. Usage: fuzz-smoke.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-5}

if ! rustup run nightly rustc --version >/dev/null 2>&1; then
  echo "skipped: fuzzing needs a nightly toolchain, and none is installed"
  exit 0
fi
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz

# One build for all targets; `run` finds them ready.
cargo +nightly fuzz build

# New inputs go to a scratch folder; the committed corpora stay as they are.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for target in $(cargo +nightly fuzz list); do
  printf -- '-- %s\n' "$target"
  mkdir "$scratch/$target"
  seeds=()
  [ -d "corpus/$target" ] && seeds=("corpus/$target")
  cargo +nightly fuzz run "$target" "$scratch/$target" "${seeds[@]}" -- \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=0
done
echo "fuzz smoke passed"
