use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn written_values_are_parsed(seconds in 0_i64..=253_402_300_799) {
        let at = Timestamp::from_millis(seconds * 1000);
        prop_assert_eq!(read(&write(at).unwrap()), Some(at));
    }

    #[test]
    fn other_text_is_refused(text in "[0-9TtZz:. +-]{18,26}") {
        if let Some(at) = read(&text) {
            prop_assert_eq!(write(at).unwrap(), text);
        }
    }
}

#[test]
fn timestamps_have_one_form() {
    assert_eq!(read("2026-11-20T12:00:00Z"), Some(crate::testing::NOW));
    let others = [
        "2026-11-20t12:00:00Z",
        "2026-11-20T12:00:00z",
        "2026-11-20 12:00:00Z",
        "2026-11-20T12:00:00.0Z",
        "2026-11-20T12:00:00+00:00",
        "2026-11-20T12:00:00",
        "2026-11-20T12:00:60Z",
        "2016-12-31T23:59:60Z",
        "2026-11-20T24:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-00-10T12:00:00Z",
        "2026-13-10T12:00:00Z",
        "2026-11-00T12:00:00Z",
        "10000-01-01T00:00:00Z",
        "+2026-11-20T12:00:0Z",
        "-026-11-20T12:00:00Z",
        " 2026-11-20T12:00:00Z",
        "2026-11-20T12:00:0\u{0660}Z",
        "",
    ];
    for text in others {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(write(Timestamp::from_millis(253_402_300_800_000)), None);
    assert_eq!(write(Timestamp::from_millis(i64::MAX)), None);
    assert_eq!(write(Timestamp::from_millis(i64::MIN)), None);
}
