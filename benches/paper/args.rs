//! The command line.

use std::path::{Path, PathBuf};

use lexopt::prelude::*;

const HELP: &str = "\
What five papers published, calculated, counted and measured again, as one page.

cargo bench --all-features --bench paper -- [OPTIONS]

  --only PAPER     only that paper
  --explain CAUSE  only the experiment that shows why lines differ; CAUSE as on the page
  --quick          everything on a small scale, in a minute or two, to see that it runs
  --from DIR       where an earlier run put its output: its values go beside those of this run on
                   lines that depend on the machine; once for each such run
  --out DIR        where index.html, tables (CSV) and figures (SVG) go
                   [target/paper; if it is quick, target/paper-quick]
  --markdown FILE  the same page in Markdown
  --help           this

It is quick, too, without --bench from Cargo: cargo test --benches only checks that it runs.
";

/// The parsed command line.
pub(crate) struct Plan {
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    /// The name of a cause.
    pub(crate) explain: Option<String>,
    /// The folders of earlier runs.
    pub(crate) from: Vec<PathBuf>,
    pub(crate) out: PathBuf,
    pub(crate) markdown: Option<PathBuf>,
}

impl Plan {
    /// Parses the command line. Returns `None` after printing the help text.
    pub(crate) fn parse(papers: &[&str]) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let (mut is_bench, mut out) = (false, None);
        let (only, explain, from, markdown) = (None, None, vec![], None);
        let mut plan = Self { quick: false, only, explain, from, out: PathBuf::new(), markdown };
        let mut words = lexopt::Parser::from_env();
        while let Some(word) = words.next()? {
            match word {
                Long("quick") => plan.quick = true,
                Long("only") => plan.only = Some(words.value()?.string()?),
                Long("explain") => plan.explain = Some(words.value()?.string()?),
                Long("from") => plan.from.push(words.value()?.into()),
                Long("out") => out = Some(words.value()?.into()),
                Long("markdown") => plan.markdown = Some(words.value()?.into()),
                // Cargo passes this to `cargo bench`, but not to `cargo test`.
                Long("bench") => is_bench = true,
                Long("help") | Short('h') => {
                    print!("{HELP}\nPAPER is one of: {}\n", papers.join(", "));
                    return Ok(None);
                }
                _ => return Err(word.unexpected().into()),
            }
        }
        plan.quick |= !is_bench;
        plan.out = out.unwrap_or_else(|| default_out(plan.quick));
        if let Some(only) = plan.only.as_deref().filter(|only| !papers.contains(only)) {
            return Err(format!("no paper {only}; there are: {}", papers.join(", ")).into());
        }
        Ok(Some(plan))
    }

    /// Returns the command that repeats this run.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["cargo bench --all-features --bench paper".to_string()];
        words.extend(self.quick.then(|| "--quick".into()));
        words.extend(self.only.iter().map(|only| format!("--only {only}")));
        words.extend(self.from.iter().map(|dir| format!("--from {}", dir.display())));
        let out =
            (self.out != default_out(self.quick)).then(|| format!("--out {}", self.out.display()));
        words.extend(out);
        words.extend(self.markdown.iter().map(|file| format!("--markdown {}", file.display())));
        if words.len() > 1 {
            words.insert(1, "--".into());
        }
        words.join(" ")
    }
}

/// Returns the default folder in the target directory. A quick run does not overwrite a full one.
fn default_out(quick: bool) -> PathBuf {
    let name = if quick { "paper-quick" } else { "paper" };
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(name)
}
