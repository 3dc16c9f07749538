#!/bin/sh
# Stands before rustc for the crates of this workspace: links the binary `tau` statically on Linux (static-pie with
# glibc, static with musl by itself). A rustflag for the whole target would do the same, but then procedural macros,
# which are dynamic libraries, could not be built for the same target.
case " $* " in
*" --crate-name tau "*"--crate-type bin "*)
  [ "$(uname -s)" = Linux ] && set -- "$@" -C target-feature=+crt-static
  ;;
esac
exec "$@"
