//! `orgvault activate --check`

use crate::activation::args::ActivateArgs;
use crate::activation::listener::Listener;
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::text::rfc3339;
use std::process::ExitCode;
use vault_client::{CheckRequest, CheckedNamespace};
use vault_core::port::Clock as _;
use vault_crypto::SystemClock;

/// Runs the check. Returns status 1 if a credential cannot be used.
pub(super) fn run(args: &ActivateArgs, listener: &Listener, output: Output) -> Result<ExitCode, Failure> {
    let request = CheckRequest {
        namespace: args.wanted.namespace.to_string(),
        operations: args.operations.iter().map(|operation| operation.as_str().to_owned()).collect(),
        until: args.until.map(|until| rfc3339(until.from(SystemClock.now()))),
        vend: args.wanted.vend.map(|vend| vend.as_str().to_owned()),
    };
    let checked = listener.check(&request)?;
    output.print(&checked, &text(&checked))?;
    Ok(if checked.usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(checked: &CheckedNamespace) -> String {
    let mut rows = Vec::new();
    for credential in &checked.credentials {
        for (index, check) in credential.checks.iter().enumerate() {
            let once = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let result = match &check.reason {
                Some(reason) => match &check.bucket {
                    Some(bucket) => format!("{}: {reason} (bucket {bucket})", check.result),
                    None => format!("{}: {reason}", check.result),
                },
                None => check.result.to_string(),
            };
            let remedy = check.remedy.as_deref().unwrap_or_default().to_owned();
            rows.push(vec![once(&credential.id), once(&credential.kind), check.check.to_string(), result, remedy]);
        }
    }
    let of_no_use = checked.credentials.iter().filter(|credential| !credential.usable).count();
    let verdict = match of_no_use {
        0 if checked.usable => format!("All credentials of {} can be used.", checked.namespace),
        count => {
            let all = checked.credentials.len();
            format!("{count} of {all} credentials of {} cannot be used.", checked.namespace)
        }
    };
    format!("{}\n{verdict}", table(&["CREDENTIAL", "TYPE", "CHECK", "RESULT", "WHAT TO DO"], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_contains_remedies() {
        let checked: CheckedNamespace = serde_json::from_str(
            r#"{"namespace":"a/b","usable":false,"credentials":[
                {"id":"one","type":"s3","usable":false,"checks":[{"check":"settings","result":"passed"},
                 {"check":"read","result":"failed","reason":"denied","remedy":"Ask for it."}]},
                {"id":"two","type":"gcs","usable":true,"checks":[{"check":"authenticate","result":"passed"},
                 {"check":"list","result":"warning","bucket":"b-2","reason":"excess-rights","remedy":"Restrict it."}]}]}"#,
        )
        .expect("a report");
        assert_eq!(
            text(&checked),
            "CREDENTIAL  TYPE  CHECK         RESULT                               WHAT TO DO\n\
             one         s3    settings      passed\n\
             \x20                 read          failed: denied                       Ask for it.\n\
             two         gcs   authenticate  passed\n\
             \x20                 list          warning: excess-rights (bucket b-2)  Restrict it.\n\n\
             1 of 2 credentials of a/b cannot be used."
        );
    }
}
