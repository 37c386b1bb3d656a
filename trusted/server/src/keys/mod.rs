//! API keys: made, listed, revoked and checked.
//!
//! The file is shared: `casemate keys` writes to it while a server reads it.
//! The server looks each key up anew, so a revocation holds from the next
//! request on.

mod schema;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sqlx::SqlitePool;

/// How a key begins, so that people and secret scanners know one.
const PREFIX: &str = "cm_";

/// Random bytes in a key.
const RANDOM_BYTES: usize = 20;

/// How many characters of a key are kept to be shown.
const SHOWN: usize = PREFIX.len() + 6;

/// The API keys in the server's SQLite file. Clones share it.
#[derive(Clone, Debug)]
pub struct KeyStore {
    pool: SqlitePool,
    /// Whether a key is known to have been made. Keys are never deleted, so
    /// this never becomes false again.
    any: std::sync::Arc<AtomicBool>,
}

/// A key as it is listed. The key itself is not known any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// Its number.
    pub id: i64,
    /// The name it was made with.
    pub name: String,
    /// Its first characters.
    pub prefix: String,
    /// When it was made, in seconds since 1970.
    pub created_at: i64,
    /// When it was revoked, in seconds since 1970.
    pub revoked_at: Option<i64>,
}

impl KeyStore {
    /// Opens the file at `path`; makes it, readable by its owner only, if there
    /// is none.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the file cannot be opened or made, is not a database of
    /// this program or of this version, or may be written by other users.
    pub async fn open(path: &Path) -> Result<Self, KeyError> {
        // SQLite would take this as a database in memory.
        if path.as_os_str().is_empty() {
            let reason = crate::config::NO_DATABASE.into();
            return Err(KeyError::Open { path: path.to_owned(), reason });
        }
        let pool = schema::open(path).await?;
        Ok(Self { pool, any: std::sync::Arc::default() })
    }

    /// Makes a key and returns it: the only time that it can be seen.
    ///
    /// # Errors
    ///
    /// [`KeyError::Name`] if `name` cannot be a name, [`KeyError::Duplicate`]
    /// if a key that is not revoked has it, and when the database fails.
    pub async fn create(&self, name: &str) -> Result<String, KeyError> {
        if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err(KeyError::Name);
        }
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| KeyError::Random(error.to_string()))?;
        let mut key = PREFIX.to_owned();
        for byte in random {
            // Writing to a string cannot fail.
            let _ = write!(key, "{byte:02x}");
        }
        let made =
            sqlx::query("INSERT INTO keys (name, hash, prefix, created_at) VALUES (?, ?, ?, ?)")
                .bind(name)
                .bind(hash(&key))
                .bind(&key[..SHOWN])
                .bind(now())
                .execute(&self.pool)
                .await;
        match made {
            Ok(_) => Ok(key),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Err(KeyError::Duplicate(name.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Lists all keys, revoked ones too, in the order of their making.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn list(&self) -> Result<Vec<KeyInfo>, KeyError> {
        let rows: Vec<(i64, String, String, i64, Option<i64>)> =
            sqlx::query_as("SELECT id, name, prefix, created_at, revoked_at FROM keys ORDER BY id")
                .fetch_all(&self.pool)
                .await?;
        let info = |(id, name, prefix, created_at, revoked_at)| KeyInfo {
            id,
            name,
            prefix,
            created_at,
            revoked_at,
        };
        Ok(rows.into_iter().map(info).collect())
    }

    /// Revokes the key with this name. It is refused from now on, in running
    /// servers too.
    ///
    /// # Errors
    ///
    /// [`KeyError::NotFound`] if no key that is not revoked has this name, and
    /// when the database fails.
    pub async fn revoke(&self, name: &str) -> Result<(), KeyError> {
        let done =
            sqlx::query("UPDATE keys SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL")
                .bind(now())
                .bind(name)
                .execute(&self.pool)
                .await?;
        if done.rows_affected() == 0 {
            return Err(KeyError::NotFound(name.to_owned()));
        }
        Ok(())
    }

    /// Finds the key that is not revoked and is this one.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub(crate) async fn find(&self, key: &str) -> Result<Option<KeyId>, KeyError> {
        let row: Option<(i64,)> =
            sqlx::query_as("SELECT id FROM keys WHERE hash = ? AND revoked_at IS NULL")
                .bind(hash(key))
                .fetch_optional(&self.pool)
                .await?;
        Ok(row.map(|(id,)| KeyId(id)))
    }

    /// Whether a key was ever made. One that was revoked counts: revoking the
    /// last key shuts a server, it does not open it.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub(crate) async fn any_made(&self) -> Result<bool, KeyError> {
        if self.any.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let (any,): (bool,) =
            sqlx::query_as("SELECT EXISTS (SELECT 1 FROM keys)").fetch_one(&self.pool).await?;
        if any {
            self.any.store(true, Ordering::Relaxed);
        }
        Ok(any)
    }

    /// Whether there is a key that is not revoked.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub(crate) async fn any_valid(&self) -> Result<bool, KeyError> {
        let (any,): (bool,) =
            sqlx::query_as("SELECT EXISTS (SELECT 1 FROM keys WHERE revoked_at IS NULL)")
                .fetch_one(&self.pool)
                .await?;
        Ok(any)
    }

    /// Writes what is left to write and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// The number of a key in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyId(pub(crate) i64);

/// What is stored of a key.
///
/// A plain hash is right here, where for a password it would be wrong: a key is
/// 160 random bits, which nobody finds by hashing guesses, however fast the
/// hash. A slow hash would only make each request slow.
fn hash(key: &str) -> Vec<u8> {
    Sha256::digest(key.as_bytes()).to_vec()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Why keys could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file or its directory cannot be made or opened.
    #[error("the database {} cannot be opened: {reason}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Others may write to the file, and so make keys for themselves.
    #[error("other users may write to the database {path}; to fix it: chmod 600 {path}", path = path.display())]
    Permissions {
        /// Which file.
        path: PathBuf,
    },
    /// The file is a database, but not of this program.
    #[error("{} is not a database of casemate", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The file was made by a later version of this program.
    #[error(
        "the database {} has schema {found}, this casemate knows up to {known}: use a newer one",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The version this program makes.
        known: i64,
    },
    /// No name for a key.
    #[error("a key's name has 1 to 64 characters, none of them a control character")]
    Name,
    /// The name is taken.
    #[error("there is a key called `{0}` already: revoke it first, or choose another name")]
    Duplicate(String),
    /// No such key.
    #[error("no key that is not revoked is called `{0}`")]
    NotFound(String),
    /// The operating system gave no random bytes.
    #[error("no random bytes: {0}")]
    Random(String),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
}

#[cfg(test)]
mod tests;
