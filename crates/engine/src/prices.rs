//! What tokens cost, as the file beside `config.toml` says. It is looked at whenever something is decided, so that a price
//! that a person sets holds from the next call on.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use ostler_domain::{Refusal, price::PriceBook};

pub(crate) struct PriceFile {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// When it was written and how long it was; none where there is none.
    stamp: Option<(SystemTime, u64)>,
    /// The last that could be read.
    book: Arc<PriceBook>,
    fault: Option<String>,
}

impl PriceFile {
    pub(crate) fn new(path: PathBuf) -> PriceFile {
        PriceFile { path, known: Mutex::default() }
    }

    /// The prices that hold. A file that cannot be read changes nothing about them.
    pub(crate) fn current(&self) -> Arc<PriceBook> {
        self.look().0
    }

    /// The same, for who must know that it is so.
    pub(crate) fn certain(&self) -> Result<Arc<PriceBook>, Refusal> {
        match self.look() {
            (book, None) => Ok(book),
            (_, Some(fault)) => {
                Err(Refusal::invalid(format!("{} cannot be read", self.path.display())).because(fault))
            }
        }
    }

    fn look(&self) -> (Arc<PriceBook>, Option<String>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = fs::metadata(&self.path).ok().and_then(|file| Some((file.modified().ok()?, file.len())));
        if stamp != known.stamp {
            known.stamp = stamp;
            known.fault = None;
            match self.read() {
                Ok(book) => known.book = Arc::new(book),
                Err(fault) => {
                    tracing::warn!(fault, "the prices cannot be read; those from before hold");
                    known.fault = Some(fault);
                }
            }
        }
        (known.book.clone(), known.fault.clone())
    }

    fn read(&self) -> Result<PriceBook, String> {
        match fs::read(&self.path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PriceBook::default()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_that_is_set_holds_at_once_and_a_mistake_changes_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.json");
        let file = PriceFile::new(path.clone());
        assert!(file.current().quote("new-model").is_none() && file.current().quote("gpt-5").is_some());
        let price = r#"{"input":"1","cache_read":"1","cache_write":"1","output":"2"}"#;
        fs::write(&path, format!(r#"{{"own":{{"new-model":{price}}}}}"#)).unwrap();
        assert!(file.current().quote("new-model").is_some());
        fs::write(&path, "{").unwrap();
        assert!(file.current().quote("new-model").is_some(), "the last that could be read");
        assert!(file.certain().is_err());
        fs::remove_file(&path).unwrap();
        assert!(file.current().quote("new-model").is_none() && file.certain().is_ok());
    }
}
