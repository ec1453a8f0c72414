//! Tells the program what it is built from, for its reports: versions, revision, compiler, and the compiler's options.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = package.join("..");
    let lock = root.join("Cargo.lock");
    changes(&package.join("build.rs"));
    changes(&lock);
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    tell("CRATES", &crates(&lock));
    // Figures of debug builds mean nothing: these are not rebuilt for each commit.
    let told = if variable("PROFILE") == "debug" { None } else { revision(&root, &package) };
    tell("REVISION", &told.unwrap_or_else(|| "unknown commit".to_owned()));
    let compiler = output(Command::new(variable("RUSTC")).arg("--version"));
    tell("COMPILER", compiler.as_deref().unwrap_or("unknown"));
    tell("TARGET", &variable("TARGET"));
    tell("TARGET_FEATURES", &variable("CARGO_CFG_TARGET_FEATURE"));
    tell("FLAGS", &variable("CARGO_ENCODED_RUSTFLAGS").replace('\x1F', " "));
    tell("PROFILE", &variable("PROFILE"));
    tell("OPT_LEVEL", &variable("OPT_LEVEL"));
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn tell(name: &str, value: &str) {
    println!("cargo::rustc-env=KOEL_BENCH_{name}={}", value.trim());
}

fn changes(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The commit, and whether the tree differs from it; `None` outside of a clone of koel.
fn revision(root: &Path, package: &Path) -> Option<String> {
    let git = |args: &[&str]| output(Command::new("git").arg("-C").arg(root).args(args));
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    // If this is a folder of another repository, git would report that one's commit.
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    for folder in [root, package] {
        changes(&folder.join("Cargo.toml"));
        changes(&folder.join("src"));
    }
    let log = root.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        changes(&log);
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let built = ["src", "benches", "Cargo.toml", "Cargo.lock"];
    let status = [&["status", "--porcelain", "--untracked-files=no", "--"], &built[..]].concat();
    let changed = !git(&status)?.is_empty();
    Some(if changed { commit + ", changed" } else { commit })
}

/// `name version` of koel and of everything that it and this package depend on, separated by commas; of two versions, the one
/// that this package uses.
fn crates(lock: &str) -> String {
    let packages: Vec<Package<'_>> = lock.split("[[package]]").skip(1).map(Package::of).collect();
    let named = |name: &str| packages.iter().find(|package| package.name == name);
    let mut told: Vec<(&str, &str)> = Vec::new();
    for dependent in ["koel-bench", "koel"].into_iter().filter_map(named) {
        for dependency in &dependent.dependencies {
            // The version is given only if there are several.
            let (name, version) = match dependency.split_once(' ') {
                Some((name, rest)) => (name, rest.split(' ').next()),
                None => (*dependency, named(dependency).map(|package| package.version)),
            };
            if let Some(version) = version.filter(|_| told.iter().all(|(other, _)| *other != name)) {
                told.push((name, version));
            }
        }
    }
    told.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(",")
}

/// An entry of `Cargo.lock`.
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    dependencies: Vec<&'a str>,
}

impl<'a> Package<'a> {
    fn of(entry: &'a str) -> Self {
        let field = |name: &str| {
            let value = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            value.map_or("", |value| value.trim_end_matches('"'))
        };
        let dependencies = entry.split_once("dependencies = [").map_or("", |(_, rest)| rest);
        let dependencies = dependencies.lines().map_while(|line| match line.trim() {
            "]" => None,
            line => Some(line.trim_matches([',', '"'])),
        });
        Package {
            name: field("name"),
            version: field("version"),
            dependencies: dependencies.filter(|name| !name.is_empty()).collect(),
        }
    }
}
