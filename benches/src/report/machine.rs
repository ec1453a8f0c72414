//! Where and when the measuring was done.

use serde::Serialize;

use super::significant;
use crate::pages;

/// Where the measuring was done.
#[derive(Debug, Default, Serialize)]
pub struct MachineInfo {
    /// The processor, as the system calls it.
    pub processor: String,
    /// Threads that run at once.
    pub cores: usize,
    /// Operating system, its version, and architecture.
    pub system: String,
    /// When the run began, in universal time.
    pub began: String,
    /// Percent of the processors' time that the machine gave to others while the program ran, as the system tells it.
    pub stolen_percent: Option<f64>,
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
    /// What the system tells about itself.
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
            ticks: Ticks::now(),
            huge_pages: pages::mode(),
            line_reads: Vec::new(),
        }
    }

    /// Tells what the machine gave to others since [`MachineInfo::detect`].
    pub fn conclude(&mut self) {
        self.stolen_percent = self.ticks.zip(Ticks::now()).map(|(before, now)| now.stolen_since(before));
    }

    /// The machine in one line.
    pub fn in_words(&self) -> String {
        let MachineInfo { processor, cores, system, huge_pages, .. } = self;
        format!("{processor}, {cores} cores, {system}, huge pages: {huge_pages}")
    }

    /// When it was, and how loud, in one line.
    pub fn hour_in_words(&self) -> String {
        let stolen = self.stolen_percent.map(|percent| {
            format!("; of the processors' time {} % went to other machines", significant(percent))
        });
        format!("{}{}", self.began, stolen.unwrap_or_default())
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
    /// That other machines had on the same processors.
    stolen: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Of the first line: `cpu`, then user, nice, system, idle, iowait, irq, softirq, steal, and what is in those already.
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Ticks { all: fields.iter().sum(), stolen: *fields.get(7)? })
    }

    fn stolen_since(self, before: Ticks) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 * 100.0 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_part_of_all_time() {
        let at = |stat| Ticks::parse(stat).unwrap();
        let before = at("cpu  100 0 50 800 0 0 0 50 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
        assert_eq!(before, Ticks { all: 1000, stolen: 50 });
        let after = at("cpu  200 0 50 900 0 0 0 100 9 0\n");
        assert_eq!((after.stolen_since(before), before.stolen_since(before)), (20.0, 0.0));
        for bad in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Ticks::parse(bad), None, "{bad}");
        }
    }
}
