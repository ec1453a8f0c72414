//! Hash functions of the user's, and whether a difference between two is noticed.

use std::hash::{BuildHasher, Hasher, RandomState};

use koel::{
    BytesError, CuckooFilter, FilterError, FilterHasher, FilterView, ScalableCuckooFilter, Xxh3, Xxh3Hasher,
};

/// XXH3 whose bytes are first combined with a number, and which takes 64-bit integers in the byte order of a machine that is,
/// or is not, big-endian.
struct Machine<const BIG_ENDIAN: bool, const BYTES: u8>(u64);

struct Machines<const BIG_ENDIAN: bool, const BYTES: u8>(Xxh3Hasher);

impl<const BIG_ENDIAN: bool, const BYTES: u8> Hasher for Machines<BIG_ENDIAN, BYTES> {
    fn write(&mut self, bytes: &[u8]) {
        let combined: Vec<u8> = bytes.iter().map(|byte| byte ^ BYTES).collect();
        self.0.write(&combined);
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&if BIG_ENDIAN { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl<const BIG_ENDIAN: bool, const BYTES: u8> BuildHasher for Machine<BIG_ENDIAN, BYTES> {
    type Hasher = Machines<BIG_ENDIAN, BYTES>;

    fn build_hasher(&self) -> Self::Hasher {
        Machines(Xxh3::with_seed(self.0).build_hasher())
    }
}

impl<const BIG_ENDIAN: bool, const BYTES: u8> FilterHasher for Machine<BIG_ENDIAN, BYTES> {
    const ID: u32 = 0x0001_0002;

    fn seed(&self) -> u64 {
        self.0
    }

    fn from_seed(seed: u64) -> Self {
        Machine(seed)
    }
}

type Little = Machine<false, 0>;
type Big = Machine<true, 0>;
type OtherBytes = Machine<false, 1>;

const KEYS: u64 = 1000;

/// Numbers, and their digits as bytes.
fn filter() -> CuckooFilter<Little> {
    let filter = CuckooFilter::builder().capacity(2 * KEYS as usize).fingerprint_bits(16);
    let filter = filter.hasher(Machine(7)).build().unwrap();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
        filter.insert_bytes(key.to_string().as_bytes()).unwrap();
    }
    filter
}

fn is_refused<T>(result: Result<T, FilterError>) -> bool {
    matches!(result, Err(FilterError::Bytes(BytesError::Hasher)))
}

/// So the author of a hash function has to make sure that integers hash alike everywhere.
#[test]
fn a_hash_function_that_differs_in_integers_only_is_not_noticed_and_denies_them() {
    let bytes = filter().to_bytes();
    let same = CuckooFilter::<Little>::from_bytes_as(&bytes).unwrap();
    let other = CuckooFilter::<Big>::from_bytes_as(&bytes).unwrap();
    let view = FilterView::<Big>::from_bytes_as(&bytes).unwrap();
    for key in 0..KEYS {
        let digits = key.to_string();
        assert!(same.contains(&key) && same.contains_bytes(digits.as_bytes()));
        assert!(other.contains_bytes(digits.as_bytes()) && view.contains_bytes(digits.as_bytes()));
        assert_eq!(view.contains(&key), other.contains(&key));
    }
    // 0 is the same in either order.
    let found = (0..KEYS).filter(|key| other.contains(key)).count();
    assert!((1..10).contains(&found), "{found} of {KEYS} integers are found");
}

/// It has two keys, and no seed: it could not be made again from its filter's bytes.
#[test]
fn a_filter_with_a_keyed_hash_function_is_cloned() {
    let keyed = RandomState::new();
    let filter = CuckooFilter::builder().capacity(KEYS as usize).hasher(keyed.clone()).build().unwrap();
    let growing = ScalableCuckooFilter::builder().capacity(100).hasher(keyed).build().unwrap();
    for key in 0..KEYS {
        filter.insert(&key).unwrap();
    }
    (0..20 * KEYS).for_each(|key| growing.insert(&key).unwrap());
    assert!(growing.info().tables.len() > 1);
    let (copy, grown) = (filter.clone(), growing.clone());
    filter.clear();
    growing.clear();
    assert!((0..KEYS).all(|key| copy.contains(&key) && grown.contains(&key)));
    assert!(copy.hash("ada") == filter.hash("ada") && grown.info().tables.len() > 1);
}

#[test]
fn a_hash_function_that_differs_in_bytes_is_refused() {
    let bytes = filter().to_bytes();
    assert!(is_refused(CuckooFilter::<OtherBytes>::from_bytes_as(&bytes)));
    assert!(is_refused(CuckooFilter::<OtherBytes>::read_from_as(&bytes[..])));
    assert!(is_refused(FilterView::<OtherBytes>::from_bytes_as(&bytes)));
    // By its number.
    assert!(is_refused(CuckooFilter::from_bytes(&bytes)));
    let growing = ScalableCuckooFilter::builder().hasher(Machine::<false, 0>(7)).build().unwrap().to_bytes();
    assert!(is_refused(ScalableCuckooFilter::<OtherBytes>::from_bytes_as(&growing)));
    assert!(ScalableCuckooFilter::<Big>::from_bytes_as(&growing).is_ok());
}
