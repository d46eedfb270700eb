//! Text formats that several commands use.

use crate::failure::Failure;
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use secrecy::{ExposeSecret, SecretString};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::time::Duration;
use vault_core::passcode::{PasscodeSecret, RecoveryCode};
use vault_core::time::Timestamp;

/// Formats a time as RFC 3339 in UTC, in seconds.
pub fn rfc3339(moment: Timestamp) -> String {
    moment.to_rfc3339().unwrap_or_else(|| "unknown".to_owned())
}

/// Escape sequences that set and reset the colours of a QR code.
const QR_COLOURS: [&str; 2] = ["\x1b[40;97m", "\x1b[0m"];

/// Escapes control characters and invisible or bidirectional characters as `\u{1b}`, because text of a server or a
/// database row may contain terminal commands. Keeps line feeds and the colours of a QR code.
pub fn legible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|letter| letter != '\n' && is_command(letter)) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len() + 16), text);
    while let Some(letter) = rest.chars().next() {
        let colour = QR_COLOURS.into_iter().find(|colour| rest.starts_with(colour));
        let length = colour.map_or(letter.len_utf8(), str::len);
        match colour {
            Some(colour) => shown.push_str(colour),
            None if letter != '\n' && is_command(letter) => shown.extend(letter.escape_unicode()),
            None => shown.push(letter),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(shown)
}

/// Same as [`legible`], for text that must stay on one line.
pub fn legible_line(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => Cow::Owned(legible(&text.replace('\n', "\\n")).into_owned()),
        false => legible(text),
    }
}

/// Returns whether a character can affect the terminal or hide text: control characters, bidirectional controls, line
/// separators and invisible characters.
fn is_command(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Formats a count: `1 entry`, `2 entries`.
pub fn counted(count: u64, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {what}s"),
    }
}

/// A time in a flag: a date, a date and time, or a duration relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A point in time.
    At(Timestamp),
    /// A duration relative to now.
    After(Duration),
}

impl Moment {
    /// Returns the time, with a duration added to `now`.
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(moment) => moment,
            Self::After(wait) => {
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.as_millis().saturating_add(millis))
            }
        }
    }
}

impl Moment {
    /// Returns the time, with a duration subtracted from `now`.
    pub fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(moment) => moment,
            Self::After(wait) => {
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.as_millis().saturating_sub(millis))
            }
        }
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A plain number is rejected, because it could mean a year.
        let numeric = text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(wait) = duration(text).filter(|_| !numeric) {
            return Ok(Self::After(wait));
        }
        let midnight = format!("{text}T00:00:00Z");
        let moment = Timestamp::from_rfc3339(text).or_else(|| Timestamp::from_rfc3339(&midnight));
        moment
            .map(Self::At)
            .ok_or("must be a date (2027-01-31), a date and time (2027-01-31T12:00:00Z) or a duration (90d)")
    }
}

/// Renders a QR code in half-height block characters, including its quiet zone. On a terminal, it sets its own colours,
/// so that it is readable with any theme. Otherwise, it assumes a dark background.
pub(crate) fn qr_code(text: &SecretString) -> Result<String, Failure> {
    let code = QrCode::new(text.expose_secret())?; // shown once, to its owner
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    if !io::stdout().is_terminal() {
        return Ok(drawn);
    }
    let [white_on_black, reset] = QR_COLOURS;
    Ok(drawn.lines().map(|line| format!("{white_on_black}{line}{reset}")).collect::<Vec<_>>().join("\n"))
}

/// Formats the second factor for its owner: URI for the authenticator, QR code and recovery codes.
pub fn passcode_sheet(passcode: &PasscodeSecret, recovery_codes: &[RecoveryCode]) -> Result<String, Failure> {
    let mut text = format!("  authenticator  {}\n", passcode.uri.expose_secret()); // shown once, to its owner
    writeln!(text, "\nScan this with an authenticator app:\n\n{}\n", qr_code(&passcode.uri)?)?;
    text += &self::recovery_codes(recovery_codes);
    Ok(text)
}

/// Formats recovery codes for their owner.
pub fn recovery_codes(codes: &[RecoveryCode]) -> String {
    let mut text = "Recovery codes, each valid for one login without the authenticator:\n\n".to_owned();
    for pair in codes.chunks(2) {
        let codes: Vec<&str> = pair.iter().map(|code| code.0.expose_secret()).collect(); // shown once, to their owner
        text += &format!("  {}\n", codes.join("   "));
    }
    text
}

/// Parses a duration of whole seconds: a number of seconds, or numbers with units.
pub fn duration(text: &str) -> Option<Duration> {
    let plain = text.parse().ok().map(Duration::from_secs);
    plain.or_else(|| humantime::parse_duration(text).ok()).filter(|duration| duration.subsec_nanos() == 0)
}

/// Returns a parser for a duration of `least` to `most` seconds: a number of seconds, or units such as `1h 30m`.
pub fn seconds<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<u64> + PartialOrd + Copy + Into<i64>,
{
    move |text| {
        let seconds = duration(text).map(|duration| duration.as_secs()).and_then(|seconds| T::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| (least..=most).contains(seconds));
        seconds.ok_or_else(|| {
            let shown = |seconds: T| humantime::format_duration(Duration::from_secs(seconds.into().unsigned_abs()));
            let examples = [("90s", 90), ("15m", 900), ("12h", 43_200), ("7d", 604_800)];
            let (least_seconds, most_seconds) = (least.into(), most.into());
            let is_valid = |(_, seconds): &(&str, i64)| (least_seconds..=most_seconds).contains(seconds);
            let examples: Vec<&str> = examples.into_iter().filter(is_valid).map(|(example, _)| example).collect();
            format!("must be a duration from {} to {}, such as {}", shown(least), shown(most), examples.join(", "))
        })
    }
}

/// Returns the command that starts this program: its name if it is in `PATH`, else its path.
pub fn program() -> String {
    let Ok(path) = std::env::current_exe() else { return "orgvault".to_owned() };
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|directory| directory.join("orgvault")).find(|file| file.is_file())
    });
    match found.and_then(|found| found.canonicalize().ok()) {
        Some(found) if found == path => "orgvault".to_owned(),
        _ => quoted(&path.to_string_lossy()),
    }
}

/// Quotes `text` as one word for a POSIX shell, if necessary.
pub fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_in_text_are_escaped() {
        let planted = "a\x1b]0;title\x07b\r\u{9b}2J\u{61c}\u{202e}\u{2066}\u{200b}\tc\x7f";
        let shown = "a\\u{1b}]0;title\\u{7}b\\u{d}\\u{9b}2J\\u{61c}\\u{202e}\\u{2066}\\u{200b}\\u{9}c\\u{7f}";
        assert_eq!(legible(planted), shown);
        assert_eq!(legible_line("a\nb\x1b"), "a\\nb\\u{1b}");
        for plain in ["", "two\nlines", "Zürich 東京 مرحبا \u{1f512}", "\u{2584}\u{2580} blocks"] {
            assert_eq!(legible(plain), plain);
        }
        let code = format!("{}\u{2580}{}\x1b", QR_COLOURS[0], QR_COLOURS[1]);
        assert_eq!(legible(&code), format!("{}\u{2580}{}\\u{{1b}}", QR_COLOURS[0], QR_COLOURS[1]));
    }

    #[test]
    fn shell_quoting_preserves_text() {
        for text in ["plain", "", "it's", "$HOME `id` \\", "a b", "imports/*", "~", "\"", "a\nb"] {
            let message = |script: String| {
                let message = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
                String::from_utf8(message.stdout).expect("text")
            };
            assert_eq!(message(format!("printf %s {}", quoted(text))), text);
        }
    }

    #[test]
    fn instant_is_date_time_or_duration() {
        let now = Timestamp::from_millis(1_000);
        for (text, shown) in [
            ("2027-01-31", "2027-01-31T00:00:00Z"),
            ("2027-01-31T12:00:00Z", "2027-01-31T12:00:00Z"),
            ("2027-01-31T12:00:00+02:00", "2027-01-31T10:00:00Z"),
            ("90s", "1970-01-01T00:01:31Z"),
            ("30d", "1970-01-31T00:00:01Z"),
        ] {
            let moment = text.parse::<Moment>().map(|moment| rfc3339(moment.from(now)));
            assert_eq!(moment.as_deref(), Ok(shown), "{text}");
        }
        for text in ["", "2027", "3600", "soon", "2027-02-30", "31.01.2027", "2027-01-31 12:00", "-1d"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn durations_without_unit_are_seconds() {
        let read = seconds(60_u32, 86_400);
        for (text, seconds) in [
            ("60", 60),
            ("90s", 90),
            ("15m", 900),
            ("1h", 3_600),
            ("1h 30m", 5_400),
            ("24h", 86_400),
            ("1d", 86_400),
            ("1day", 86_400),
        ] {
            assert_eq!(read(text), Ok(seconds), "{text}");
        }
        for text in
            ["", " ", "59", "59s", "25h", "1 fortnight", "h7Qz", "-60", "90500ms", "99999999999999999999", "1e2"]
        {
            let violation = read(text).expect_err(text);
            assert_eq!(violation, "must be a duration from 1m to 1day, such as 90s, 15m, 12h", "{text}");
        }
        assert_eq!(seconds(0_i64, 604_800)("0"), Ok(0));
        assert_eq!(seconds(0_i64, 604_800)("7d"), Ok(604_800));
    }
}
