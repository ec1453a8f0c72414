//! Digests in the order of their segments: a table that is filled so is written to where it is in the caches.

use super::collect::with_room;
use super::error::FilterError;
use super::geometry::Geometry;
use crate::hash::Digest;

/// Digests in the order of their segments, those of one segment in the order they had; and where each segment's end. An error
/// if there is no memory for as many once more.
pub(crate) fn parted(
    digests: &[Digest],
    geometry: &Geometry,
) -> Result<(Vec<Digest>, Vec<usize>), FilterError> {
    let mut ends = filled(0, geometry.segments as usize)?;
    for digest in digests {
        ends[geometry.segment(*digest) as usize] += 1;
    }
    // From how many there are to where they begin, and from there, digest by digest, to where they end.
    let mut begin = 0;
    for end in &mut ends {
        begin += core::mem::replace(end, begin);
    }
    let mut parted = filled(Digest::ZERO, digests.len())?;
    for digest in digests {
        let end = &mut ends[geometry.segment(*digest) as usize];
        parted[*end] = *digest;
        *end += 1;
    }
    Ok((parted, ends))
}

/// So many of one item, if there is memory for them.
fn filled<T: Clone>(item: T, len: usize) -> Result<Vec<T>, FilterError> {
    let mut list = with_room(len)?;
    list.resize(len, item);
    Ok(list)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn digests_are_ordered_by_segment_and_keep_their_order_in_each() {
        for (segments, len) in [(1, 500), (2, 500), (3, 0), (29, 500), (1000, 500)] {
            let geometry = Geometry::new(segments, 8, 12, 12);
            let digests: Vec<Digest> = (0..len).map(Digest::new).collect();
            let (parted, ends) = parted(&digests, &geometry).unwrap();
            let mut begin = 0;
            for (segment, end) in (0..segments).zip(&ends) {
                let its = digests.iter().filter(|digest| geometry.segment(**digest) == segment);
                assert!(its.eq(&parted[begin..*end]), "{segment} of {segments}");
                begin = *end;
            }
            assert_eq!((ends.len(), begin), (segments as usize, digests.len()));
        }
    }
}
