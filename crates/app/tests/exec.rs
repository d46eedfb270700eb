//! `orgvault exec`, against a listener that says what the test wrote down. Commands tell by their output that they are
//! there, so that nothing rests on time.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub, reason = "a test fails by panicking")]

mod support;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use support::{ACTIVATION, Door, S3_ID, SECRET, activation, gcs, problem, s3};

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap()).unwrap()
}

/// The activation was begun and ended, and no file is left.
#[track_caller]
fn nothing_is_left(door: &Door) {
    let asked = door.asked();
    assert_eq!(asked.last(), Some(&format!("DELETE /v1/activations/{ACTIVATION}")), "{asked:?}");
    assert_eq!(asked.len() % 2, 0, "{asked:?}");
    assert_eq!(door.left_behind(), 0);
}

#[test]
fn a_command_gets_its_variables_and_nothing_of_what_activates() {
    let door = Door::new(201, activation(&[s3()]));
    let mut command = door.command(&["exec", "--namespace", "a/b", "--purpose", "p", "--", "env", "-0"]);
    command.env("AWS_SESSION_TOKEN", "of somebody else").env("AWS_PROFILE", "other").env("KEPT", "as it is");
    let ran = support::Ran::of(command.output().unwrap()).done();
    let value = |name: &str| ran.split('\0').find_map(|set| set.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(value("AWS_SECRET_ACCESS_KEY"), Some(SECRET));
    assert_eq!(value("RCLONE_CONFIG_ORGVAULT_SECRET_ACCESS_KEY"), Some(SECRET));
    assert_eq!((value("ORGVAULT_BUCKET"), value("KEPT")), (Some("b"), Some("as it is")));
    for name in ["AWS_SESSION_TOKEN", "AWS_PROFILE", "ORGVAULT_ACTIVATION_URL", "ORGVAULT_INTEGRATION_TOKEN_FILE"] {
        assert_eq!(value(name), None, "{name}");
    }
    assert!(!ran.contains(&support::token()));
    assert_eq!(door.asked()[0], r#"POST /v1/activations {"namespace":"a/b","purpose":"p"}"#);
    nothing_is_left(&door);
    assert_eq!(fs::read_dir(door.path("work")).unwrap().count(), 0, "no vault was made");
}

#[test]
fn files_are_private_while_it_runs_and_gone_when_it_has_ended() {
    let door = Door::new(201, activation(&[gcs()]));
    let script = r#"umask; stat -c %a "$GOOGLE_APPLICATION_CREDENTIALS" "$(dirname "$GOOGLE_APPLICATION_CREDENTIALS")"
        dirname "$(dirname "$GOOGLE_APPLICATION_CREDENTIALS")"; cat "$GOOGLE_APPLICATION_CREDENTIALS""#;
    let mut command = Command::new("sh");
    // The command keeps the mask that it would have without us.
    command.args(["-c", r#"umask 027; exec "$@""#, "sh", env!("CARGO_BIN_EXE_orgvault"), "exec", "--namespace", "a/b"]);
    door.set_up(command.args(["--", "sh", "-c", script]));
    let printed = support::Ran::of(command.output().unwrap()).done();
    let lines: Vec<&str> = printed.splitn(5, '\n').collect();
    assert_eq!(lines[..4], ["0027", "600", "700", door.runtime().to_str().unwrap()]);
    let key: serde_json::Value = serde_json::from_str(lines[4]).unwrap();
    assert_eq!(key["type"], "service_account");
    nothing_is_left(&door);
}

#[test]
fn a_directory_of_the_session_that_is_open_to_others_is_not_used() {
    let door = Door::new(201, activation(&[gcs()]));
    fs::set_permissions(door.runtime(), fs::Permissions::from_mode(0o755)).unwrap();
    let printed = door.exec(&[], r#"dirname "$GOOGLE_APPLICATION_CREDENTIALS""#).done();
    let used = Path::new(printed.trim_end());
    assert!(used.is_absolute() && !used.starts_with(door.runtime()) && !used.exists(), "{used:?}");
    nothing_is_left(&door);
}

#[test]
fn several_have_names() {
    let door = Door::new(201, activation(&[s3(), gcs()]));
    let names = ["--name", "from=s3", "--name", "to=gcs"];
    let printed = door.exec(&names, r#"echo "$FROM_AWS_ACCESS_KEY_ID"; test -r "$TO_GOOGLE_APPLICATION_CREDENTIALS""#);
    assert_eq!(printed.done(), "AKIA\n");
    nothing_is_left(&door);
    // Without them it is not clear which is meant, and nothing is started.
    let said = door.exec(&[], "echo started").refused(1);
    assert!(said.contains(S3_ID), "{said}");
    nothing_is_left(&door);
}

#[test]
fn the_exit_status_is_the_commands() {
    let door = Door::new(201, activation(&[gcs()]));
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)]
    {
        assert_eq!(door.exec(&[], script).status, Some(status), "{script}");
        nothing_is_left(&door);
    }
    let plain = door.path("plain");
    fs::write(&plain, "echo started").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (program, status) in
        [("/nowhere/program", 127), ("no-such-program-anywhere", 127), (plain.to_str().unwrap(), 126)]
    {
        let said = door.run(&["exec", "--namespace", "a/b", "--", program]).refused(status);
        assert!(said.contains("cannot be started"), "{said}");
        nothing_is_left(&door);
    }
    for misused in
        [&["exec", "--namespace", "a/b"][..], &["exec", "--", "true"], &["exec", "--namespace", "a/b", "true"]]
    {
        door.run(misused).refused(2);
    }
    let refusing = Door::new(404, problem(404, "not-found"));
    refusing.exec(&[], "echo started").refused(1);
    assert_eq!(refusing.asked().len(), 1);
}

#[test]
fn an_end_that_fails_is_told_and_changes_no_status() {
    let door = Door::new(201, activation(&[gcs()]));
    // Over before the command was: nobody need know.
    door.end_with(404, problem(404, "not-found"));
    let ran = door.exec(&[], "exit 3");
    assert_eq!((ran.status, &*ran.stderr), (Some(3), ""));
    door.end_with(503, problem(503, "unavailable"));
    let ran = door.exec(&[], "exit 3");
    assert_eq!(ran.status, Some(3));
    assert!(ran.stderr.contains(&format!("activation {ACTIVATION} was not ended")), "{ran:?}");
    nothing_is_left(&door);
}

/// `orgvault exec` of `script`, which has printed its first line.
fn start(door: &Door, script: &str) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut command = door.command(&["exec", "--namespace", "a/b", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    (child, stdout, line.trim_end().to_owned())
}

#[test]
fn signals_reach_the_command() {
    let door = Door::new(201, activation(&[gcs()]));
    let signals = [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ];
    for (signal, name) in signals {
        let script = format!("trap 'kill $!; wait $!; exit 40' {name}; sleep 600 >/dev/null & echo ready; wait $!");
        let (mut child, _stdout, line) = start(&door, &script);
        assert_eq!((&*line, door.left_behind()), ("ready", 1));
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(40), "{name}");
        nothing_is_left(&door);
    }
    // One that does not heed them ends as if it had been sent them itself.
    let (mut child, _stdout, _) = start(&door, "echo ready; exec sleep 600 >/dev/null");
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    nothing_is_left(&door);
}

#[test]
fn signals_that_were_ignored_before_stay_ignored() {
    let door = Door::new(201, activation(&[s3()]));
    let script = r#"trap "" HUP USR1; exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_orgvault"), "exec", "--namespace", "a/b"]);
    door.set_up(command.args(["--", "grep", "SigIgn", "/proc/self/status"]));
    let printed = support::Ran::of(command.output().unwrap()).done();
    let set = u64::from_str_radix(printed.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    let ignored = |signal: Signal| set & (1 << (signal.as_raw() - 1)) != 0;
    assert!(ignored(Signal::HUP) && ignored(Signal::USR1) && !ignored(Signal::TERM) && !ignored(Signal::USR2));
}

#[test]
fn told_to_stop_before_the_command_is_there_it_does_not_start_it() {
    let (tell, told) = mpsc::channel();
    let stop = move || kill_process(told.recv().unwrap(), Signal::TERM).unwrap();
    let door = Door::with_hook(201, activation(&[gcs()]), Box::new(stop));
    let mut command = door.command(&["exec", "--namespace", "a/b", "--", "echo", "started"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    tell.send(pid(&child)).unwrap();
    let said = support::Ran::of(child.wait_with_output().unwrap()).refused(143);
    assert!(said.contains("before echo was started"), "{said}");
    nothing_is_left(&door);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_when_its_command_has_ended() {
    let door = Door::new(201, activation(&[gcs()]));
    let (mut killed, mut stdout, command) = start(&door, "echo $$; exec sleep 600");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = fs::read_dir(door.runtime()).unwrap().next().unwrap().unwrap().path();
    let key = left.join("0-gcp-key.json");
    // The command goes on, and keeps what it needs.
    door.exec(&[], "true").done();
    assert!(key.is_file());
    let command = Pid::from_raw(command.parse().unwrap()).unwrap();
    kill_process(command, Signal::KILL).unwrap();
    stdout.read_to_end(&mut Vec::new()).unwrap();
    flock(File::open(&left).unwrap(), FlockOperation::LockExclusive).unwrap(); // waits for the last holder
    door.exec(&[], "true").done();
    assert_eq!(door.left_behind(), 0);
}
