//! Filters are read from anything that implements `Read`.

use std::io::{self, ErrorKind, Read};

use koel::{CuckooFilter, FilterError, ScalableCuckooFilter};

/// A reader that returns a few bytes at a time, and is interrupted now and then.
struct Halting<R>(R, usize);

impl<R: Read> Read for Halting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1 % 3 == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let few = buffer.len().min(1 + self.1 % 7);
        self.0.read(&mut buffer[..few])
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the line is cut"))
    }
}

fn all_read<T>(
    bytes: &[u8],
    read: impl Fn(&mut dyn Read) -> Result<T, FilterError>,
    write: impl Fn(&T) -> Vec<u8>,
) {
    let copy = read(&mut Halting(bytes, 0)).unwrap();
    assert_eq!(write(&copy), bytes);
    for at in (0..bytes.len()).step_by(7) {
        let cut = read(&mut (&bytes[..at]).chain(Broken)).err().expect("it is cut");
        assert!(matches!(cut, FilterError::Io(_)), "{at}: {cut}");
    }
    // The bytes that follow belong to somebody else.
    let mut both = [bytes, b"rest"].concat();
    let mut rest = &both[..];
    read(&mut rest).unwrap();
    assert_eq!(rest, b"rest");
    both.truncate(bytes.len() - 1);
    assert!(read(&mut &both[..]).is_err());
}

#[test]
fn short_reads_interruptions_and_errors() {
    let filter = CuckooFilter::builder().capacity(500).build().unwrap();
    (0..500_u64).for_each(|key| filter.insert(&key).unwrap());
    all_read(&filter.to_bytes(), |from| CuckooFilter::read_from(from), CuckooFilter::to_bytes);
    let grown = ScalableCuckooFilter::builder().capacity(500).build().unwrap();
    (0..9000_u64).for_each(|key| grown.insert(&key).unwrap());
    assert!(grown.info().tables.len() > 1);
    all_read(&grown.to_bytes(), |from| ScalableCuckooFilter::read_from(from), ScalableCuckooFilter::to_bytes);
}
