//! What the rules say of what agents want, on a table of plain and of nasty requests.

use ostler_domain::{
    Policy,
    approval::{Place, Rule, Verdict, always, judge},
    event::Action,
};
use proptest::prelude::*;

const SHOP: Place<'_> = Place { root: "/srv/shop", is_confined: true };
const OPEN: Place<'_> = Place { root: "/srv/shop", is_confined: false };

fn policy(rules: &[&str]) -> Policy {
    let settings: Vec<String> = rules.iter().map(|rule| format!("approve.rule+={rule}")).collect();
    Policy::default().changed_by(&settings).unwrap()
}

fn run(command: &str) -> Action {
    Action::Run { command: command.to_owned() }
}

fn of_command(policy: &Policy, command: &str) -> Verdict {
    judge(policy, &SHOP, "Bash", &run(command)).verdict
}

#[test]
fn a_rule_covers_what_it_says() {
    let policy = policy(&[
        "deny run rm *",
        "ask run cargo publish *",
        "allow run cargo *",
        "allow run npm run test:*",
        "allow run ls",
        "allow run python scripts/check.py *",
        "allow run python -m pytest *",
        "allow run ./gradlew build",
        "allow run find *",
        "allow run grep *",
        "allow run bash *",
        "allow run npx eslint *",
    ]);
    for command in [
        "cargo test",
        "cargo test -p 'a b' -- --nocapture",
        "cargo build && cargo test",
        "cargo test 2>&1 | grep -c failed",
        "cargo test > target/log.txt 2>/dev/null",
        "cargo test $FILTER",
        "npm run test:unit",
        "ls",
        "python scripts/check.py --all",
        "python -m pytest -q",
        "./gradlew build",
        "find . -name '*.rs'",
        "bash scripts/x.sh",
        "npx eslint src --fix",
        "git add src/*.rs",
        "grep x *.rs",
        "cd src && cargo test",
        "git status; git diff --stat",
    ] {
        assert_eq!(of_command(&policy, command), Verdict::Allow, "{command}");
    }
    for command in ["rm -rf x", "cargo test && rm x", "/bin/rm x", "rm $X", "ls; rm x", "rm *"] {
        assert_eq!(of_command(&policy, command), Verdict::Deny, "{command}");
    }
    for command in [
        "cargo publish",
        "cargo $X",
        "ls -la",
        "npm run test:unit extra",
        "npm run tests",
        "python scripts/check.pyc",
        "git push",
        "git push origin main",
        "git --no-pager push",
        "/usr/bin/git push",
        "cargo test && git push",
        "make",
    ] {
        let verdict = of_command(&policy, command);
        // `cargo $X` may be `cargo publish`, so it asks.
        assert_eq!(verdict, Verdict::Ask, "{command}");
    }
}

/// Everything is allowed that can be allowed by its first word, and none of these is.
#[test]
fn no_first_word_covers_what_runs_something_else() {
    let names = [
        "cargo", "git", "echo", "cat", "sh", "bash", "python", "python3", "node", "perl", "awk", "sed",
        "env", "xargs", "find", "sudo", "timeout", "ssh", "tar", "eval", "source", "ls", "test", "true",
        "cp", "tee", "deno", "rg", "npx", "uvx", "tmux",
    ];
    let rules: Vec<String> = names.iter().map(|name| format!("allow run {name} *")).collect();
    let policy = policy(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(of_command(&policy, "echo hello"), Verdict::Allow);
    for command in [
        // Several parts.
        "echo a; reboot",
        "echo a && reboot",
        "echo a || reboot",
        "echo a | reboot",
        "echo a |& reboot",
        "echo a & reboot",
        "echo a\nreboot",
        "echo a;reboot",
        "true&&reboot",
        "echo a \\\n; reboot",
        // Substitutions and subshells.
        "echo $(reboot)",
        "echo `reboot`",
        "echo \"$(reboot)\"",
        "echo \"`reboot`\"",
        "echo ${X:-$(reboot)}",
        "echo ${X@P}",
        "echo $((X[$(reboot)]))",
        "cat <(reboot)",
        "tee >(reboot)",
        "(reboot)",
        "echo a; (reboot)",
        "{ reboot; }",
        "ls() { reboot; }; ls",
        // The shell's own words.
        "if true; then reboot; fi",
        "for x in a; do reboot; done",
        "while true; do reboot; done",
        "! reboot",
        "case x in x) reboot;; esac",
        "time reboot",
        // Variables, and what they lead to.
        "LD_PRELOAD=/tmp/x.so ls",
        "PATH=/tmp:$PATH ls",
        "GIT_SSH_COMMAND=reboot git fetch",
        "X=1; ls",
        "$X ls",
        "${X} ls",
        "l* -la",
        "~/bin/ls",
        // Files outside.
        "echo x > /etc/cron.d/x",
        "echo x >> ~/.bashrc",
        "echo x > $HOME/.bashrc",
        "echo x > ../outside",
        "echo x > .git/hooks/pre-commit",
        "echo x > .env",
        "cat < /etc/shadow",
        "echo x >& /etc/x",
        "echo x &> /etc/x",
        "echo x >| /etc/x",
        "echo x <> /etc/x",
        "echo x > src/../../x",
        "echo > /dev/tcp/host.example/80",
        // Interpreters that are given code.
        "sh -c reboot",
        "bash -lc 'reboot'",
        "bash -x -c reboot",
        "bash",
        "echo reboot | bash",
        "echo reboot | sh -s",
        "bash /dev/stdin",
        "bash -",
        "bash <<X\nreboot\nX",
        "bash <<< reboot",
        "python -c 'import os'",
        "python3 -Sc 'x'",
        "python -m http.server",
        "python",
        "python -",
        "/usr/bin/python3.12 -c x",
        "node -e x",
        "node --eval x",
        "node -pe x",
        "node --require ./x.js",
        "deno eval x",
        "perl -e x",
        "perl -ne 'system(1)'",
        "awk 'BEGIN{system(\"reboot\")}'",
        "sed 1e\\ reboot",
        "sed -n '1e reboot' x",
        // Programs that run what they are told.
        "env reboot",
        "env -S 'reboot now'",
        "xargs reboot",
        "echo x | xargs rm",
        "sudo reboot",
        "timeout 5 reboot",
        "ssh host reboot",
        "eval reboot",
        "source x",
        "find . -exec rm {} +",
        "find . -execdir rm {} +",
        "find . -delete",
        "find . -fprintf /x y",
        "rg --pre reboot x",
        "tar -xf a --to-command=reboot",
        "tar -I reboot -xf a",
        "tar -xIreboot -f a",
        "tar xIf reboot a",
        "tar xf a --to-comm=reboot",
        "tar xf a --info-script=reboot",
        "rg x *",
        "rg x $X",
        "rg x [a]*",
        "find . {-delete,x}",
        "git add *",
        "git log $X",
        "npx evil",
        "npx -c reboot",
        "uvx evil",
        "tmux new reboot",
        "tar --checkpoint-action=exec=reboot -cf a b",
        "git -c alias.x=!reboot x",
        "git -c core.pager=reboot log",
        "git --exec-path=/tmp status",
        "git -C /etc status",
        "git fetch --upload-pack=reboot",
        "git clone ext::reboot",
        // What people do not see.
        "echo a\rreboot",
        "echo a\u{2028}reboot",
        "ec\\ho\u{200b}a",
        "echo \u{1b}[2Kx",
        "echo 'a",
        "echo a # b",
        "echo $'a\\nreboot'",
    ] {
        let verdict = of_command(&policy, command);
        assert_ne!(verdict, Verdict::Allow, "{command:?}");
    }
    // Written out to the last word, a person has seen it.
    let exact = self::policy(&["allow run sh -c 'make all'"]);
    assert_eq!(of_command(&exact, "sh -c 'make all'"), Verdict::Allow);
    assert_eq!(of_command(&exact, "sh -c 'make all; reboot'"), Verdict::Ask);
}

#[test]
fn what_a_campaign_has_goes_without_a_question_in_a_sandbox() {
    let policy = Policy {
        commands: vec!["cargo".to_owned(), "python".to_owned()],
        write: vec!["/srv/cache".to_owned()],
        read: vec!["@rust".to_owned(), "/opt/sdk".to_owned()],
        net_allow: vec!["*.crates.example".to_owned(), "@node".to_owned()],
        ..Policy::default()
    };
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let write = |names: &[&str]| Action::Write { paths: paths(names) };
    let read = |names: &[&str]| Action::Read { paths: paths(names) };
    let fetch = |url: &str| Action::Fetch { url: url.to_owned() };
    for action in [
        run("cargo build"),
        run("just test"),
        run("git commit -m 'a b'"),
        run("git log --oneline -n 3"),
        run("cd /srv/shop/api && cargo test"),
        write(&["src/a.rs", "/srv/shop/b.rs"]),
        write(&["/srv/cache/x"]),
        read(&["README.md", "/opt/sdk/include/x.h", "/srv/cache/x"]),
        fetch("https://static.crates.example/x"),
        fetch("HTTPS://Static.Crates.Example:443/x"),
    ] {
        let judged = judge(&policy, &SHOP, "T", &action);
        assert_eq!(judged.verdict, Verdict::Allow, "{action:?}: {}", judged.why);
        assert!(judged.rules.iter().all(|rule| rule.number.is_none()), "{judged:?}");
        assert_eq!(
            judge(&policy, &OPEN, "T", &action).verdict,
            Verdict::Ask,
            "without a sandbox: {action:?}"
        );
    }
    for action in [
        run("python -c x"),
        run("just --shell sh -c x"),
        run("git config alias.x '!sh'"),
        run("git rebase -x reboot main"),
        run("git rebase --exec=reboot main"),
        run("git bisect run x"),
        run("git fetch"),
        run("git x"),
        run("git diff --output=/tmp/x"),
        run("git grep -Oreboot x"),
        run("git grep -iOreboot x"),
        run("git log --outpu=/tmp/x"),
        run("git rebase --exe reboot main"),
        run("git add *"),
        run("git $X"),
        run("cd .. && cargo test"),
        run("cd"),
        run("cd $X"),
        run("/tmp/cargo build"),
        run("./git status"),
        write(&["/etc/hosts"]),
        write(&["src/a.rs", "/etc/hosts"]),
        write(&["../x"]),
        write(&["~/x"]),
        write(&[".env"]),
        write(&["api/.env.local"]),
        write(&[".git/hooks/pre-commit"]),
        write(&["sub/.git/config"]),
        write(&["/srv/shopping/x"]),
        write(&["/opt/sdk/x"]),
        write(&[]),
        read(&["/etc/shadow"]),
        read(&["server.pem"]),
        read(&[]),
        fetch("https://crates.example/x"),
        fetch("https://evil.example/?x=static.crates.example"),
        fetch("https://static.crates.example@evil.example/"),
        fetch("https://evil.example\\static.crates.example/"),
        fetch("https://evilcrates.example/"),
        fetch("file:///etc/passwd"),
        fetch("static.crates.example"),
        Action::Other,
        // Who does not say what it would do.
        run(""),
        fetch(""),
    ] {
        let judged = judge(&policy, &SHOP, "T", &action);
        assert_eq!(judged.verdict, Verdict::Ask, "{action:?}: {}", judged.why);
        assert!(!judged.why.is_empty());
    }
}

#[test]
fn the_first_rule_decides_and_is_named() {
    let policy = policy(&["allow run git push origin dev", "deny run git push *", "allow write /etc/**"]);
    let judged = |command: &str| {
        let judged = judge(&policy, &SHOP, "Bash", &run(command));
        (judged.verdict, judged.why)
    };
    let rule = |text: &str| text.to_owned();
    assert_eq!(
        judged("git push origin dev"),
        (Verdict::Allow, rule("rule 1: allow run git push origin dev"))
    );
    assert_eq!(judged("git push"), (Verdict::Deny, rule("rule 2: deny run git push *")));
    assert_eq!(
        judged("git status > /etc/x"),
        (Verdict::Allow, rule("built in: allow run git status *; rule 3: allow write /etc/**"))
    );
    assert_eq!(judged("make all"), (Verdict::Ask, rule("no rule allows make all")));
    assert_eq!(judged("make $(x)"), (Verdict::Ask, rule("a command runs inside another")));
    assert_eq!(judged("git status > /usr/x"), (Verdict::Ask, rule("outside the campaign: write /usr/x")));
}

#[test]
fn a_tool_is_allowed_by_name_only_where_nothing_more_is_known_of_it() {
    let policy = policy(&["deny tool WebSearch", "ask tool Write", "allow tool mcp__x", "allow tool Bash"]);
    let verdict = |tool: &str, action: &Action| judge(&policy, &SHOP, tool, action).verdict;
    assert_eq!(verdict("WebSearch", &Action::Other), Verdict::Deny);
    assert_eq!(verdict("mcp__x", &Action::Other), Verdict::Allow);
    assert_eq!(verdict("mcp__y", &Action::Other), Verdict::Ask);
    assert_eq!(verdict("Write", &Action::Write { paths: vec!["a".to_owned()] }), Verdict::Ask);
    assert_eq!(verdict("Bash", &run("reboot")), Verdict::Ask);
}

#[test]
fn a_rule_of_a_newer_version_asks() {
    let policy = Policy {
        approve_rule: vec!["forbid run x".to_owned(), "allow run make *".to_owned()],
        ..Policy::default()
    };
    assert_eq!(of_command(&policy, "make"), Verdict::Ask);
}

#[test]
fn what_is_no_rule_is_refused() {
    for wrong in [
        "",
        "allow",
        "allow run",
        "allow run  ",
        "permit run x",
        "allow go x",
        "allow run *",
        "allow run * x",
        "allow run m*",
        "allow run a && b",
        "allow run a; b",
        "allow run a > b",
        "allow run $X",
        "allow run 'a",
        "allow run X=1 a",
        "allow read ../x",
        "allow write ~/x",
        "allow fetch http://x",
        "allow fetch x:80",
        "allow tool a b",
        "allow run a\nb",
    ] {
        assert!(Rule::parse(wrong).is_err(), "{wrong}");
    }
    for right in [
        "deny run *",
        "ask run * --force",
        "allow run a '*' \\* \"b c\"",
        "deny tool X",
        "allow fetch *.x.example",
    ] {
        assert_eq!(Rule::parse(right).unwrap().to_string(), right);
    }
}

#[test]
fn always_makes_rules_no_wider_than_the_request() {
    let asked = policy(&["allow run ls", "ask run git push *"]);
    let made = |command: &str| {
        always(&asked, &SHOP, "Bash", &run(command))
            .map(|rules| rules.iter().map(|rule| rule.setting()).collect::<Vec<_>>())
    };
    assert_eq!(made("cargo add governor").unwrap(), ["approve.rule+=allow run cargo add governor"]);
    assert_eq!(made("ls && echo 'a b' '*'").unwrap(), ["approve.rule+=allow run echo 'a b' '*'"]);
    assert_eq!(made("git push origin dev").unwrap(), ["approve.rule+=2 allow run git push origin dev"]);
    assert_eq!(
        made("make && git push x > /etc/x").unwrap(),
        [
            "approve.rule+=allow run make",
            "approve.rule+=allow write /etc/x",
            "approve.rule+=2 allow run git push x"
        ]
    );
    assert_eq!(made("ls").unwrap(), Vec::<String>::new());
    for command in ["make $(x)", "make $X", "make *.rs", "echo a 'b"] {
        assert!(made(command).is_err(), "{command}");
    }
    let fetch = Action::Fetch { url: "https://docs.example/x".to_owned() };
    assert_eq!(always(&asked, &SHOP, "WebFetch", &fetch).unwrap()[0].text, "allow fetch docs.example");
    assert_eq!(always(&asked, &SHOP, "mcp__x", &Action::Other).unwrap()[0].text, "allow tool mcp__x");
}

/// A command line in the way people write them, and some that they do not.
fn any_line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-z]{1,4}",
        Just("'a b'".to_owned()),
        Just("\"c*d\"".to_owned()),
        Just("$X".to_owned()),
        Just("*".to_owned()),
        Just("-c".to_owned()),
        Just(">x".to_owned()),
        Just("sh".to_owned()),
        Just("git".to_owned()),
        Just("push".to_owned()),
    ];
    let joint = prop::sample::select(vec![" ", " ", " ", "; ", " && ", " | ", "\n", "&", " $(", "`"]);
    prop::collection::vec((word, joint), 1..8)
        .prop_map(|words| words.into_iter().map(|(word, joint)| format!("{word}{joint}")).collect())
}

proptest! {
    #[test]
    fn with_always_it_is_allowed_from_then_on(line in any_line()) {
        let policy = policy(&["ask run git push *", "deny run sh *"]);
        if let Ok(rules) = always(&policy, &SHOP, "Bash", &run(&line)) {
            let settings: Vec<String> = rules.iter().map(|rule| rule.setting()).collect();
            let policy = policy.changed_by(&settings).unwrap();
            prop_assert_eq!(of_command(&policy, &line), Verdict::Allow, "{:?} {:?}", line, policy.approve_rule);
        }
    }

    #[test]
    fn a_further_part_is_never_allowed_along(line in any_line(), joint in prop::sample::select(vec![";", "&&", "||", "|", "\n", "&"])) {
        let policy = Policy { commands: vec!["a".to_owned()], ..policy(&["allow run sh *", "allow run git *"]) };
        let longer = format!("{line} {joint} evil");
        prop_assert_ne!(of_command(&policy, &longer), Verdict::Allow, "{:?}", longer);
    }

    #[test]
    fn a_denied_part_denies_or_asks(line in any_line()) {
        let policy = policy(&["deny run evil *", "allow run sh *"]);
        prop_assert_ne!(of_command(&policy, &format!("{line}\nevil x")), Verdict::Allow);
        prop_assert_ne!(of_command(&policy, &format!("evil {line}")), Verdict::Allow);
    }

    #[test]
    fn no_rule_panics(text in ".{0,40}", line in ".{0,60}") {
        let _ = Rule::parse(&text);
        let _ = Rule::parse(&format!("allow run {text}"));
        let policy = Policy { approve_rule: vec![text], ..Policy::default() };
        let _ = judge(&policy, &SHOP, &line, &run(&line));
        let _ = judge(&policy, &SHOP, &line, &Action::Fetch { url: line.clone() });
        let _ = judge(&policy, &SHOP, &line, &Action::Write { paths: vec![line.clone()] });
    }
}
