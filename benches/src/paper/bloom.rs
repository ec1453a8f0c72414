//! Bloom filters, compared with the textbook.

use fastbloom::BloomFilter;
use koel::CuckooFilter;

use super::{Koel, Scale, check_holds, keys_of, observe, refused};
use crate::check;
use crate::error::CheckError;
use crate::filters::{BuildShared, Expected};
use crate::report::{PaperTable, Value};

const BITS_PER_KEY: [u32; 3] = [10, 15, 20];

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let mut rows = Vec::new();
    for bits in BITS_PER_KEY {
        let hashes = hashes(bits);
        let computed = rate(bits, hashes);
        let mut row = vec![
            Value::whole(u64::from(bits)),
            Value::whole(u64::from(hashes)),
            Value::percent(computed),
            Value::percent(0.6185_f64.powi(bits as i32)),
            Value::percent(measured(scale.keys, bits, hashes)?),
        ];
        row.extend(match cuckoo(scale.keys, bits)? {
            Some((cuckoo, rate)) => {
                let info = cuckoo.info();
                let sorted = if info.semi_sorted { ", semi-sorted" } else { "" };
                [
                    Value::text(format!("{} bits, b = {}{sorted}", info.fingerprint_bits, info.bucket_slots)),
                    Value::decimals(info.bits_per_key(), 2),
                    Value::percent(rate),
                ]
            }
            None => [Value::none(), Value::none(), Value::none()],
        });
        rows.push(row);
    }
    let headings = [
        "bits per key",
        "k = ln 2 * m/n",
        "(1 - e^(-kn/m))^k",
        "0.6185^(m/n)",
        "fastbloom",
        "koel in no more",
        "its bits per key",
        "its rate",
    ];
    Ok(PaperTable {
        title: "Bloom filters by the textbook".into(),
        source: format!(
            "Published: the formulas (Broder and Mitzenmacher, Internet Mathematics 2004, section 2). Measured: \
             fastbloom with that m and k, {} keys; and the cuckoo filter with the lowest rate in no more memory.",
            scale.keys
        ),
        headings: headings.map(String::from).to_vec(),
        rows,
        notes: Vec::new(),
        charts: Vec::new(),
    })
}

/// The best number of hash functions.
fn hashes(bits_per_key: u32) -> u32 {
    (f64::from(bits_per_key) * std::f64::consts::LN_2).round().max(1.0) as u32
}

/// The error rate that the textbook computes.
fn rate(bits_per_key: u32, hashes: u32) -> f64 {
    (1.0 - (-f64::from(hashes) / f64::from(bits_per_key)).exp()).powi(hashes as i32)
}

fn measured(keys: u64, bits_per_key: u32, hashes: u32) -> Result<f64, CheckError> {
    let failure = |detail: String| CheckError::new("fastbloom", detail);
    let bits = keys as usize * bits_per_key as usize;
    let mut filter = BloomFilter::with_num_bits(bits).hasher(BuildShared).hashes(hashes);
    keys_of(0).take(keys as usize).for_each(|key| {
        filter.insert(&key);
    });
    let found = keys_of(0).take(keys as usize).filter(|key| filter.contains(key)).count() as u64;
    check::no_false_negatives(found, keys).map_err(failure)?;
    let expected = rate(bits_per_key, hashes);
    let observed = observe(expected, keys, |key| filter.contains(&key));
    observed.check("fastbloom", Expected::AtMost(expected))?;
    Ok(observed.rate())
}

/// koel's filter with the lowest error rate in no more memory, if there is one, and its measured rate.
fn cuckoo(keys: u64, bits_per_key: u32) -> Result<Option<(Koel, f64)>, CheckError> {
    let most = keys as usize * bits_per_key as usize / 8;
    let shapes = (5..=bits_per_key)
        .flat_map(|bits| [(2, false), (4, false), (4, true), (8, false)].map(|s| (bits, s)));
    let build = |(bits, (slots, semi_sorted)): (u32, (u32, bool))| {
        let builder = CuckooFilter::builder().capacity(keys as usize).hasher(BuildShared);
        builder.fingerprint_bits(bits).bucket_slots(slots).semi_sorted(semi_sorted).build().ok()
    };
    let full_rate = |filter: &Koel| filter.info().false_positive_rate_when_full;
    let best = shapes
        .filter_map(build)
        .filter(|filter| filter.memory_usage() <= most)
        .min_by(|a, b| full_rate(a).total_cmp(&full_rate(b)));
    let Some(filter) = best else { return Ok(None) };
    let keys_of = || keys_of(0).take(keys as usize);
    if keys_of().any(|key| filter.insert(&key).is_err()) {
        return Err(refused("no room within the capacity"));
    }
    check_holds(&filter, keys_of())?;
    let observed = observe(full_rate(&filter), keys, |key| filter.contains(&key));
    observed.check("koel", Expected::About(full_rate(&filter)))?;
    Ok(Some((filter, observed.rate())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_says_seven_hashes_and_0_819_percent_for_ten_bits() {
        assert_eq!(BITS_PER_KEY.map(hashes), [7, 10, 14]);
        assert!((rate(10, 7) - 0.00819).abs() < 1e-5);
    }
}
