//! Error rates, compared with the formula.

use koel::CuckooFilter;

use super::{Koel, Scale, check_holds, keys_of, observe, refused};
use crate::error::CheckError;
use crate::filters::{BUCKET_SLOTS, BuildShared, Expected, FULL, slot_rate};
use crate::report::{Curve, Curves, PaperTable, Value};

const BITS: std::ops::RangeInclusive<u32> = 4..=20;

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let (mut rows, mut formula, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for bits in BITS {
        let (filter, inserted) = full(scale.keys, bits)?;
        check_holds(&filter, inserted.into_iter())?;
        let published = slot_rate(filter.load_factor(), bits);
        let observed = observe(published, scale.keys, |key| filter.contains(&key));
        observed.check("koel", Expected::About(filter.false_positive_rate()))?;
        let rate = observed.rate();
        formula.push((f64::from(bits), published));
        measured.push((f64::from(bits), rate));
        rows.push(vec![
            Value::whole(u64::from(bits)),
            Value::whole(filter.len() as u64),
            Value::percent(filter.load_factor()),
            Value::percent(published),
            Value::percent(filter.false_positive_rate()),
            Value::percent(rate),
            Value::decimals(rate / published, 2),
        ]);
    }
    let headings = ["bits", "keys", "load", "2b * load / 2^f", "koel expects", "measured", "by formula"]
        .map(String::from);
    Ok(PaperTable {
        title: "Error rate against fingerprint bits".into(),
        source: "Published: Fan et al. 2014, section 5.1: at most about 2b * load / 2^f, which exceeds one bucket's chance \
                 where it is large. Measured: koel's filter, b = 4, filled to 95% or until a key finds no room; different \
                 absent keys, for some 1,000 false positives."
            .into(),
        headings: headings.to_vec(),
        rows,
        notes: vec![
            "Four and five bits: with so few, a key has few second buckets to choose from, and a filter of that many keys is \
             built with more room; it is filled to 95% none the less, as far as keys fit."
                .into(),
        ],
        charts: vec![Curves {
            title: "Error rate".into(),
            x: "fingerprint bits".into(),
            y: "false positives by look-ups of absent keys".into(),
            log_y: true,
            lines: vec![
                Curve {
                    label: "2b * load / 2^f".into(),
                    is_koel: false,
                    is_computed: true,
                    points: formula,
                },
                Curve { label: "koel, measured".into(), is_koel: true, is_computed: false, points: measured },
            ],
        }],
    })
}

/// A filter that is filled to 95%, or until it refuses a key; and its keys.
fn full(keys: u64, bits: u32) -> Result<(Koel, Vec<u64>), CheckError> {
    let build = |capacity: u64| {
        CuckooFilter::builder()
            .capacity(capacity as usize)
            .fingerprint_bits(bits)
            .bucket_slots(BUCKET_SLOTS)
            .hasher(BuildShared)
            .build()
    };
    // With few bits there may be no filter in which this many keys are certain to fit.
    let mut capacity = keys;
    let filter = loop {
        match build(capacity) {
            Ok(filter) => break filter,
            Err(_) if capacity > 16 => capacity /= 2,
            Err(error) => return Err(refused(error)),
        }
    };
    let wanted = (filter.capacity() as f64 * FULL) as usize;
    let inserted = keys_of(0).take(wanted).take_while(|key| filter.insert(key).is_ok()).collect();
    Ok((filter, inserted))
}
