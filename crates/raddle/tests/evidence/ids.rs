//! Ids of findings: what does not matter to an error does not change them, and what makes it another error does.

use crate::common::{compilers, folder, run};
use crate::{confirmed, found, hunt, raddle_in, replays_always};
use raddle_findings::Kind;

/// Kinds and ids of what is hunted down in a program of one file in a folder of its own.
fn ids(
    name: &str,
    source: &str,
    options: &[&str],
    compiler: &str,
) -> std::collections::BTreeSet<(Kind, String)> {
    let folder = folder(&[]);
    let inside = folder.path().join(name);
    std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    std::fs::write(inside, source).unwrap();
    let mut command = raddle_in(folder.path());
    command.args(["hunt", "--json"]).args(options).arg(name).env("RADDLE_CC", compiler);
    confirmed(&found(&run(&mut command))).into_iter().map(|f| (f.kind, f.id.clone())).collect()
}

/// A deadlock, and races on a variable, a field and the heap, one of them through a helper.
const MANY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct account { int id; int balance; };
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static struct account account;
static int total;
int *block; // not static: clang would make a variable of the block
static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *one(void *p) {
    account.balance = 1;
    block[1] = 1;
    total = 1;
    both(&a, &b);
    return p;
}
static void *two(void *p) {
    usleep(30000);
    account.balance = 2;
    block[1] = 2;
    total = 2;
    both(&b, &a);
    return p;
}
int main(void) {
    pthread_t x, y;
    block = malloc(16);
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    printf("%d %d %d\n", account.balance, block[1], total);
    return 0;
}
"#;

/// `MANY` with the text of one function moved behind another.
fn with_a_moved_function() -> String {
    let (start, end) = (MANY.find("static void *one").unwrap(), MANY.find("static void *two").unwrap());
    let main = MANY.find("int main").unwrap();
    format!("{}{}{}{}", &MANY[..start], &MANY[end..main], &MANY[start..end], &MANY[main..])
}

/// What does not matter to an error does not change its id.
#[test]
fn ids_survive_what_does_not_matter() {
    let compilers = compilers();
    let (first, last) = (compilers[0].as_str(), compilers[compilers.len() - 1].as_str());
    let expected = ids("many.c", MANY, &[], first);
    assert_eq!(expected.len(), 4, "{expected:?}");
    let commented = format!("// One more line.\n/* And\n   two more. */\n{MANY}");
    let annotated =
        MANY.replace("total = 1;", "total  =  1; /* the first */").replace("    both(", "\tboth(");
    let moved = with_a_moved_function();
    assert_ne!(moved, MANY);
    let renamed = "elsewhere/far/away/many.c";
    for (what, name, source, options, compiler) in [
        ("comments above", "many.c", commented.as_str(), &[][..], first),
        ("comments and blanks on the line", "many.c", &annotated, &[], first),
        ("a moved function", "many.c", &moved, &[], first),
        ("another folder", renamed, MANY, &[], first),
        ("-O2", "many.c", MANY, &["--cflags", "-O2"], first),
        ("another compiler", "many.c", MANY, &[], last),
        ("another compiler and -O2", "many.c", MANY, &["--cflags", "-O2"], last),
        ("all at once", renamed, &commented.replace("total = 2;", "total=2;"), &["--cflags", "-O2"], last),
        ("another recording option", "many.c", MANY, &["--keep-redundant", "--from-start"], first),
    ] {
        assert_eq!(ids(name, source, options, compiler), expected, "{what}");
    }
}

/// What makes it another error gives it another id.
#[test]
fn ids_differ_where_the_error_does() {
    let compiler = compilers()[0].clone();
    let before = ids("many.c", MANY, &[], &compiler);
    let race = [Kind::DataRace];
    let all = [Kind::DataRace, Kind::DataRace, Kind::DataRace, Kind::Deadlock];
    for (what, changes, kinds) in [
        (
            "another lock",
            &[
                ("both(&b, &a)", "both(&b, &c); both(&c, &a)"),
                ("both(&a, &b)", "both(&a, &c)"),
                (
                    "b = PTHREAD_MUTEX_INITIALIZER;",
                    "b = PTHREAD_MUTEX_INITIALIZER, c = PTHREAD_MUTEX_INITIALIZER;",
                ),
            ][..],
            &[Kind::Deadlock][..],
        ),
        ("another field", &[("account.balance", "account.id")], &race),
        ("another variable", &[("total", "sum")], &race),
        ("another place of the block", &[("block[1]", "block[2]")], &race),
        ("another caller", &[("*two", "*three"), ("0, two, 0", "0, three, 0")], &all),
    ] {
        let mut source = MANY.to_owned();
        for (from, to) in changes {
            assert!(source.contains(from), "{what}: {from}");
            source = source.replace(from, to);
        }
        assert_ne!(source, MANY, "{what}");
        let now = ids("many.c", &source, &[], &compiler);
        let mut gone: Vec<Kind> = before.difference(&now).map(|(kind, _)| *kind).collect();
        gone.sort();
        assert_eq!(gone, kinds, "{what}: {before:?} {now:?}");
        assert_eq!(now.len(), before.len(), "{what}");
    }
}

/// Different errors have different ids: two objects, two callers of one helper.
#[test]
fn ids_tell_errors_apart() {
    let source = r#"
#include <pthread.h>
#include <unistd.h>
static int a, b;
static void inc(int *p) { (*p)++; }
static void *one(void *p) { (void)p; inc(&a); b = 1; return 0; }
static void *two(void *p) { (void)p; usleep(30000); inc(&a); b = 2; return 0; }
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
"#;
    let folder = folder(&[("inc.c", source)]);
    let findings = hunt(folder.path(), &[], "inc.c");
    let names: std::collections::BTreeSet<_> = confirmed(&findings)
        .iter()
        .flat_map(|finding| &finding.objects)
        .filter_map(|object| object.name.clone())
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b"], "{findings:#?}");
    replays_always(folder.path(), &findings);
}
