//! Names of formats and sections.

use proptest::prelude::*;
use vault_cli::form::{Form, FormName};

proptest! {
    #[test]
    fn valid_names_of_sections_are_parsed(name in prop_oneof!["[A-Za-z]", "[A-Za-z][A-Za-z0-9_-]{0,63}"]) {
        let parsed = FormName::parse(&name).unwrap();
        prop_assert_eq!(parsed.as_str(), name);
    }

    #[test]
    fn other_names_of_sections_are_refused(name in prop_oneof![
        Just(String::new()),
        "[0-9_-][A-Za-z0-9_-]{0,20}",
        "[A-Za-z]{65,80}",
        "[a-z]{1,9}[ .:=\\[\\]ä\n][a-z]{0,9}",
    ]) {
        prop_assert!(FormName::parse(&name).is_err());
    }

    #[test]
    fn only_names_of_formats_are_parsed(text in "[a-z-]{0,22}") {
        let expected = Form::ALL.into_iter().find(|form| form.as_str() == text);
        prop_assert_eq!(Form::parse(&text), expected);
    }
}

#[test]
fn every_format_is_parsed_from_its_name() {
    for form in Form::ALL {
        assert_eq!(Form::parse(form.as_str()), Some(form));
    }
}
