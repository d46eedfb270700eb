//! The console in a browser: its first page, and pages with many rows.

use super::Ground;
use super::life::replacements_of;
use crate::account::{Account, Organization};
use crate::client::run;
use crate::report::{Report, Target};
use crate::{Result, note};
use serde_json::json;
use vault_tests::browser::Browser;

/// Number of page loads.
const LOADS: usize = 15;
/// Records the time at which an input field exists.
const READY: &str = "new MutationObserver((_, observer) => {
    if (document.querySelector('input')) { window.ready = performance.now(); observer.disconnect(); }
}).observe(document, {childList: true, subtree: true});";
const BYTES: &str = "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0) / 1000;";

/// Number of credentials that the pages list.
const CREDENTIALS: u64 = 1_000;
/// Number of replacements in the audit log, in addition to five of each credential and the saves.
const REPLACEMENTS: usize = 4_000;
/// Records the longest interval in which the browser was busy, if it was at least 50 ms.
const STALLS: &str = "window.longest = 0;
new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({type: 'longtask', buffered: true});";
/// Returns the time from the choice of a page until it shows this number of rows.
const SHOW: &str = "if (!window.began) { window.began = performance.now(); location.hash = arguments[0]; }
    const rows = document.querySelectorAll('main tbody tr').length;
    // Until the new page is rendered, the document contains the previous one.
    if (document.querySelector('main h1')?.textContent !== arguments[2] || rows < arguments[1]) return null;
    return performance.now() - window.began;";

/// Measures the first page and the pages with many rows.
pub(crate) fn console(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    first_page(ground, report)?;
    long_pages(ground, report)
}

/// Opens the pages with 1,000 credentials and with 10,000 audit entries.
fn long_pages(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    note("the console's pages over many rows");
    let organization = Organization::create(ground.vault, ground.server, "Console")?;
    let mut replacements = replacements_of(ground, &organization, CREDENTIALS)?;
    replacements.left(REPLACEMENTS);
    run(&ground.to_the_end(16), &mut replacements)?;
    let admin = Account::create_as(ground.vault, &organization.name, "admin@console.example.com", "admin")?;
    let browser = Browser::open(1280, 800);
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": STALLS}));
    browser.go(&format!("http://{}/", ground.server.address));
    browser.fill("E-mail", &admin.email);
    browser.fill("Password", &admin.password);
    browser.fill("Passcode", &admin.right_passcode());
    browser.press("Sign in");
    browser.see("Find");
    for (name, place, title) in
        [("1,000 credentials", "#/credentials", "Credentials"), ("10,000 entries of the audit", "#/audit", "Audit")]
    {
        browser.script("window.began = 0; window.longest = 0", &[]);
        let time = browser.until(name, SHOW, &[json!(place), json!(50), json!(title)]).as_f64().ok_or("no time")?;
        report.quantity(format!("console, page of {name}, until it is shown"), time, "ms", None);
        browser.script("document.querySelector('main').scrollIntoView(false)", &[]);
        let longest = browser.script("return window.longest", &[]).as_f64().ok_or("no time")?;
        let smooth = Target::new("≤ 100 ms", longest <= 100.0);
        report.quantity(
            format!("console, page of {name}, longest task (0: none of 50 ms)"),
            longest,
            "ms",
            Some(smooth),
        );
    }
    Ok(())
}

/// Measures the size of the first page with everything that it loads, and the time until a user can type.
fn first_page(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    note("the console's first page");
    let browser = Browser::open(1280, 800);
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": READY}));
    let mut times = Vec::new();
    for _ in 0..LOADS {
        browser.devtools("Network.clearBrowserCache", &json!({}));
        browser.go(&format!("http://{}/", ground.server.address));
        times.extend(browser.until("a field", "return window.ready", &[]).as_f64());
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().ok_or("the page was never ready")?;
    let size = browser.script(BYTES, &[]).as_f64().ok_or("the page has no size")?;
    let small = Target::new("≤ 120 KB", size <= 120.0);
    report.quantity("console, first page with all that it loads", size, "KB", Some(small));
    let fast = Target::new("≤ 100 ms", median <= 100.0);
    report.quantity(format!("console, until a field is there, median of {LOADS}"), median, "ms", Some(fast));
    Ok(())
}
