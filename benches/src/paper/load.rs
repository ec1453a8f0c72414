//! Load factors.

use koel::CuckooFilter;

use super::{Scale, check_holds, keys_of, refused};
use crate::error::CheckError;
use crate::filters::BuildShared;
use crate::report::{Curve, Curves, PaperTable, Value};
use crate::stats::Spread;

/// Wide enough that no two buckets are asked to hold more equal fingerprints than they have slots.
const BITS: u32 = 32;

/// Published: slots of a bucket, and the load that two hash functions reach.
const PUBLISHED: [(u32, f64); 4] = [(1, 0.50), (2, 0.84), (4, 0.95), (8, 0.98)];

/// A filter that has refused one key for this many inserted ones is full.
const KEYS_PER_REFUSAL: usize = 100;

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let (mut rows, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for (bucket_slots, published) in PUBLISHED {
        let loads = (0..scale.rounds).map(|round| loads(scale.keys, bucket_slots, round));
        let (at_first, at_last): (Vec<f64>, Vec<f64>) =
            loads.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let (at_first, at_last) = (Spread::of(at_first), Spread::of(at_last));
        first.push((f64::from(bucket_slots), at_first.median));
        last.push((f64::from(bucket_slots), at_last.median));
        rows.push(vec![
            Value::whole(u64::from(bucket_slots)),
            Value::percent(published),
            Value::percent(at_first.median),
            Value::text(format!("{:.1}% .. {:.1}%", 100.0 * at_first.min, 100.0 * at_first.max)),
            Value::percent(at_last.median),
        ]);
    }
    let line = |label: &str, is_computed: bool, points| Curve {
        label: label.into(),
        is_koel: !is_computed,
        is_computed,
        points,
    };
    let published = PUBLISHED.iter().map(|(slots, load)| (f64::from(*slots), *load)).collect();
    Ok(PaperTable {
        title: "Load factor against bucket size".into(),
        source: format!(
            "Published: Fan et al. 2014, section 5.1, two hash functions. Measured: koel's filter, {BITS}-bit \
             fingerprints, random keys until the first finds no room, and until one in {KEYS_PER_REFUSAL} has found none; \
             medians of {} rounds. koel's filter is cut into segments: the first refusal comes from the fullest.",
            scale.rounds
        ),
        headings: ["slots", "published", "first refusal", "min .. max", "1% refused"]
            .map(String::from)
            .to_vec(),
        rows,
        notes: Vec::new(),
        charts: vec![Curves {
            title: "Load factor".into(),
            x: "slots of a bucket".into(),
            y: "keys by slots".into(),
            log_y: false,
            lines: vec![
                line("published", true, published),
                line("koel, first refusal", false, first),
                line("koel, 1% refused", false, last),
            ],
        }],
    })
}

/// The load at the first refusal, and the load when one key in [`KEYS_PER_REFUSAL`] has been refused.
fn loads(keys: u64, bucket_slots: u32, round: usize) -> Result<(f64, f64), CheckError> {
    let filter = CuckooFilter::builder()
        .capacity(keys as usize)
        .fingerprint_bits(BITS)
        .bucket_slots(bucket_slots)
        .hasher(BuildShared)
        .build()
        .map_err(refused)?;
    let (mut first, mut inserted, mut refusals) = (None, Vec::new(), 0);
    for key in keys_of(round) {
        if filter.insert(&key).is_ok() {
            inserted.push(key);
            continue;
        }
        first.get_or_insert_with(|| filter.load_factor());
        refusals += 1;
        if refusals * KEYS_PER_REFUSAL >= inserted.len() {
            break;
        }
    }
    check_holds(&filter, inserted.into_iter())?;
    let last = filter.load_factor();
    Ok((first.unwrap_or(last), last))
}
