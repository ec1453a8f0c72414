//! Numbers of the command line and their ranges.

/// A number of keys.
pub(super) fn keys(text: &str) -> Result<u64, String> {
    number(text, 1, 1_000_000_000)
}

/// Bits of a slot: semi-sorted buckets begin at 5 bits for 6-bit fingerprints, and end at 31 for 32.
pub(super) fn bits(text: &str) -> Result<u32, String> {
    number(text, 5, 31).map(|bits| bits as u32)
}

/// A number of operations.
pub(super) fn ops(text: &str) -> Result<usize, String> {
    number(text, 1, 100_000_000).map(|ops| ops as usize)
}

/// A number of threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    number(text, 1, 256).map(|threads| threads as usize)
}

/// A number of rounds.
pub(super) fn rounds(text: &str) -> Result<usize, String> {
    number(text, 1, 10_000).map(|rounds| rounds as usize)
}

/// A number of seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("valid: a number from 0 to 3600".to_owned()),
    }
}

/// A number of entries.
pub(super) fn entries(text: &str) -> Result<usize, String> {
    number(text, 2, 100_000_000).map(|entries| entries as usize)
}

/// A fraction in percent.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("valid: a number above 0, up to 100".to_owned()),
    }
}

/// A number of MiB.
pub(super) fn mebibytes(text: &str) -> Result<u64, String> {
    number(text, 1, 1 << 40)
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let value = match text.strip_suffix(['k', 'K', 'm', 'M']) {
        Some(digits) => scaled(digits, if text.ends_with(['k', 'K']) { 1e3 } else { 1e6 }),
        None => text.replace('_', "").parse().ok(),
    };
    value
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| format!("valid: a whole number from {min} to {max}; suffixes k and M multiply"))
}

/// The digits times the factor, if that is a whole number.
fn scaled(digits: &str, factor: f64) -> Option<u64> {
    let value = (digits.parse::<f64>().ok()? * factor * 1e3).round() / 1e3;
    (value.fract() == 0.0 && (0.0..1e15).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_grouped_and_have_a_suffix() {
        assert_eq!(keys("950_000"), Ok(950_000));
        assert_eq!(keys("60k"), Ok(60_000));
        assert_eq!(keys("2M"), Ok(2_000_000));
        assert_eq!(keys("7.6M"), Ok(7_600_000));
        assert_eq!(keys("0.001k"), Ok(1));
        assert_eq!(seconds("0.25"), Ok(0.25));
        for bad in [
            "",
            "0",
            "-1",
            "1.5",
            "k",
            "many",
            "1.0001k",
            "-1k",
            "infk",
            "NaNM",
            "",
            "99999999999999999999M",
            "2000000000",
        ] {
            assert!(keys(bad).unwrap_err().contains("from 1 to 1000000000"), "{bad}");
        }
        for bad in ["", "x", "-1", "NaN", "inf", "3601"] {
            assert!(seconds(bad).unwrap_err().contains("from 0 to 3600"), "{bad}");
        }
        assert_eq!((percent("0.1"), percent("100")), (Ok(0.1), Ok(100.0)));
        for bad in ["", "x", "0", "-1", "NaN", "inf", "100.1"] {
            assert!(percent(bad).unwrap_err().contains("above 0, up to 100"), "{bad}");
        }
        assert!(entries("1").unwrap_err().contains("from 2 to"));
        assert!(mebibytes("0").unwrap_err().contains("from 1 to"));
        assert!(threads("0").unwrap_err().contains("from 1 to 256"));
    }
}
