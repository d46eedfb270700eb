//! Headless Chromium, controlled with WebDriver (JSON over HTTP). Tests do not wait for fixed times, but poll until the
//! expected state is reached.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ureq::Agent;

/// Maximum time to wait for an expected state.
const LIMIT: Duration = Duration::from_secs(60);
/// Name of an element reference in WebDriver's JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Script that records violations of the content security policy from the start of each page.
const WATCH: &str = "globalThis.refused = []; addEventListener('securitypolicyviolation', \
    ({ violatedDirective, blockedURI, sample }) => refused.push(`${violatedDirective} ${blockedURI} ${sample}`));";
/// Script of a function that scrolls an element to the middle if something covers it, such as a footer that sticks to the
/// bottom, where WebDriver scrolls elements to.
macro_rules! uncovered {
    () => {
        "const uncovered = (one) => { const { x, y, width, height } = one.getBoundingClientRect(); \
        const top = document.elementFromPoint(x + width / 2, y + height / 2); \
        if (!one.contains(top) && !top?.contains(one)) one.scrollIntoView({ block: 'center' }); return one; }; "
    };
}
/// Script that returns the control with this label text, in the open dialog if there is one.
const BY_LABEL: &str = concat!(
    uncovered!(),
    "const scope = document.querySelector('dialog[open]') ?? document; \
    const label = [...scope.querySelectorAll('label')].find((label) => label.firstChild?.textContent === arguments[0]); \
    const control = label && document.getElementById(label.htmlFor); \
    return control?.checkVisibility() ? uncovered(control) : null;"
);
/// Script that returns the button or link with this name, in the open dialog if there is one.
const BY_NAME: &str = concat!(
    uncovered!(),
    "const scope = document.querySelector('dialog[open]') ?? document; \
    const found = [...scope.querySelectorAll('button, a, summary')].find((button) => button.checkVisibility() \
    && (button.getAttribute('aria-label') ?? button.textContent).trim() === arguments[0] && !button.disabled); \
    return found ? uncovered(found) : null;"
);
/// Script that returns whether this text is visible. Ignores announcements for screen readers, which remain until the
/// next one.
const SEEN: &str = "const parts = [...document.body.children].flatMap((part) => part.localName === 'ov-app' ? [...part.children] : [part]); \
    return parts.some((part) => part.id !== 'announcements' && part.innerText.includes(arguments[0]));";

/// A key that types no character.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// Moves to the next control.
    Tab,
    /// Activates the control.
    Enter,
    /// Presses a button or toggles a checkbox.
    Space,
    /// Closes a dialog.
    Escape,
}

impl Key {
    const fn code(self) -> &'static str {
        match self {
            Self::Tab => "\u{e004}",
            Self::Enter => "\u{e007}",
            Self::Space => " ",
            Self::Escape => "\u{e00c}",
        }
    }
}

/// A browser with a new profile. It is closed on drop.
pub struct Browser {
    agent: Agent,
    session: String,
    driver: Child,
    /// Kept open as long as the driver may write to it.
    _output: BufReader<ChildStdout>,
    _profile: TempDir,
}

impl Browser {
    /// Opens a browser with a window of this size.
    pub fn open(width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver, which tests/run installs (Debian: apt-get install chromium chromium-driver)");
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let port: u16 = loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "chromedriver ended");
            if let Some((_, port)) = line.trim_end().split_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        let config = Agent::config_builder().http_status_as_error(false).proxy(None).timeout_global(Some(2 * LIMIT));
        let agent = config.build().new_agent();
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={}", profile.path().display()),
            &format!("--window-size={width},{height}"),
        ];
        let mut browser = Self {
            agent,
            session: format!("http://127.0.0.1:{port}/session"),
            driver,
            _output: output,
            _profile: profile,
        };
        let capabilities = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}});
        let started = browser.command("POST", "", &capabilities).expect("a session");
        browser.session = format!("{}/{}", browser.session, started["sessionId"].as_str().unwrap());
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": WATCH}));
        browser
    }

    /// Sends a WebDriver command. Returns WebDriver's message on errors.
    fn command(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json");
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let answer = self.agent.run(request.body(body).unwrap()).map_err(|error| error.to_string())?;
        let text = answer.into_body().with_config().limit(64 << 20).read_to_string().unwrap();
        let value = serde_json::from_str::<Value>(&text).unwrap()["value"].take();
        if value["error"].is_string() { Err(value.to_string()) } else { Ok(value) }
    }

    /// Sends a command of the Chrome DevTools protocol.
    #[track_caller]
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.command("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": parameters})).unwrap()
    }

    /// Opens a URL.
    #[track_caller]
    pub fn go(&self, url: &str) -> &Self {
        self.command("POST", "/url", &json!({"url": url})).unwrap();
        self
    }

    /// Returns the handle of the tab that commands are sent to.
    pub fn tab(&self) -> String {
        self.command("GET", "/window", &json!({})).unwrap().as_str().unwrap().to_owned()
    }

    /// Opens another tab, sends further commands to it, and returns its handle.
    pub fn new_tab(&self) -> String {
        let created = self.command("POST", "/window/new", &json!({"type": "tab"})).unwrap();
        let handle = created["handle"].as_str().unwrap().to_owned();
        self.switch(&handle);
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": WATCH}));
        handle
    }

    /// Sends further commands to this tab.
    pub fn switch(&self, handle: &str) {
        self.command("POST", "/window", &json!({"handle": handle})).unwrap();
    }

    /// Emulates this colour scheme.
    pub fn scheme(&self, scheme: &str) {
        // Disable animations, because a check may otherwise see a colour in transition.
        let features = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")];
        let feature = json!({"features": features.map(|(name, value)| json!({"name": name, "value": value}))});
        self.devtools("Emulation.setEmulatedMedia", &feature);
    }

    /// Runs a script in the page and returns its result.
    #[track_caller]
    pub fn script(&self, script: &str, arguments: &[Value]) -> Value {
        self.command("POST", "/execute/sync", &json!({"script": script, "args": arguments})).unwrap()
    }

    /// Runs a script repeatedly until its result is neither `null` nor `false`, and returns it.
    #[track_caller]
    pub fn until(&self, what: &str, script: &str, arguments: &[Value]) -> Value {
        let began = Instant::now();
        loop {
            // The page may be navigating.
            match self.command("POST", "/execute/sync", &json!({"script": script, "args": arguments})) {
                Ok(Value::Null | Value::Bool(false)) | Err(_) => {}
                Ok(found) => return found,
            }
            assert!(began.elapsed() < LIMIT, "waited in vain for {what} in:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20)); // leaves processor time to the page
        }
    }

    /// Returns all visible text.
    pub fn text(&self) -> String {
        self.script("return document.body.innerText", &[]).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until this text is visible.
    #[track_caller]
    pub fn see(&self, text: &str) -> &Self {
        self.until(text, SEEN, &[json!(text)]);
        self
    }

    /// Returns the control with this label.
    #[track_caller]
    fn control(&self, label: &str) -> String {
        let control = self.until(&format!("field {label}"), BY_LABEL, &[json!(label)]);
        control[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Replaces the text of the field with this label.
    #[track_caller]
    pub fn fill(&self, label: &str, text: &str) -> &Self {
        // If the page redraws concurrently, the label belongs to another field.
        for last in [false, false, false, true] {
            let control = self.control(label);
            let cleared = self.command("POST", &format!("/element/{control}/clear"), &json!({}));
            let filled = cleared
                .and_then(|_| self.command("POST", &format!("/element/{control}/value"), &json!({"text": text})));
            match filled {
                Err(error) if !last && error.contains("stale element reference") => {}
                filled => {
                    filled.unwrap();
                    break;
                }
            }
        }
        self
    }

    /// Selects the option with this value in the field with this label, with the events of a user's selection.
    #[track_caller]
    pub fn choose(&self, label: &str, value: &str) -> &Self {
        let script = "const [control, value] = arguments; control.value = value; \
            for (const name of ['input', 'change']) control.dispatchEvent(new Event(name, { bubbles: true }));";
        let control = json!({ELEMENT: self.control(label)});
        self.script(script, &[control, json!(value)]);
        self
    }

    /// Toggles the checkbox with this label.
    #[track_caller]
    pub fn tick(&self, label: &str) -> &Self {
        let control = self.control(label);
        self.command("POST", &format!("/element/{control}/click"), &json!({})).unwrap();
        self
    }

    /// Pastes a text into the field with this label.
    #[track_caller]
    pub fn paste(&self, label: &str, text: &str) -> &Self {
        let script = "const [control, text] = arguments; control.focus(); \
            control.setRangeText(text, control.selectionStart, control.selectionEnd, 'end'); \
            control.dispatchEvent(new InputEvent('input', {bubbles: true, inputType: 'insertFromPaste'}));";
        let control = json!({ELEMENT: self.control(label)});
        self.script(script, &[control, json!(text)]);
        self
    }

    /// Selects a file in the input with this name.
    #[track_caller]
    pub fn choose_file(&self, name: &str, path: &std::path::Path) {
        let script = "return document.querySelector(`input[type=file][aria-label=\"${arguments[0]}\"]`);";
        let input = self.until(name, script, &[json!(name)]);
        let input = input[ELEMENT].as_str().unwrap();
        self.command("POST", &format!("/element/{input}/value"), &json!({"text": path.to_str().unwrap()})).unwrap();
    }

    /// Returns the value of the field with this label.
    #[track_caller]
    pub fn value(&self, label: &str) -> String {
        let control = json!({ELEMENT: self.control(label)});
        self.script("return arguments[0].value", &[control]).as_str().unwrap().to_owned()
    }

    /// Returns the error message of the field with this label.
    #[track_caller]
    pub fn refusal(&self, label: &str) -> String {
        let script = "const control = arguments[0]; if (control.getAttribute('aria-invalid') !== 'true') return null; \
            return control.getAttribute('aria-describedby').split(' ') \
            .map((id) => document.getElementById(id)).find((text) => text.className === 'field-error').textContent;";
        let control = json!({ELEMENT: self.control(label)});
        self.until(&format!("a refusal of {label}"), script, &[control]).as_str().unwrap().to_owned()
    }

    /// Presses the button, or follows the link, with this name.
    #[track_caller]
    pub fn press(&self, name: &str) -> &Self {
        let began = Instant::now();
        loop {
            let button = self.until(&format!("button {name}"), BY_NAME, &[json!(name)]);
            let button = button[ELEMENT].as_str().unwrap();
            // The element may be replaced or move between the two commands.
            match self.command("POST", &format!("/element/{button}/click"), &json!({})) {
                Ok(_) => return self,
                Err(error) => assert!(began.elapsed() < LIMIT, "{name}: {error}"),
            }
        }
    }

    /// Types into the focused element.
    #[track_caller]
    pub fn keys(&self, text: &str) -> &Self {
        let presses = text.chars().map(|key| key.to_string());
        let actions: Vec<_> = presses
            .flat_map(|key| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})])
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.command("POST", "/actions", &actions).unwrap();
        self
    }

    /// Presses a key.
    #[track_caller]
    pub fn key(&self, key: Key) -> &Self {
        self.keys(key.code())
    }

    /// Presses the Tab key until the control with this name has the focus, which must be visible.
    #[track_caller]
    pub fn tab_to(&self, name: &str) -> &Self {
        let script = "const focused = document.activeElement; const outline = getComputedStyle(focused); \
            const name = focused.getAttribute('aria-label') ?? focused.labels?.[0]?.firstChild.textContent \
            ?? focused.textContent; \
            return [name.trim(), outline.outlineStyle !== 'none' && parseFloat(outline.outlineWidth) >= 2];";
        let mut passed = Vec::new();
        for _ in 0..60 {
            self.key(Key::Tab);
            let focused = self.script(script, &[]);
            if focused[0] == name {
                assert_eq!(focused[1], true, "the focus on {name} cannot be seen");
                return self;
            }
            passed.push(focused[0].clone());
        }
        panic!("the tab key does not lead to {name}, only to {passed:?}");
    }

    /// Returns the violations that axe-core finds in the page. `axe` is its source.
    pub fn axe(&self, axe: &str) -> Vec<String> {
        self.script(&format!("{axe}; globalThis.axe = axe;"), &[]);
        let script = "const done = arguments[0]; globalThis.axe.run(document).then(({ violations }) => \
            done(violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`)), \
            (error) => done([String(error)]));";
        let found = self.command("POST", "/execute/async", &json!({"script": script, "args": []})).unwrap();
        found.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Asserts that the page did not violate the content security policy since it was opened.
    #[track_caller]
    pub fn check_nothing_refused(&self) {
        assert_eq!(self.script("return globalThis.refused", &[]), json!([]));
    }

    /// Returns a screenshot of the window (PNG) in Base64.
    pub fn picture(&self) -> String {
        self.command("GET", "/screenshot", &Value::Null).unwrap().as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes the browser, which the driver would leave running.
        let _ = self.command("DELETE", "", &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Waits for a condition that is not visible in the page.
#[track_caller]
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20)); // leaves processor time to other processes
    }
}

/// Returns the path of a file in a package that `tests/run` installs from npm.
#[track_caller]
pub fn npm_file(path: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/node_modules").join(path);
    assert!(
        file.exists(),
        "{} is missing. tests/run installs it; so does: npm install --prefix target/tools --no-save azurite@3 \
         axe-core@4 typescript@5 @biomejs/biome@2.6.8",
        file.display()
    );
    file
}
