//! The real route table of the data folder: one prefix per line.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use flowtable::Prefix;

use super::family::Family;

/// Reads the file. It is optional unless the environment variable `FLOWTABLE_DATA` names the
/// folder.
pub(crate) fn read() -> Result<Option<String>, Box<dyn Error>> {
    let named = std::env::var_os("FLOWTABLE_DATA").map(PathBuf::from);
    let is_named = named.is_some();
    let default = || Path::new(crate::ROOT).join("../shared/data");
    let file = named.unwrap_or_else(default).join("routes/prefixes.txt.gz");
    if !file.is_file() && !is_named {
        return Ok(None);
    }
    let failed = |error| format!("FLOWTABLE_DATA: {}: {error}", file.display());
    let mut text = String::new();
    MultiGzDecoder::new(File::open(&file).map_err(failed)?)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(Some(text))
}

/// Returns the prefixes of one family.
pub(crate) fn prefixes<A: Family>(text: &str) -> Result<Vec<Prefix<A>>, Box<dyn Error>> {
    let mut prefixes = Vec::new();
    for line in text.lines() {
        let (address, len) = line.split_once('/').ok_or_else(|| format!("{line}: not a prefix"))?;
        if let Ok(address) = address.parse::<A>() {
            let prefix = Prefix::new(address, len.parse()?);
            prefixes.push(prefix.map_err(|error| format!("{line}: {error}"))?);
        }
    }
    Ok(prefixes)
}
