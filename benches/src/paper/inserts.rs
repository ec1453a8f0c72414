//! Insert throughput against load.

use std::time::Instant;

use super::{Scale, keys_of};
use crate::error::CheckError;
use crate::faults::caught;
use crate::filters::{
    AtomicCuckoo, Filter, KoelCuckoo, KoelSemiSorted, Quotient, RustCuckooFilter, Size, slots_by_first_key,
};
use crate::report::{Curve, Curves, PaperTable, Value, significant};
use crate::rounds::interleaved;
use crate::stats::Spread;

/// The width of a band of load; the last ends where filters are full.
const BAND_PERCENT: usize = 5;
const BANDS: usize = 95 / BAND_PERCENT;

/// One filter: its name, its bits, whether it is koel, and how it is filled.
type Entrant = (&'static str, u32, bool, fn(u64, u32, usize) -> Result<Vec<f64>, CheckError>);

const ENTRANTS: [Entrant; 7] = [
    ("koel 8", 8, true, bands::<KoelCuckoo>),
    ("koel 12", 12, true, bands::<KoelCuckoo>),
    ("koel 16", 16, true, bands::<KoelCuckoo>),
    ("koel semi-sorted 13", 12, true, bands::<KoelSemiSorted>),
    ("atomic-cuckoo-filter 8", 8, false, bands::<AtomicCuckoo>),
    ("cuckoofilter 8", 8, false, bands::<RustCuckooFilter>),
    ("qfilter 8", 8, false, bands::<Quotient>),
];

pub(super) fn table(scale: &Scale) -> Result<PaperTable, CheckError> {
    let (mut entrants, mut notes) = (ENTRANTS, Vec::new());
    let samples = interleaved(&mut entrants, scale.rounds, |round, &mut (name, bits, is_koel, fill)| {
        match caught(|| fill(scale.keys, bits, 1 + round)) {
            Ok(bands) => bands.map(Some),
            Err(panic) if is_koel => Err(CheckError::new(name, panic)),
            Err(panic) => {
                notes.push(format!("{name} is out: {panic}"));
                Ok(None)
            }
        }
    })?;
    // The median of each band that all rounds reached.
    let medians: Vec<Vec<f64>> = samples
        .iter()
        .map(|rounds| {
            let rounds = rounds.as_deref().unwrap_or_default();
            let common = rounds.iter().map(Vec::len).min().unwrap_or(0);
            let at = |band: usize| rounds.iter().map(|bands| bands[band]).collect();
            (0..common).map(|band| Spread::of(at(band)).median).collect()
        })
        .collect();
    let rows = (0..BANDS).map(|band| {
        let mut row = vec![Value::text(format!("{}-{}%", band * BAND_PERCENT, (band + 1) * BAND_PERCENT))];
        row.extend(medians.iter().map(|bands| match bands.get(band) {
            Some(&mops) => Value::Number(mops, significant(mops)),
            None => Value::none(),
        }));
        row
    });
    let line = |(entrant, bands): (&Entrant, &Vec<f64>)| Curve {
        label: entrant.0.to_owned(),
        is_koel: entrant.2,
        is_computed: false,
        points: bands
            .iter()
            .enumerate()
            .map(|(band, mops)| (((band + 1) * BAND_PERCENT) as f64, *mops))
            .collect(),
    };
    let lines = ENTRANTS.iter().zip(&medians).map(line).collect();
    let mut headings = vec!["load".to_owned()];
    headings.extend(ENTRANTS.map(|(name, ..)| name.to_owned()));
    Ok(PaperTable {
        title: "Insert throughput against load".into(),
        source: format!(
            "Millions of inserts a second by one thread, from one load to the next; medians of {} interleaved rounds, some \
             {} keys each. Published, in section 7 of Fan et al. 2014, as a curve only: it falls as the filter fills, for \
             more and more fingerprints have to be moved.",
            scale.rounds, scale.keys
        ),
        headings,
        rows: rows.collect(),
        notes,
        charts: vec![Curves {
            title: "Inserts".into(),
            x: "load, percent".into(),
            y: "million inserts a second".into(),
            log_y: false,
            lines,
        }],
    })
}

/// Millions of inserts per second in each band of load, until a key finds no room.
fn bands<F: Filter>(keys: u64, bits: u32, round: usize) -> Result<Vec<f64>, CheckError> {
    let failure = |detail: String| CheckError::new(F::NAME, detail);
    let mut filter = F::empty(Size { keys, bits, attempt: 0 }).map_err(failure)?;
    let mut keys = keys_of(round);
    let mut inserted = Vec::new();
    inserted.extend(keys.by_ref().take(1));
    let slots = slots_by_first_key(&mut filter, inserted[0]);
    let mut mops = Vec::with_capacity(BANDS);
    for band in 1..=BANDS {
        let wanted = slots * band * BAND_PERCENT / 100;
        let chunk: Vec<u64> = keys.by_ref().take(wanted.saturating_sub(inserted.len())).collect();
        if chunk.is_empty() {
            break;
        }
        let start = Instant::now();
        let full = chunk.iter().any(|&key| filter.insert(key).is_err());
        let elapsed = start.elapsed();
        if full {
            // A refused key may have displaced another one, as cuckoofilter documents.
            return Ok(mops);
        }
        inserted.extend(&chunk);
        mops.push(chunk.len() as f64 / (elapsed.as_secs_f64() * 1e6).max(1e-3));
    }
    let found = inserted.iter().filter(|&&key| filter.contains(key)).count() as u64;
    crate::check::no_false_negatives(found, inserted.len() as u64).map_err(failure)?;
    Ok(mops)
}
