//! The sandbox is usable: what developers' programs need is there. A tool that is not installed is passed over.

use crate::support::{Campaign, each_way};

/// Runs a script in every way, if a program that it needs is there.
fn works(program: &str, script: &str, expected: &str) {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run(&format!("command -v {program} || true")).is_empty() {
            eprintln!("skipped: there is no {program}");
            return;
        }
        assert_eq!(campaign.run(&format!("set -e\n{script}")), expected, "{program}");
    });
}

#[test]
fn compilers_and_make() {
    works(
        "gcc",
        "printf '#include <stdio.h>\\n#include <pthread.h>\\nvoid *f(void *x) { return x; }\\nint main(void) { pthread_t t;
         for (int i = 0; i < 100; i++) { if (pthread_create(&t, 0, f, 0)) return 1; pthread_join(t, 0); } puts(\"built\"); }\\n' >a.c
         gcc -pthread -o a a.c; ./a",
        "built",
    );
    works(
        "make",
        "printf 'all: a b c\\na b c:\\n\\t@echo made >$@\\n' >Makefile; make -s -j4; cat a b c",
        "made\nmade\nmade",
    );
}

#[test]
fn scripting_languages() {
    works(
        "node",
        "node -e 'const {Worker} = require(\"worker_threads\"); require(\"child_process\").execFileSync(\"true\");
         const w = new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(7)\", {eval: true});
         w.on(\"message\", m => { console.log(m); w.terminate(); })'",
        "7",
    );
    works(
        "/usr/bin/python3",
        "/usr/bin/python3 -c 'import multiprocessing, ssl, sqlite3
with multiprocessing.Pool(3) as pool: print(sum(pool.map(abs, [-1, 2, -3])))'",
        "6",
    );
    works("perl", "perl -e 'my $p = open(my $f, \"-|\", \"echo piped\"); print <$f>'", "piped");
}

#[test]
fn many_processes() {
    works("sleep", "for n in $(seq 200); do sleep 0.3 & done; wait; echo all", "all");
}

#[test]
fn a_server_inside_is_reached_from_inside() {
    works(
        "perl",
        "perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(LocalAddr => q(0.0.0.0:8080), Listen => 5) or die;
         if (fork) { my $c = $l->accept; print $c qq(hello\\n); wait } else { my $s = IO::Socket::INET->new(q(localhost:8080)) or die; print scalar <$s> }'",
        "hello",
    );
}
