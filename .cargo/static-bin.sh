#!/bin/sh
# Stands before rustc for the crates of this workspace: links the binary `tau` statically on Linux (static-pie with
# glibc, static with musl by itself). A rustflag for the whole target would do the same, but then procedural macros,
# which are dynamic libraries, could not be built for the same target. A release build is also linked to be small, see
# docs/decisions/0002-static-binary.md.
case " $* " in
*" --crate-name tau "*"--crate-type bin "*)
  if [ "$(uname -s)" = Linux ]; then
    set -- "$@" -C target-feature=+crt-static
    case " $* " in
    *-musl*) ;;
    *" panic=abort "*)
      set -- "$@" -C link-arg=-Wl,--build-id=none,--no-eh-frame-hdr -C "link-arg=-Wl,-T,$(dirname "$0")/no-unwind.ld"
      # The linker that comes with Rust there; others may not know how.
      [ "$(uname -m)" = x86_64 ] && set -- "$@" -C link-arg=-Wl,--icf=all
      # The start code of older versions does not know packed relocations.
      case $(getconf GNU_LIBC_VERSION 2>/dev/null) in
      "glibc 2.3"[6-9]* | "glibc 2."[4-9][0-9]*) set -- "$@" -C link-arg=-Wl,-z,pack-relative-relocs ;;
      esac
      ;;
    esac
  fi
  ;;
esac
exec "$@"
