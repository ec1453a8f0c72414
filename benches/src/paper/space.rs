//! Bits per key against error rate.

use fastbloom::BloomFilter;
use koel::{CuckooFilter, FilterBuilder};

use super::{Scale, check_holds, keys_of, observe};
use crate::check;
use crate::error::CheckError;
use crate::filters::{BuildShared, Expected};
use crate::report::{Curve, Curves, PaperTable, Value, percent};

const RATES: [f64; 11] = [0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5];

/// The name of a kind, and its published bits per key, where l is log2(1/rate).
type Kind = (&'static str, fn(f64) -> f64);

/// The kinds that are compared.
const KINDS: [Kind; 4] = [
    ("Bloom", |l| l * std::f64::consts::LOG2_E),
    ("b = 2", |l| (l + 2.0) / 0.84),
    ("b = 4", |l| (l + 3.0) / 0.95),
    ("semi-sorted", |l| (l + 2.0) / 0.95),
];

/// Bits per key and the measured error rate.
type Measured = Option<(f64, f64)>;

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let mut measured: Vec<[Measured; 4]> = Vec::new();
    for rate in RATES {
        let builder = || CuckooFilter::builder().false_positive_rate(rate).hasher(BuildShared);
        measured.push([
            Some(bloom(scale.keys, rate)?),
            koel(scale.keys, rate, builder().bucket_slots(2).semi_sorted(false))?,
            koel(scale.keys, rate, builder().bucket_slots(4).semi_sorted(false))?,
            koel(scale.keys, rate, builder().semi_sorted(true))?,
        ]);
    }
    let computed = |rate: f64| KINDS.map(|(_, bits)| Some(bits(-rate.log2())));
    let rows = RATES.iter().zip(&measured).map(|(&rate, measured)| {
        let bits = measured.map(|measured| measured.map(|(bits, _)| bits));
        let mut row = vec![Value::percent(rate)];
        row.extend(computed(rate).map(|bits| Value::decimals(bits.unwrap_or(0.0), 2)));
        row.push(Value::text(smallest(computed(rate))));
        row.extend(measured.map(|measured| match measured {
            Some((bits, rate)) => Value::Number(bits, format!("{bits:.2} ({})", percent(rate))),
            None => Value::none(),
        }));
        row.push(Value::text(smallest(bits)));
        row
    });
    let mut headings = vec!["rate".to_owned()];
    headings.extend(KINDS.map(|(name, _)| name.to_owned()));
    headings.push("smallest".into());
    headings.extend(["fastbloom", "koel b = 2", "koel b = 4", "koel semi-sorted"].map(String::from));
    headings.push("smallest".into());
    Ok(PaperTable {
        title: "Bits per key against error rate".into(),
        source: format!(
            "Published: Fan et al. 2014, table 2: l is log2(1/rate); Bloom 1.44 l, cuckoo (l + log2(2b)) / load, semi-sorted \
             one bit less. Measured: {} keys in filters built for the rate; bits per key, all memory counted, and in \
             brackets the error rate that was measured. Widths are whole bits: a filter may do better than asked.",
            scale.keys
        ),
        headings,
        rows: rows.collect(),
        notes: notes(),
        charts: vec![chart(&measured)],
    })
}

fn smallest(bits: [Option<f64>; 4]) -> &'static str {
    let known = KINDS.iter().zip(bits).filter_map(|((name, _), bits)| Some((*name, bits?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map_or("-", |(name, _)| name)
}

/// Where one kind's computed size falls below another's.
fn crossing(a: usize, b: usize) -> f64 {
    let difference = |l: f64| KINDS[a].1(l) - KINDS[b].1(l);
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if (difference(middle) > 0.0) == (difference(high) > 0.0) { high = middle } else { low = middle }
    }
    2_f64.powf(-high)
}

fn notes() -> Vec<String> {
    vec![
        format!(
            "By the formulas a cuckoo filter is smaller than a Bloom filter below {} semi-sorted (published: below about \
             3%), below {} with b = 4, below {} with b = 2.",
            percent(crossing(3, 0)),
            percent(crossing(2, 0)),
            percent(crossing(1, 0))
        ),
        format!(
            "Of the plain layouts b = 2 is smaller above {}, b = 4 below (published, with fingerprints of whole bits: 0.2%).",
            percent(crossing(1, 2))
        ),
        "Two slots: narrow fingerprints cannot keep so many keys apart that all fit for sure, in however much memory. The \
         narrowest that can is taken for every higher rate as well."
            .to_owned(),
    ]
}

fn chart(measured: &[[Measured; 4]]) -> Curves {
    let exponents = || RATES.iter().map(|rate| -rate.log10());
    let mut lines = Vec::new();
    for (kind, (name, bits)) in KINDS.iter().enumerate() {
        let is_koel = kind > 0;
        lines.push(Curve {
            label: format!("{name}, published"),
            is_koel,
            is_computed: true,
            points: exponents().map(|x| (x, bits(x * std::f64::consts::LOG2_10))).collect(),
        });
    }
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let points = exponents().zip(measured).filter_map(|(x, measured)| Some((x, measured[kind]?.0)));
        lines.push(Curve {
            label: if kind > 0 { format!("koel, {name}") } else { "fastbloom".to_owned() },
            is_koel: kind > 0,
            is_computed: false,
            points: points.collect(),
        });
    }
    Curves {
        title: "Bits per key".into(),
        x: "error rate, as negative power of ten".into(),
        y: "bits per key".into(),
        log_y: false,
        lines,
    }
}

/// `None` if the layout cannot have this rate for this many keys.
fn koel(keys: u64, rate: f64, builder: FilterBuilder<BuildShared>) -> Result<Measured, CheckError> {
    let Ok(filter) = builder.capacity(keys as usize).build() else { return Ok(None) };
    let keys_of = || keys_of(0).take(keys as usize);
    if let Some(key) = keys_of().find(|key| filter.insert(key).is_err()) {
        return Err(CheckError::new(
            "koel",
            format!("no room for key {key:#x} within the capacity of {keys}"),
        ));
    }
    check_holds(&filter, keys_of())?;
    let observed = observe(rate, keys, |key| filter.contains(&key));
    observed.check("koel", Expected::AtMost(rate))?;
    Ok(Some((filter.memory_usage() as f64 * 8.0 / keys as f64, observed.rate())))
}

fn bloom(keys: u64, rate: f64) -> Result<(f64, f64), CheckError> {
    let mut filter = BloomFilter::with_false_pos(rate).hasher(BuildShared).expected_items(keys as usize);
    keys_of(0).take(keys as usize).for_each(|key| {
        filter.insert(&key);
    });
    let found = keys_of(0).take(keys as usize).filter(|key| filter.contains(key)).count() as u64;
    check::no_false_negatives(found, keys).map_err(|detail| CheckError::new("fastbloom", detail))?;
    let observed = observe(rate, keys, |key| filter.contains(&key));
    observed.check("fastbloom", Expected::AtMost(rate))?;
    Ok((filter.num_bits() as f64 / keys as f64, observed.rate()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_cross_where_they_should() {
        // 1.4427 l = (l + 2) / 0.95.
        assert!((crossing(3, 0) - 0.0237).abs() < 1e-4, "{}", crossing(3, 0));
        assert!((crossing(1, 2) - 0.0202).abs() < 1e-3, "{}", crossing(1, 2));
        assert_eq!(smallest([Some(3.0), Some(2.0), None, Some(2.5)]), "b = 2");
    }
}
