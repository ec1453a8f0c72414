//! Medians with their spread.

use serde::Serialize;

/// The median of some measurements and their range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The middle measurement, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All of them, in the order in which they were taken.
    pub samples: Vec<f64>,
}

impl Spread {
    /// Summarizes `samples`.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn of(samples: Vec<f64>) -> Self {
        assert!(!samples.is_empty(), "a spread needs at least one sample");
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Spread { median, min: sorted[0], max: sorted[sorted.len() - 1], samples }
    }

    /// The ratios to the measurements of `other`: of the first samples, of the second samples, and so on.
    ///
    /// # Panics
    ///
    /// If there are none.
    #[must_use]
    pub fn by(&self, other: &Spread) -> Spread {
        Spread::of(self.samples.iter().zip(&other.samples).map(|(mine, theirs)| mine / theirs).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted_samples() {
        let odd = Spread::of(vec![9.0, 1.0, 5.0]);
        assert_eq!((odd.median, odd.min, odd.max), (5.0, 1.0, 9.0));
        assert_eq!(odd.samples, [9.0, 1.0, 5.0]);
        let even = Spread::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((even.median, even.min, even.max), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of(vec![7.0]).median, 7.0);
    }

    #[test]
    fn a_ratio_is_that_of_samples_taken_together() {
        let by = Spread::of(vec![8.0, 1.0, 3.0]).by(&Spread::of(vec![4.0, 0.5, 1.0]));
        assert_eq!((by.median, by.min, by.max), (2.0, 2.0, 3.0));
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(Spread::of(vec![10.0, 11.0, 0.1, 10.5, 11.5]).median, 10.5);
    }
}
