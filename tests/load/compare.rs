//! Statistics that show if two samples can be distinguished.

/// Returns the median of `values`, or the upper one of two middle values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the probability that a value exceeds one of `others`, where equal values count half. This is Mann–Whitney's
/// U divided by the number of pairs, and the area under the ROC curve of a classifier that uses the value. At 0.5, the
/// samples are indistinguishable.
pub(crate) fn auc(values: &[f64], others: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = values.iter().map(|value| (*value, true)).collect();
    all.extend(others.iter().map(|value| (*value, false)));
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (mut below, mut exceeded) = (0.0, 0.0);
    for equal in all.chunk_by(|(one, _), (other, _)| one == other) {
        let of_values = equal.iter().filter(|(_, of_values)| *of_values).count() as f64;
        let of_others = equal.len() as f64 - of_values;
        exceeded += of_values * (below + of_others / 2.0);
        below += of_others;
    }
    exceeded / (values.len() as f64 * others.len() as f64)
}

/// Returns the standard deviation of [`auc`] for samples of these sizes from the same distribution.
pub(crate) fn stray(values: usize, others: usize) -> f64 {
    let (values, others) = (values as f64, others as f64);
    ((values + others + 1.0) / (12.0 * values * others)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn greater_values_count_one_and_equal_values_half() {
        assert_eq!(auc(&[3.0, 4.0], &[1.0, 2.0]), 1.0);
        assert_eq!(auc(&[1.0, 2.0], &[3.0, 4.0]), 0.0);
        assert_eq!(auc(&[1.0, 1.0], &[1.0]), 0.5);
        // Of the six pairs, four have a greater value: 2 > 1 and all three of 5. One pair is equal.
        assert_eq!(auc(&[2.0, 5.0], &[1.0, 2.0, 3.0]), (1.0 + 0.5 + 3.0) / 6.0);
    }

    #[test]
    fn more_samples_reduce_deviation() {
        assert!((stray(300, 300) - 0.0236).abs() < 0.0001);
        assert!(stray(3_000, 3_000) < 0.008);
    }
}
