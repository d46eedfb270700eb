//! The console: a page and its files.

use super::app::App;
use std::collections::BTreeSet;

/// Maximum size of the first page, in bytes.
const FIRST_PAGE: usize = 135 * 1000;

/// Returns the URLs in double or single quotes after `mark` in `text`.
fn quoted<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark).skip(1).filter_map(|rest| rest.split(['"', '\'']).next())
}

#[test]
fn page_names_the_base_path_and_nothing_of_another_origin() {
    let app = App::with(|setup| setup.settings.base_path = "/vault/v7".parse().unwrap());
    let page = app.send("GET /", &[], "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"));
    assert!(page.text().contains(r#"<meta name="orgvault-base-path" content="/vault/v7">"#));
    assert!(!page.text().contains("{{"), "{}", page.text());
    for mark in ["src=\"", "href=\""] {
        for address in quoted(&page.text(), mark) {
            assert!(address.starts_with("/console/"), "{address}");
            assert_eq!(app.send(&format!("GET {address}"), &[], "").status, 200, "{address}");
        }
    }
    for inline in ["<style", " style=", " onclick=", " onload=", "<script>"] {
        assert!(!page.text().contains(inline), "{inline}");
    }
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
}

#[test]
fn files_are_served_and_nothing_else() {
    let app = App::start();
    for name in ["app.js", "parts/api.js", "style.css", "icon.svg"] {
        let line = format!("GET /console/{name}");
        let file = app.send(&line, &[], "").expect(200);
        let head = app.send(&line.replace("GET", "HEAD"), &[], "");
        assert_eq!((head.status, head.indistinct().1), (200, file.indistinct().1), "{name}");
    }
    for line in ["GET /console/index.html", "GET /console/App.js", "GET /console/app.js/", "GET /console/%61pp.js"] {
        app.send(line, &[], "").problem("not-found");
    }
}

#[test]
fn first_page_is_small() {
    let app = App::start();
    let get = |path: &str| {
        let answer = app.send(&format!("GET {path}"), &[], "");
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    };
    let page = get("/");
    let mut size = page.len();
    let mut wanted: Vec<String> =
        ["src=\"", "href=\""].iter().flat_map(|mark| quoted(&page, mark)).map(str::to_owned).collect();
    let mut loaded = BTreeSet::new();
    while let Some(path) = wanted.pop() {
        if loaded.insert(path.clone()) {
            let file = get(&path);
            size += file.len();
            // Only static imports: a module loads the files of other pages later.
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for name in quoted(&file, " from '.") {
                let shared = name.strip_prefix("./");
                wanted.push(shared.map_or(format!("{folder}{name}"), |name| format!("/console/{name}")));
            }
        }
    }
    assert!(
        loaded.contains("/console/pages/sign-in.js") && !loaded.contains("/console/pages/credentials.js"),
        "{loaded:?}"
    );
    assert!(size < FIRST_PAGE, "{size} bytes: {loaded:?}");
}
