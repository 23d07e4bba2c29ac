//! Pages in a real browser: nothing is fetched, nothing fails, the drawing is where the data say, stepping works by keyboard, and
//! what is written can be read: on a phone, in light and dark.

mod driver;
#[path = "../findings/mod.rs"]
mod findings;

use driver::Browser;
use findings::{BANK, frame, of, thread};
use raddle_findings::{Finding, Kind, Party};
use raddle_report::picture::Names;
use raddle_report::{Page, Shown, Sources};
use raddle_trace::schedule::Schedule;
use std::path::Path;
use thirtyfour::prelude::*;

const ERRONEOUS: &str = "\
raddle-schedule 2
program bank
step 1 1 fork 1.1  # bank.c:32 main
step 1 2 fork 1.2  # bank.c:33 main
step 1.1 1 start  # bank.c:10 deposit
step 1.1 2 lock alice  # bank.c:11 deposit
step 1.2 1 start  # bank.c:18 transfer
step 1.2 2 lock bob  # bank.c:19 transfer
block 1.1 3 lock bob  # bank.c:13 deposit
block 1.2 3 lock alice  # bank.c:20 transfer
";

const RECORDED: &str = "\
raddle-schedule 2
step 1 1 fork 1.1  # bank.c:32 main
step 1 2 fork 1.2  # bank.c:33 main
step 1.2 1 start  # bank.c:18 transfer
step 1.2 2 lock bob  # bank.c:19 transfer
step 1.2 3 lock alice  # bank.c:20 transfer
step 1.1 1 start  # bank.c:10 deposit
step 1.1 2 lock alice  # bank.c:11 deposit
step 1.1 3 lock bob  # bank.c:13 deposit
";

fn write(folder: &Path, findings: &[Finding]) -> std::path::PathBuf {
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/bank.c"), BANK).unwrap();
    let schedule = |text: &str| Some(Schedule::parse(text).unwrap());
    let shown = findings.iter().map(|finding| {
        let deadlock = finding.kind == Kind::Deadlock;
        let of = |text| schedule(text).filter(|_| deadlock);
        Shown { finding, schedule: of(ERRONEOUS), observed: of(RECORDED), names: Names::default() }
    });
    let page = Page {
        command: "hunt",
        program: &["./bank".to_owned()],
        findings: shown.collect(),
        exploration: None,
        not_shown: vec!["1 predicted (--all shows them)".to_owned()],
    };
    let path = folder.join("page.html");
    std::fs::write(&path, page.html(&mut Sources::new(vec![folder.to_owned()]))).unwrap();
    path
}

/// Nothing is wider than the screen, and nothing is cut off, but inside what scrolls by itself.
const CUT_OFF: &str = "
const wrong = [], root = document.documentElement;
if (root.scrollWidth > innerWidth) wrong.push('the page is ' + root.scrollWidth + ' wide on a screen of ' + innerWidth);
for (const one of document.querySelectorAll('body *')) {
  const style = getComputedStyle(one);
  if (one.closest('svg, .canvas, pre, .scroll') || !one.clientWidth || style.display === 'inline') continue;
  if (one.scrollWidth > one.clientWidth + 1) wrong.push(one.tagName + '.' + one.className + ' cuts off: ' + one.textContent.slice(0, 60));
}
return wrong;";

/// Contrast of every text with what is behind it, by WCAG 2.
const CONTRAST: &str = "
const wrong = [];
const rgb = color => color.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
function behind(one) {
  for (; one; one = one.parentElement) {
    const color = rgb(getComputedStyle(one).backgroundColor);
    if (color.length < 4 || color[3] > .99) return color;
  }
  return [255, 255, 255];
}
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const one = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !one.getClientRects().length || one.closest('option')) continue;
  const style = getComputedStyle(one), svg = one.closest('svg');
  const a = light(rgb(svg ? style.fill : style.color)), b = light(behind(one));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) wrong.push(ratio.toFixed(2) + ' ' + one.tagName + '.' + (one.className.baseVal ?? one.className) + ': ' + walk.currentNode.data.slice(0, 40));
}
return wrong;";

/// Each step's mark is beside its row, in the lane that the head names, and no two rows share a place.
const PLACED: &str = "
const wrong = [];
for (const area of document.querySelectorAll('.area')) {
  const rows = [...area.querySelectorAll('.act')], dots = [...area.querySelectorAll('.dot')];
  if (rows.length !== dots.length) wrong.push(rows.length + ' rows and ' + dots.length + ' marks');
  const names = [...area.parentElement.querySelectorAll('.paths b')];
  rows.forEach((row, i) => {
    const place = row.getBoundingClientRect(), dot = dots[i].getBoundingClientRect(), middle = dot.top + dot.height / 2;
    if (middle < place.top || middle > place.bottom) wrong.push('the mark of row ' + i + ' is not beside it');
    const lane = names.find(name => name.textContent === row.querySelector('.thread').textContent).getBoundingClientRect();
    if (Math.abs(lane.left + lane.width / 2 - dot.left - dot.width / 2) > 2) wrong.push('row ' + i + ' is not in its lane');
    if (i && rows[i - 1].getBoundingClientRect().bottom > place.top + 1) wrong.push('row ' + i + ' overlaps the one before');
    const words = row.querySelector('.what').getBoundingClientRect();
    if (words.left < dot.right - 1) wrong.push('the words of row ' + i + ' are on the drawing');
  });
}
return wrong;";

async fn nothing_wrong(browser: &Browser, what: &str) {
    for (check, script) in [("cut off", CUT_OFF), ("contrast", CONTRAST), ("placed", PLACED)] {
        let wrong = browser.complaints(script).await;
        assert!(wrong.is_empty(), "{what}, {check}:\n{}", wrong.join("\n"));
    }
    let wrong = browser.complaints("return problems;").await;
    assert!(wrong.is_empty(), "{what}: {wrong:?}");
    let asked = browser.ask("return performance.getEntriesByType('resource').map(one => one.name);").await;
    assert_eq!(asked, serde_json::json!([]), "{what}: the page asks for nothing");
}

fn in_browser(test: impl AsyncFnOnce(&Browser, &Path)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let browser = Browser::start().await;
        test(&browser, folder.path()).await;
        browser.end().await;
    });
}

#[test]
fn every_kind_is_legible_on_every_screen() {
    in_browser(async |browser, folder| {
        let page = write(folder, &Kind::ALL.map(of));
        for (width, theme) in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")] {
            browser.screen(width, 900, theme).await;
            browser.open(&page).await;
            browser.ask("document.querySelectorAll('details').forEach(one => one.open = true);").await;
            // They are drawn when they have opened, one after the other.
            let crash = Kind::ALL.iter().position(|kind| *kind == Kind::Crash).unwrap();
            let drawn = format!("#f{crash} svg.graph .dot");
            browser.window.query(By::Css(drawn)).first().await.unwrap();
            nothing_wrong(browser, &format!("{width} {theme}")).await;
        }
    });
}

/// What the other tests rely on: a page that is spoilt is complained about.
#[test]
fn the_checks_see_what_is_wrong() {
    in_browser(async |browser, folder| {
        let page = write(folder, &[of(Kind::Deadlock)]);
        browser.screen(1280, 900, "light").await;
        let spoilt = [
            (CONTRAST, "document.documentElement.style.setProperty('--dim', '#b0b4bb');"),
            (CUT_OFF, "document.querySelector('.basis').style = 'width: 3000px; max-width: none';"),
            (PLACED, "document.querySelector('.graph').style.top = '60px';"),
            (PLACED, "document.querySelector('.graph').style.left = '0';"),
        ];
        for (check, spoil) in spoilt {
            browser.open(&page).await;
            assert_eq!(browser.complaints(check).await, [""; 0]);
            browser.ask(spoil).await;
            assert!(!browser.complaints(check).await.is_empty(), "{spoil}");
        }
    });
}

#[test]
fn a_run_is_stepped_through_by_keyboard() {
    in_browser(async |browser, folder| {
        let page = write(folder, &[of(Kind::Deadlock)]);
        browser.screen(1280, 900, "light").await;
        browser.open(&page).await;
        let state = async || -> String {
            let rows = browser.window.find(By::Css(".inspector .threads")).await.unwrap();
            rows.text().await.unwrap().replace('\n', " ")
        };
        assert_eq!(
            state().await,
            "1 main holds nothing 1.1 worker holds alice waits for bob 1.2 worker holds bob waits for alice"
        );
        let last = browser.window.find(By::Css(".run.bad .act.now")).await.unwrap();
        last.send_keys(Key::Left + Key::Left).await.unwrap();
        assert_eq!(state().await, "1 main holds nothing 1.1 worker holds alice 1.2 worker holds nothing");
        let now = browser.ask("return document.activeElement.getAttribute('aria-label');").await;
        assert_eq!(now, "step 5, thread 1.2 worker starts at bank.c:18");
        let home = browser.window.find(By::Css(".run.bad .act.now")).await.unwrap();
        home.send_keys(Key::Home + "").await.unwrap();
        let now = browser.ask("return document.activeElement.getAttribute('aria-label');").await;
        assert_eq!(now, "step 1, thread 1 main creates thread 1.1 at bank.c:32");
        // Enter goes to the source.
        let end = browser.window.find(By::Css(".run.bad .act.now")).await.unwrap();
        end.send_keys(Key::End + Key::Enter).await.unwrap();
        let target = browser.window.find(By::Css(".line.target")).await.unwrap();
        assert!(target.text().await.unwrap().contains("pthread_mutex_lock(&bob);"));
        // What comes at another time than in the recorded run is marked, in words too.
        let tags = browser.window.find_all(By::Css(".run.bad .tag")).await.unwrap();
        assert!(!tags.is_empty());
        nothing_wrong(browser, "after stepping").await;
    });
}

/// Names from the program are only text, however many there are: none of it runs, and none of it breaks the page.
#[test]
fn hostile_names_are_text() {
    in_browser(async |browser, folder| {
        let name = "</script><script>document.title='owned'</script>\u{202e}<img src=x onerror=alert(1)>";
        let mut crash = of(Kind::Crash);
        crash.parties[0].stack = vec![frame("deep", 7, 1); 10_000];
        let party = crash.parties[0].clone();
        for number in 0..1_000 {
            crash.parties.push(Party { thread: thread(&format!("1.{number}"), name), ..party.clone() });
        }
        let mut deadlock = of(Kind::Deadlock);
        for party in &mut deadlock.parties {
            party.thread.name = Some(name.to_owned());
            party.stack[0].function = Some(name.to_owned());
        }
        let page = write(folder, &[crash, deadlock]);
        for width in [1280, 360] {
            browser.screen(width, 900, "light").await;
            browser.open(&page).await;
            browser.window.query(By::Css("#f1 svg.graph .dot")).first().await.unwrap();
            assert_ne!(browser.window.title().await.unwrap(), "owned");
            assert_eq!(browser.ask("return document.querySelectorAll('img').length;").await, 0);
            assert_eq!(browser.ask("return document.querySelectorAll('script').length;").await, 2);
            nothing_wrong(browser, &format!("hostile {width}")).await;
        }
    });
}

#[test]
fn of_many_findings_the_chosen_ones_are_drawn() {
    in_browser(async |browser, folder| {
        let many: Vec<Finding> = (0..1_000).map(|at| of(Kind::ALL[at % Kind::ALL.len()])).collect();
        let page = write(folder, &many);
        browser.screen(1280, 900, "light").await;
        browser.open(&page).await;
        assert_eq!(browser.ask("return document.querySelectorAll('svg.graph').length;").await, 0);
        let search = browser.window.find(By::Id("kind")).await.unwrap();
        search.send_keys("deadlock").await.unwrap();
        let shown = "return document.querySelectorAll('.finding:not([hidden])').length;";
        let deadlocks = many.iter().filter(|finding| finding.kind == Kind::Deadlock).count();
        assert_eq!(browser.ask(shown).await, deadlocks);
        browser.window.find(By::Css(".finding:not([hidden]) summary")).await.unwrap().click().await.unwrap();
        // The drawing is made when the section has opened.
        let drawn = browser.window.query(By::Css("svg.graph .dot")).first().await.unwrap();
        assert!(drawn.is_displayed().await.unwrap());
        nothing_wrong(browser, "many").await;
    });
}
