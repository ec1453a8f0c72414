//! `koel-bench cache`: hit ratios, and the measurements of `cache_speed`.

use super::field::Field;
use super::{cache_speed, chosen};
use crate::caches::Id;
use crate::cli::{CACHE_SIZES, CURVE_SIZES, CacheArgs, CachePart, Output};
use crate::console::Console;
use crate::entrant::cache_entrant;
use crate::error::Error;
use crate::reference::{self, Exact};
use crate::replay::Bound;
use crate::report::Report;
use crate::report::cache::{CacheReport, HitRatioCell, HitRatioMeans};
use crate::report::cache_table::{cache_aims_table, hit_ratio_means_table, hit_ratio_table};
use crate::requests::{self, Requests};

/// Exact policies that caches bounded by entries are compared with.
const BY_ENTRIES: [(&str, Exact); 1] = [("exact LRU", Exact::Lru)];

/// Exact policies that caches bounded by bytes are compared with.
const BY_BYTES: [(&str, Exact); 3] =
    [("exact FIFO", Exact::Fifo), ("exact LRU", Exact::Lru), ("exact CLOCK", Exact::Clock)];

/// Runs the command.
pub(super) fn run(
    args: &CacheArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    let traces: Vec<Requests> =
        args.trace.iter().map(|path| Requests::of_file(path)).collect::<Result<_, Error>>()?;
    if !args.mib.is_empty() && traces.iter().all(|requests| requests.trace.bytes() == 0) {
        let has_column = traces.iter().any(|requests| !requests.trace.sizes.is_empty());
        let why = if has_column {
            "all sizes in the traces are 0"
        } else {
            "none of the traces has a column `size`"
        };
        return Err(Error::Input(format!("--mib: {why}")));
    }
    *output = args.output.create()?;
    let ids = chosen(&args.caches, |_| true);
    if args.measures(CachePart::HitRatio) {
        hit_ratios(args, traces, &ids, console, &mut report.caches)?;
    }
    let measured = cache_speed::measure(args, &ids, console, report);
    console.say(&cache_aims_table(&report.caches.aims));
    measured
}

fn hit_ratios(
    args: &CacheArgs,
    mut all: Vec<Requests>,
    ids: &[Id],
    console: &Console,
    report: &mut CacheReport,
) -> Result<(), Error> {
    if all.is_empty() || args.generated {
        all.extend(requests::generated(args.requests as u64));
    }
    requests::name_apart(&mut all);
    let bounds: Vec<Vec<(Bound, bool)>> = all.iter().map(|requests| bounds(args, requests)).collect();
    console.expect(bounds.iter().map(Vec::len).sum::<usize>() * ids.len());
    let replayed = all.iter().zip(bounds).try_for_each(|(requests, bounds)| {
        bounds.into_iter().try_for_each(|(bound, for_curves)| {
            let mut cell = cell(requests, bound, ids, console)?;
            cell.for_curves = for_curves;
            report.hit_ratios.push(cell);
            Ok(())
        })
    });
    for by_bytes in [false, true] {
        console.say(&hit_ratio_table(&report.hit_ratios, by_bytes));
        let means = HitRatioMeans::of(&report.hit_ratios, by_bytes);
        means.iter().for_each(|means| console.say(&hit_ratio_means_table(means)));
        report.means.extend(means);
    }
    replayed
}

/// The bounds of caches, and whether each is only for curves.
fn bounds(args: &CacheArgs, requests: &Requests) -> Vec<(Bound, bool)> {
    let mut percents: Vec<(f64, bool)> = args.sizes.iter().map(|&percent| (percent, false)).collect();
    if percents.is_empty() {
        percents.extend(CACHE_SIZES.map(|percent| (percent, false)));
        if args.output.html.is_some() {
            percents.extend(CURVE_SIZES.map(|percent| (percent, true)));
        }
    }
    let part = |whole: f64, percent: f64| ((whole * percent / 100.0).round() as u64).max(1);
    let keys = requests.trace.keys.len() as f64;
    let mut bounds: Vec<(Bound, bool)> = Vec::new();
    let mut add = |bound: Bound, for_curves: bool| {
        // With few keys, different percentages may be the same number.
        if !bounds.iter().any(|(other, _)| *other == bound) {
            bounds.push((bound, for_curves));
        }
    };
    if !requests.by_bytes_alone {
        percents
            .iter()
            .for_each(|&(percent, for_curves)| add(Bound::Entries(part(keys, percent)), for_curves));
    }
    let bytes = requests.trace.bytes() as f64;
    if bytes > 0.0 && args.mib.is_empty() {
        percents
            .iter()
            .for_each(|&(percent, for_curves)| add(Bound::Bytes(part(bytes, percent)), for_curves));
    } else if bytes > 0.0 {
        args.mib.iter().for_each(|mib| add(Bound::Bytes(mib << 20), false));
    }
    bounds
}

fn cell(requests: &Requests, bound: Bound, ids: &[Id], console: &Console) -> Result<HitRatioCell, Error> {
    let trace = &requests.trace;
    let counts = (trace.requests.len(), trace.keys.len());
    let mut cell = HitRatioCell::new(&requests.name, &requests.about, counts, bound);
    let title = format!("hit ratio on {} with {}", requests.name, cell.capacity_in_words());
    let mut entrants = Field::new(console, ids.iter().map(|&id| (id, cache_entrant(id))));
    for (id, replayed) in entrants.each(&title, |_, entrant| entrant.replay(trace, bound))? {
        cell.rows.extend(replayed.map(|replayed| cell.row_of(id, replayed)));
    }
    cell.absent = entrants.absent();
    let exact: &[(&str, Exact)] = if cell.by_bytes { &BY_BYTES } else { &BY_ENTRIES };
    let ratio = |policy| reference::hits(policy, trace, bound) as f64 / counts.0 as f64;
    cell.exact = exact.iter().map(|&(name, policy)| (name, ratio(policy))).collect();
    Ok(cell)
}
