//! Files: links, modes, special files, exclusive creation, torn appends.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{
    AppendOp, EntryKind, FsOp, ImageLimits, Meta, Op, Outcome, ReadText, TextSlice, WriteHow,
};
use tempfile::TempDir;

use crate::backend::{Backend, all};

fn each(test: impl Fn(&Backend, &Path)) {
    for backend in all() {
        let dir = TempDir::new().unwrap();
        test(&backend, &dir.path().canonicalize().unwrap());
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn write(b: &Backend, path: &Path, bytes: &[u8], how: WriteHow) -> Result<Outcome, IoFault> {
    b.run(Op::Fs(FsOp::Write { path: text(path), bytes: Arc::new(bytes.to_vec()), how }))
}

fn stat(b: &Backend, path: &Path) -> Result<Meta, FaultKind> {
    match b.run(Op::Fs(FsOp::Stat { path: text(path) })) {
        Ok(Outcome::Meta(meta)) => Ok(meta),
        Ok(other) => panic!("{other:?}"),
        Err(fault) => Err(fault.kind),
    }
}

fn read(b: &Backend, path: &Path, limit: u64) -> Result<Vec<u8>, IoFault> {
    match b.run(Op::Fs(FsOp::Read { path: text(path), limit }))? {
        Outcome::Bytes(bytes) => Ok(bytes),
        other => panic!("{other:?}"),
    }
}

fn lines(b: &Backend, path: &Path, first_line: u64) -> Result<TextSlice, IoFault> {
    let wanted =
        ReadText { path: text(path), first_line, max_lines: None, keep_lines: 2000, keep_bytes: 51_200 };
    match b.run(Op::Fs(FsOp::ReadText(wanted)))? {
        Outcome::Text(slice) => Ok(slice),
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn stat_follows_links_and_tells_the_real_path() {
    each(|b, dir| {
        fs::create_dir(dir.join("d")).unwrap();
        fs::write(dir.join("d/f"), "12345").unwrap();
        symlink("d", dir.join("l")).unwrap();
        let meta = stat(b, &dir.join("l/f")).unwrap();
        assert_eq!((meta.kind, meta.size, meta.real), (EntryKind::File, 5, text(&dir.join("d/f"))));
        assert!(meta.mtime_ms > 1_500_000_000_000);
        assert_eq!(stat(b, &dir.join("l")).unwrap().kind, EntryKind::Dir);
        assert_eq!(stat(b, &dir.join("no")), Err(FaultKind::NotFound));
        assert_eq!(stat(b, &dir.join("d/f/x")), Err(FaultKind::NotDir));
        assert_eq!(stat(b, Path::new("/dev/null")).unwrap().kind, EntryKind::Other);
        assert_eq!(stat(b, Path::new("/a\0b")), Err(FaultKind::Invalid));
    });
}

/// Bug 81.
#[test]
fn special_files_are_refused_without_blocking() {
    each(|b, dir| {
        let pipe = dir.join("live.pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink("/dev/zero", dir.join("zero")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
        for (name, word) in [("live.pipe", "named pipe"), ("zero", "character device"), ("socket", "socket")]
        {
            let path = dir.join(name);
            for fault in [
                read(b, &path, 100).unwrap_err(),
                lines(b, &path, 1).unwrap_err(),
                write(b, &path, b"x", WriteHow::Through).unwrap_err(),
            ] {
                assert_eq!(fault.kind, FaultKind::Special, "{fault}");
                assert!(fault.detail.contains(word) && fault.detail.contains(name), "{fault}");
            }
            let fault = write(b, &path, b"x", WriteHow::Replace { mode: 0o600 }).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Special);
        }
        assert_eq!(read(b, dir, 100).unwrap_err().kind, FaultKind::IsDir);
        assert_eq!(write(b, dir, b"", WriteHow::Through).unwrap_err().kind, FaultKind::IsDir);
        let status = lines(b, Path::new("/proc/self/status"), 1).unwrap();
        assert!(status.text.contains("Name:") && status.total_lines > 10);
        assert!(!read(b, Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
    });
}

#[test]
fn reading_has_limits() {
    each(|b, dir| {
        let path = dir.join("f");
        fs::write(&path, "a\nb\r\n\u{feff}c\n").unwrap();
        assert_eq!(read(b, &path, 10).unwrap(), fs::read(&path).unwrap());
        assert_eq!(read(b, &path, 9).unwrap_err().kind, FaultKind::TooBig);
        assert_eq!(read(b, Path::new("/proc/self/status"), 8).unwrap_err().kind, FaultKind::TooBig);
        let slice = lines(b, &path, 2).unwrap();
        assert_eq!((slice.text.as_str(), slice.total_lines), ("b\r\n\u{feff}c\n", 4));
        fs::write(&path, "").unwrap();
        assert_eq!(lines(b, &path, 1).unwrap().total_lines, 1);
    });
}

#[test]
fn large_files_stream() {
    each(|b, dir| {
        let path = dir.join("big");
        let line = format!("{}\n", "x".repeat(99));
        fs::write(&path, line.repeat(600_000)).unwrap();
        let slice = lines(b, &path, 599_999).unwrap();
        assert_eq!((slice.total_lines, slice.selected_lines), (600_001, 3));
        assert_eq!(slice.text, line.repeat(2));
        assert_eq!(slice.head.len(), 4100);
    });
}

/// Bugs 47 and 48.
#[test]
fn writing_keeps_links_and_modes() {
    each(|b, dir| {
        fs::create_dir(dir.join("real")).unwrap();
        for how in [WriteHow::Through, WriteHow::Replace { mode: 0o644 }] {
            let (target, link) = (dir.join("real/target.md"), dir.join("link.md"));
            fs::write(&target, "old").unwrap();
            set_mode(&target, 0o750);
            let _ = fs::remove_file(&link);
            symlink("real/target.md", &link).unwrap();
            write(b, &link, b"new", how.clone()).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!((fs::read(&target).unwrap(), mode(&target)), (b"new".to_vec(), 0o750));

            let dangling = dir.join("dangling");
            let _ = fs::remove_file(&dangling);
            let _ = fs::remove_file(dir.join("real/made"));
            symlink("real/made", &dangling).unwrap();
            write(b, &dangling, b"made", how.clone()).unwrap();
            assert_eq!(fs::read(dir.join("real/made")).unwrap(), b"made");
            assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());

            let cycle = dir.join("cycle");
            let _ = fs::remove_file(&cycle);
            symlink("cycle", &cycle).unwrap();
            assert!(write(b, &cycle, b"x", how.clone()).is_err());
            assert!(write(b, &dir.join("no/such/folder"), b"x", how).is_err());
        }
        assert_eq!(fs::read_dir(dir.join("real")).unwrap().count(), 2, "no temporary file is left");
    });
}

#[test]
fn new_files_get_their_mode() {
    each(|b, dir| {
        let (made, replaced) = (dir.join("made"), dir.join("replaced"));
        write(b, &made, b"1", WriteHow::Create { mode: 0o600 }).unwrap();
        assert_eq!(mode(&made), 0o600);
        let again = write(b, &made, b"2", WriteHow::Create { mode: 0o600 }).unwrap_err();
        assert_eq!((again.kind, fs::read(&made).unwrap()), (FaultKind::Exists, b"1".to_vec()));
        write(b, &replaced, b"1", WriteHow::Replace { mode: 0o600 }).unwrap();
        assert_eq!(mode(&replaced), 0o600);
        write(b, &made, b"", WriteHow::Through).unwrap();
        assert_eq!(fs::read(&made).unwrap(), b"");
    });
}

#[test]
fn folders_are_made_and_listed() {
    each(|b, dir| {
        b.run(Op::Fs(FsOp::MkdirAll { path: text(&dir.join("a/b/c")) })).unwrap();
        b.run(Op::Fs(FsOp::MkdirAll { path: text(&dir.join("a/b")) })).unwrap();
        fs::write(dir.join("f"), "").unwrap();
        let fault = b.run(Op::Fs(FsOp::MkdirAll { path: text(&dir.join("f/x")) })).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotDir);
        symlink("a", dir.join("to-dir")).unwrap();
        symlink("nowhere", dir.join("broken")).unwrap();
        let Ok(Outcome::Entries(mut entries)) = b.run(Op::Fs(FsOp::ReadDir { path: text(dir) })) else {
            panic!("entries")
        };
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let entries: Vec<_> = entries.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        assert_eq!(
            entries,
            [
                ("a", EntryKind::Dir),
                ("broken", EntryKind::Broken),
                ("f", EntryKind::File),
                ("to-dir", EntryKind::Dir),
            ]
        );
        for (path, kind) in [(dir.join("no"), FaultKind::NotFound), (dir.join("f"), FaultKind::NotDir)] {
            assert_eq!(b.run(Op::Fs(FsOp::ReadDir { path: text(&path) })).unwrap_err().kind, kind);
        }
    });
}

fn append(
    b: &Backend,
    path: &Path,
    bytes: &str,
    create: bool,
    expect_len: Option<u64>,
) -> Result<(u64, bool), IoFault> {
    let op = AppendOp { path: text(path), bytes: Arc::new(bytes.into()), create, expect_len };
    match b.run(Op::Append(op))? {
        Outcome::Appended { len, foreign } => Ok((len, foreign)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_are_created_once_and_grow() {
    each(|b, dir| {
        let path = dir.join("new/folder/s.jsonl");
        assert_eq!(append(b, &path, "{1}\n", true, None).unwrap(), (4, false));
        assert_eq!((mode(&path), mode(&dir.join("new/folder"))), (0o600, 0o700));
        assert_eq!(append(b, &path, "{1}\n", true, None).unwrap_err().kind, FaultKind::Exists);
        assert_eq!(append(b, &path, "{2}\n", false, Some(4)).unwrap(), (8, false));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{1}\n{2}\n");
        fs::remove_file(&path).unwrap();
        assert_eq!(append(b, &path, "x\n", false, Some(8)).unwrap_err().kind, FaultKind::NotFound);
        assert_eq!(append(b, dir, "x\n", false, None).unwrap_err().kind, FaultKind::IsDir);
    });
}

#[test]
fn torn_tails_of_others_cost_only_themselves() {
    each(|b, dir| {
        let path = dir.join("s");
        for (before, expect, after) in [
            ("{a}\n{to", Some(4), "{a}\n{to\n{b}\n"),
            ("{a}\n{c}\n", Some(4), "{a}\n{c}\n{b}\n"),
            ("{a}\n{to", None, "{a}\n{to\n{b}\n"),
            ("", Some(4), "{b}\n"),
        ] {
            fs::write(&path, before).unwrap();
            let (len, foreign) = append(b, &path, "{b}\n", false, expect).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
            assert_eq!((len, foreign), (after.len() as u64, expect.is_some()));
        }
    });
}

/// Bug 36.
#[test]
fn two_writers_do_not_tear_lines() {
    each(|b, dir| {
        let path = dir.join("s");
        fs::write(&path, "").unwrap();
        let line = |c: &str| format!("{}\n", c.repeat(5000));
        let ops: Vec<_> = (0..40)
            .map(|i| {
                let bytes = Arc::new(line(if i % 2 == 0 { "a" } else { "b" }).into_bytes());
                b.start(Op::Append(AppendOp { path: text(&path), bytes, create: false, expect_len: None }))
            })
            .collect();
        for op in ops {
            op.finish().1.unwrap();
        }
        let all = fs::read_to_string(&path).unwrap();
        assert_eq!(all.lines().filter(|l| l.len() == 5000).count(), 40);
        assert_eq!(all.len(), 40 * 5001);
    });
}

#[test]
fn images_are_resized() {
    use base64::Engine as _;
    // A 1x1 bitmap, 24 bits.
    let bmp = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\0";
    each(|b, dir| {
        let path = dir.join("image");
        fs::write(&path, bmp).unwrap();
        let fit = |limits| b.run(Op::Fs(FsOp::ReadImage { path: text(&path), limits }));
        let Ok(Outcome::Image(Ok(image))) = fit(ImageLimits::default()) else { panic!("an image") };
        assert_eq!(
            (image.mime_type.as_str(), image.converted_from.as_deref()),
            ("image/png", Some("image/bmp"))
        );
        let png = base64::engine::general_purpose::STANDARD.decode(image.data.as_str()).unwrap();
        fs::write(&path, &png).unwrap();
        let Ok(Outcome::Image(Ok(same))) = fit(ImageLimits::default()) else { panic!("an image") };
        assert_eq!((same.data.as_str(), same.converted_from), (image.data.as_str(), None));
        let Ok(Outcome::Image(Err(why))) = fit(ImageLimits { max_bytes: 10, ..ImageLimits::default() })
        else {
            panic!("no image")
        };
        assert!(why.contains("small"), "{why}");
        fs::write(&path, &png[..40]).unwrap();
        assert!(matches!(fit(ImageLimits::default()), Ok(Outcome::Image(Err(_)))));
    });
}
