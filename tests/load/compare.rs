//! Whether two samples can be told apart.

/// The median of `values`, the upper of two middle ones.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The probability that one of `values` exceeds one of `others`, equal ones counted half: Mann–Whitney's U over the
/// number of pairs, the area under the curve of whoever guesses by it. 0.5: they tell nothing.
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

/// By how much [`auc`] strays, one standard deviation, if samples of these sizes are of one kind.
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
    fn what_exceeds_counts_one_and_what_is_equal_half() {
        assert_eq!(auc(&[3.0, 4.0], &[1.0, 2.0]), 1.0);
        assert_eq!(auc(&[1.0, 2.0], &[3.0, 4.0]), 0.0);
        assert_eq!(auc(&[1.0, 1.0], &[1.0]), 0.5);
        // Of six pairs 2 > 1 twice, 5 > all three; 2 equals 2.
        assert_eq!(auc(&[2.0, 5.0], &[1.0, 2.0, 3.0]), (1.0 + 0.5 + 3.0) / 6.0);
    }

    #[test]
    fn more_samples_stray_less() {
        assert!((stray(300, 300) - 0.0236).abs() < 0.0001);
        assert!(stray(3_000, 3_000) < 0.008);
    }
}
