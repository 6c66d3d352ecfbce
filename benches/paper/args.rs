//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

const HELP: &str = "\
What five papers published, calculated, counted and measured again, as one page.

cargo bench --bench paper -- [OPTIONS]

  --only PAPER     only that paper
  --quick          everything on a small scale, in a minute or two, to see that it runs
  --out DIR        where index.html, tables (CSV) and figures (SVG) go [target/paper]
  --markdown FILE  the same page in Markdown
  --help           this
";

/// What was asked for.
pub(crate) struct Plan {
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) out: PathBuf,
    pub(crate) markdown: Option<PathBuf>,
}

impl Plan {
    /// The plan of the command line; none if it was only asked for help.
    pub(crate) fn parse(papers: &[&str]) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut plan =
            Self { quick: false, only: None, out: "target/paper".into(), markdown: None };
        let mut words = lexopt::Parser::from_env();
        while let Some(word) = words.next()? {
            match word {
                Long("quick") => plan.quick = true,
                Long("only") => plan.only = Some(words.value()?.string()?),
                Long("out") => plan.out = words.value()?.into(),
                Long("markdown") => plan.markdown = Some(words.value()?.into()),
                // Cargo says it to every bench.
                Long("bench") => (),
                Long("help") | Short('h') => {
                    print!("{HELP}\nPAPER is one of: {}\n", papers.join(", "));
                    return Ok(None);
                }
                _ => return Err(word.unexpected().into()),
            }
        }
        if let Some(only) = plan.only.as_deref().filter(|only| !papers.contains(only)) {
            return Err(format!("no paper {only}; there are: {}", papers.join(", ")).into());
        }
        Ok(Some(plan))
    }

    /// The command that asks for the same.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["cargo bench --bench paper".to_string()];
        words.extend(self.quick.then(|| "--quick".into()));
        words.extend(self.only.iter().map(|only| format!("--only {only}")));
        let default = PathBuf::from("target/paper");
        let out = (self.out != default).then(|| format!("--out {}", self.out.display()));
        words.extend(out);
        words.extend(self.markdown.iter().map(|file| format!("--markdown {}", file.display())));
        if words.len() > 1 {
            words.insert(1, "--".into());
        }
        words.join(" ")
    }
}
