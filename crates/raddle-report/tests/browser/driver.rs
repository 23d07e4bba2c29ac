//! A headless Chromium of our own, driven through chromedriver.

use serde_json::json;
use std::io::{BufRead, BufReader};
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use thirtyfour::prelude::*;

const INSTALL: &str =
    "install chromium and chromium-driver (`cargo xtask test` does), which the pages are looked at with";

/// A chromedriver that ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut process = command.spawn().expect(INSTALL);
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        // `ChromeDriver was started successfully on port 41231.`
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, number) = line.split_once("successfully on port ")?;
            number.trim_end_matches('.').parse().ok()
        });
        Server { process, port: port.expect("chromedriver names its port") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Chromium is in its group, and would stay behind where a test fails.
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

/// What is noted before anything of the page runs: errors, refusals of the page's policy, words on the console.
const WATCH: &str = "window.problems = [];
addEventListener('error', event => problems.push('error: ' + event.message));
addEventListener('securitypolicyviolation', event => problems.push('policy: ' + event.violatedDirective + ' ' + event.blockedURI));
for (const level of ['error', 'warn']) console[level] = (...words) => problems.push(level + ': ' + words.join(' '));";

/// A window with one page in it.
pub struct Browser {
    /// Never dropped: where a test fails, that would wait for an answer for minutes.
    pub window: ManuallyDrop<WebDriver>,
    _server: Server,
    _profile: TempDir,
}

impl Browser {
    pub async fn start() -> Browser {
        let server = Server::start();
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut wishes = DesiredCapabilities::chrome();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // Whatever asks for something gets nothing.
            "--proxy-server=127.0.0.1:9",
            &folder,
        ];
        for option in options {
            wishes.add_arg(option).expect("an argument is a text");
        }
        let window =
            WebDriver::new(format!("http://127.0.0.1:{}", server.port), wishes).await.expect(INSTALL);
        let window = ManuallyDrop::new(window);
        let browser = Browser { window, _server: server, _profile: profile };
        browser.tool("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH })).await;
        browser.tool("Network.enable", json!({})).await;
        let offline =
            json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        browser.tool("Network.emulateNetworkConditions", offline).await;
        browser
    }

    async fn tool(&self, name: &str, parameters: serde_json::Value) {
        self.window.cdp().send_raw(name, parameters).await.expect(name);
    }

    /// A screen of this size, and what the system prefers.
    pub async fn screen(&self, width: u32, height: u32, theme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.tool("Emulation.setDeviceMetricsOverride", size).await;
        let theme = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.tool("Emulation.setEmulatedMedia", theme).await;
    }

    pub async fn open(&self, page: &Path) {
        self.window.goto(format!("file://{}", page.display())).await.expect("the page opens");
    }

    /// What a script returns.
    pub async fn ask(&self, script: &str) -> serde_json::Value {
        let answer = self.window.execute(script, Vec::new()).await;
        answer.unwrap_or_else(|error| panic!("{error}\n{script}")).json().clone()
    }

    /// A list of sentences about what is wrong.
    pub async fn complaints(&self, script: &str) -> Vec<String> {
        serde_json::from_value(self.ask(script).await).expect("a list of texts")
    }

    pub async fn end(self) {
        WebDriver::clone(&self.window).quit().await.expect("the browser ends");
    }
}
