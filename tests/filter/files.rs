//! Filters in files, which are complete at any time.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use koel::{BytesError, CuckooFilter, FilterError, ScalableCuckooFilter};

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names = Vec::from_iter(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    names.sort();
    names
}

/// A filter of either kind.
trait Kept: Sized {
    fn of(keys: u32) -> Self;
    fn save(&self, path: &Path) -> std::io::Result<()>;
    fn open(path: &Path) -> Result<Self, FilterError>;
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! kept {
    ($filter:ty) => {
        impl Kept for $filter {
            fn of(keys: u32) -> Self {
                <$filter>::from_keys(0..keys, 0.001).unwrap()
            }

            fn save(&self, path: &Path) -> std::io::Result<()> {
                self.save(path)
            }

            fn open(path: &Path) -> Result<Self, FilterError> {
                <$filter>::open(path)
            }

            fn bytes(&self) -> Vec<u8> {
                self.to_bytes()
            }
        }
    };
}

kept!(CuckooFilter);
kept!(ScalableCuckooFilter);

fn in_a_folder(test: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    test(folder.path());
}

fn comes_back_and_takes_the_place_of_the_other<F: Kept>(folder: &Path) {
    let path = folder.join("filter");
    // A larger one, a smaller one; of one segment and of several.
    for keys in [1000, 400_000, 0] {
        let filter = F::of(keys);
        filter.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), filter.bytes());
        assert_eq!(F::open(&path).unwrap().bytes(), filter.bytes());
        assert_eq!(names(folder), ["filter"]);
    }
}

#[test]
fn a_filter_comes_back_from_a_file_and_takes_the_place_of_another() {
    in_a_folder(comes_back_and_takes_the_place_of_the_other::<CuckooFilter>);
    in_a_folder(comes_back_and_takes_the_place_of_the_other::<ScalableCuckooFilter>);
}

/// The error about the bytes in a file.
fn bytes_error<F: Kept>(path: &Path, bytes: &[u8]) -> BytesError {
    fs::write(path, bytes).unwrap();
    match F::open(path).err() {
        Some(FilterError::Bytes(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn foreign_bytes_are_refused<F: Kept>(folder: &Path) {
    let path = folder.join("filter");
    let bytes = F::of(1000).bytes();
    let len = bytes.len() as u64;
    let longer = [&bytes[..], b"x"].concat();
    assert_eq!(bytes_error::<F>(&path, &longer), BytesError::Length { expected: len, found: len + 1 });
    assert!(matches!(bytes_error::<F>(&path, &bytes[..bytes.len() - 1]), BytesError::Length { .. }));
    assert!(matches!(bytes_error::<F>(&path, &[]), BytesError::Length { found: 0, .. }));
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(bytes_error::<F>(&path, &damaged), BytesError::Checksum { segment: 0 });
    fs::write(&path, &bytes).unwrap();
    F::open(&path).map(drop).unwrap();
}

#[test]
fn a_file_of_other_bytes_is_refused() {
    in_a_folder(foreign_bytes_are_refused::<CuckooFilter>);
    in_a_folder(foreign_bytes_are_refused::<ScalableCuckooFilter>);
    in_a_folder(|folder| {
        let growing = ScalableCuckooFilter::of(10).bytes();
        let error = bytes_error::<CuckooFilter>(&folder.join("filter"), &growing);
        assert_eq!(error, BytesError::Kind { scalable: true });
    });
}

/// The error is of this kind and names the file.
fn assert_names(error: &std::io::Error, kind: ErrorKind, path: &Path) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
}

fn open_error(path: &Path) -> std::io::Error {
    match CuckooFilter::open(path) {
        Err(FilterError::Io(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_the_file_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let filter = CuckooFilter::of(10);
    let in_no_folder = folder.path().join("none/filter");
    assert_names(&filter.save(&in_no_folder).unwrap_err(), ErrorKind::NotFound, &in_no_folder);
    assert_names(&open_error(&in_no_folder), ErrorKind::NotFound, &in_no_folder);
    // Only a file is replaced by a file.
    let inner = folder.path().join("folder");
    fs::create_dir(&inner).unwrap();
    assert_names(&filter.save(&inner).unwrap_err(), ErrorKind::InvalidInput, &inner);
    assert_names(&open_error(&inner), ErrorKind::InvalidInput, &inner);
    assert_eq!(names(folder.path()), ["folder"]);
}

/// Opening a pipe would block until somebody writes to it.
#[cfg(unix)]
#[test]
fn a_pipe_is_neither_replaced_nor_waited_for() {
    use std::os::unix::fs::FileTypeExt;

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_names(&CuckooFilter::of(10).save(&pipe).unwrap_err(), ErrorKind::InvalidInput, &pipe);
    assert_names(&open_error(&pipe), ErrorKind::InvalidInput, &pipe);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_and_what_it_leads_to_is_replaced() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, file) = (folder.path().join("link"), elsewhere.path().join("filter"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // A link to a file that does not exist yet, and to one that does.
    for keys in [10, 20] {
        let filter = CuckooFilter::of(keys);
        filter.save(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), filter.bytes());
    }
    assert_eq!((names(folder.path()).len(), names(elsewhere.path()).len()), (1, 1));
}

/// Like a file that is mapped into memory, it must not become shorter.
#[test]
fn who_has_the_old_file_open_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    let (old, new) = (CuckooFilter::of(1000), CuckooFilter::of(10));
    old.save(&path).unwrap();
    let file = fs::File::open(&path).unwrap();
    new.save(&path).unwrap();
    assert_eq!(CuckooFilter::read_from(file).unwrap().bytes(), old.bytes());
    assert_eq!(CuckooFilter::open(&path).unwrap().bytes(), new.bytes());
}

/// A reader that opens it finds one of the versions.
#[test]
fn a_file_that_is_replaced_all_the_time_is_whole_whenever_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    let filters = [CuckooFilter::of(1000), CuckooFilter::of(50)];
    let each = filters.each_ref().map(Kept::bytes);
    filters[0].save(&path).unwrap();
    std::thread::scope(|scope| {
        // Two writers, which do not write to the same new file.
        for filter in &filters {
            scope.spawn(|| (0..50).for_each(|_| filter.save(&path).unwrap()));
        }
        for _ in 0..200 {
            assert!(each.contains(&CuckooFilter::open(&path).unwrap().bytes()));
        }
    });
    assert_eq!(names(folder.path()), ["filter"]);
}
