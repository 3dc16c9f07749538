#!/usr/bin/env bash
# Rules a compiler does not check: no std in core, no panicking shortcuts outside tests, no overlong files.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { printf '%s\n' "$*"; bad=1; }

if found=$(grep -rnE '(^|[^_a-z])std::' core/src --include='*.rs' | grep -vE '^\S+:\s*//'); then
  complain "std in core:" "$found"
fi

# Files of tests inside src are exempt from the marker on: everything behind `#[cfg(test)]` at the end of a file.
while IFS= read -r file; do
  code=$(sed '/^#\[cfg(test)\]/,$d' "$file")
  lines=$(printf '%s\n' "$code" | wc -l)
  [ "$lines" -le 800 ] || complain "$file: $lines lines without tests; split it by idea"
  if found=$(printf '%s\n' "$code" | grep -nE '\.unwrap\(\)|\.expect\(|\b(todo|unimplemented|dbg)!\(' | grep -vE '^[0-9]+:\s*//'); then
    complain "$file: $found"
  fi
done < <(git ls-files 'core/src/*.rs' 'io-std/src/*.rs' 'io-smol/src/*.rs' 'cli/src/*.rs')

if found=$(grep -rn '#\[ignore\]' --include='*.rs' core io-std io-smol cli tests); then
  complain "ignored test without a reason:" "$found"
fi
# What is ignored by itself is run by another test, in a process of its own; conversations with real peers by people.
while IFS= read -r found; do
  file=${found%%:*}
  name=$(grep -A2 -F "${found#*:}" "$file" | sed -nE 's/^ *((pub )?fn )?([a-z0-9_]+)(\(.*)?$/\3/p' | head -1)
  grep -rqE "(alone\(|--exact\", )\"([a-z_]+::)*$name\"" "$(dirname "$file")" || complain "$file: nothing runs the ignored test $name"
done < <(grep -rE '#\[ignore = ' --include='*.rs' core io-std io-smol cli tests | grep -v '^tests/real_peers/')

[ "$bad" = 0 ] && echo "house rules hold"
exit "$bad"
