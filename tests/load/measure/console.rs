//! The console's first page, in a browser.

use super::Ground;
use crate::report::{Report, Target};
use crate::{Result, note};
use serde_json::json;
use vault_tests::browser::Browser;

/// How often the page is opened.
const LOADS: usize = 15;
/// Notes when there is something to type into.
const READY: &str = "new MutationObserver((_, observer) => {
    if (document.querySelector('input')) { window.ready = performance.now(); observer.disconnect(); }
}).observe(document, {childList: true, subtree: true});";
const BYTES: &str = "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0) / 1000;";

/// Measures how large the first page is, with all that it loads, and how long it takes until somebody can type.
pub(crate) fn console(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
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
    let small = Target::new("≤ 100 KB", size <= 100.0);
    report.quantity("console, first page with all that it loads", size, "KB", Some(small));
    let fast = Target::new("≤ 100 ms", median <= 100.0);
    report.quantity(format!("console, until a field is there, median of {LOADS}"), median, "ms", Some(fast));
    Ok(())
}
