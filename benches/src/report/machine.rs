//! The machine, and the time, of the measurements.

use serde::Serialize;

use super::significant;
use crate::pages;

/// The machine of the measurements.
#[derive(Debug, Default, Serialize)]
pub struct MachineInfo {
    /// The processor, as named by the system.
    pub processor: String,
    /// Threads that run at once.
    pub cores: usize,
    /// Operating system, its version, and architecture.
    pub system: String,
    /// When the run began, in universal time.
    pub began: String,
    /// The percentage of processor time that the machine gave to others while the program ran, as reported by the system.
    pub stolen_percent: Option<f64>,
    /// The percentage that other programs on this system had meanwhile.
    pub others_percent: Option<f64>,
    /// The system's counts at the beginning.
    #[serde(skip)]
    ticks: Option<Ticks>,
    /// When the system grants huge pages: `always`, `madvise`, `never` or `unknown`.
    pub huge_pages: String,
    /// Independent random reads of cache lines, by threads.
    pub line_reads: Vec<LineReads>,
}

/// The machine's limit for tables that do not fit its caches.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LineReads {
    /// Threads that read.
    pub threads: usize,
    /// Lines per microsecond, all threads together.
    pub per_microsecond: f64,
}

impl MachineInfo {
    /// Gathers what the system reports about itself.
    pub fn detect() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        MachineInfo {
            processor: model.map_or("unknown processor", |(_, name)| name.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: system(),
            // To the second.
            began: format!("{:.0}", jiff::Timestamp::now()),
            stolen_percent: None,
            others_percent: None,
            ticks: Ticks::now(),
            huge_pages: pages::mode(),
            line_reads: Vec::new(),
        }
    }

    /// Determines the share of processor time that others had since [`MachineInfo::detect`].
    pub fn conclude(&mut self) {
        let Some((before, now)) = self.ticks.zip(Ticks::now()) else { return };
        self.stolen_percent = Some(now.percent_since(before, |ticks| ticks.stolen));
        self.others_percent = Some(now.percent_since(before, |ticks| ticks.busy.saturating_sub(ticks.own)));
    }

    /// The machine in one line.
    pub fn in_words(&self) -> String {
        let MachineInfo { processor, cores, system, huge_pages, .. } = self;
        format!("{processor}, {cores} cores, {system}, huge pages: {huge_pages}")
    }

    /// The time of the measurements, and how much others ran meanwhile, in one line.
    pub fn hour_in_words(&self) -> String {
        let (Some(stolen), Some(others)) = (self.stolen_percent, self.others_percent) else {
            return self.began.clone();
        };
        format!(
            "{}; of the processors' time {} % went to other machines, {} % to other programs",
            self.began,
            significant(stolen),
            significant(others)
        )
    }
}

/// `linux 6.18.0 x86_64`.
fn system() -> String {
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let parts = [std::env::consts::OS, version.trim(), std::env::consts::ARCH];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How the processors have spent their time, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    /// Time of the programs of this system, this one included, and of the kernel's threads.
    busy: u64,
    /// Time of this program.
    own: u64,
    /// Time that other machines had on the same processors.
    stolen: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        let read = |path| std::fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    /// Parses the system's first line: `cpu`, then user, nice, system, idle, iowait, irq, softirq, steal, and times that are
    /// included in those; and this program's line: after its name in parentheses, the fields from the third on, where utime and
    /// stime are the 14th and 15th.
    fn parse(system: &str, own: &str) -> Option<Self> {
        let fields = system.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[user, nice, kernel, idle, iowait, irq, softirq, stolen] = fields.as_slice() else {
            return None;
        };
        let (_, own) = own.rsplit_once(") ")?;
        let own: Vec<u64> = own.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[own_user, own_kernel] = own.as_slice() else { return None };
        // Interrupts belong to no program, or to this one as well.
        let busy = user + nice + kernel;
        let all = busy + idle + iowait + irq + softirq + stolen;
        Some(Ticks { all, busy, own: own_user + own_kernel, stolen })
    }

    /// How much a part of the time has grown since `before`, in percent of all time since then.
    fn percent_since(self, before: Ticks, part: fn(&Ticks) -> u64) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        part(&self).saturating_sub(part(&before)) as f64 * 100.0 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_had_is_a_part_of_all_time() {
        const OWN: &str = "7 (a (b) c) R 1 7 7 0 -1 4194304 111 0 0 0 60 15 0 0 20 0 1 0 9 9 9\n";
        let at = |system, own: &str| Ticks::parse(system, own).unwrap();
        let before = at("cpu  100 10 50 780 10 0 0 50 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n", OWN);
        assert_eq!(before, Ticks { all: 1000, busy: 160, own: 75, stolen: 50 });
        let after = at("cpu  200 10 50 880 10 0 0 100 9 0\n", &OWN.replace(" 60 15 ", " 110 25 "));
        let stolen = |from| after.percent_since(from, |ticks| ticks.stolen);
        let others = |from| after.percent_since(from, |ticks| ticks.busy.saturating_sub(ticks.own));
        assert_eq!((stolen(before), stolen(after)), (20.0, 0.0));
        assert_eq!((others(before), others(after)), (16.0, 0.0));
        for bad in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Ticks::parse(bad, OWN), None, "{bad}");
        }
        for bad in ["", "7 (a) R 1 2", "7 (a) R 1 7 7 0 -1 4194304 111 0 0 0 x y"] {
            assert_eq!(Ticks::parse("cpu  1 2 3 4 5 6 7 8", bad), None, "{bad}");
        }
    }
}
