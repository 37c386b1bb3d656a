//! Opening the database file, and the versions of its tables.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::KeyError;

/// Marks the file as one of this program: `csmt` in ASCII.
const APPLICATION_ID: i64 = 0x6373_6d74;

/// What brings the tables from each version to the next, oldest first. The
/// version of a file is how many of these it has had. Entries are never
/// changed once released.
const STEPS: &[&str] = &["
    CREATE TABLE keys (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        prefix TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        revoked_at INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX keys_name ON keys (name) WHERE revoked_at IS NULL;
"];

/// Opens the database, making the file and bringing its tables up to date.
pub(super) async fn open(path: &Path) -> Result<SqlitePool, KeyError> {
    prepare(path)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .acquire_timeout(Duration::from_secs(5))
        // A connection to a file does not go stale.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options)
        .await
        .map_err(|error| KeyError::Open { path: path.to_owned(), reason: plain(&error) })?;
    if let Err(error) = migrate(&pool, path).await {
        pool.close().await;
        return Err(match error {
            KeyError::Database(error) => {
                KeyError::Open { path: path.to_owned(), reason: plain(&error) }
            }
            error => error,
        });
    }
    Ok(pool)
}

/// Makes the file for its owner only, before SQLite would make it for all, and
/// looks at who may write to one that is there.
fn prepare(path: &Path) -> Result<(), KeyError> {
    let open_error =
        |error: io::Error| KeyError::Open { path: path.to_owned(), reason: error.to_string() };
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(open_error)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(open_error(error)),
    }
    let metadata = std::fs::metadata(path).map_err(open_error)?;
    if !metadata.is_file() {
        return Err(KeyError::Open { path: path.to_owned(), reason: "it is not a file".into() });
    }
    if metadata.permissions().mode() & 0o022 != 0 {
        return Err(KeyError::Permissions { path: path.to_owned() });
    }
    Ok(())
}

async fn migrate(pool: &SqlitePool, path: &Path) -> Result<(), KeyError> {
    // Two programs may open a new file at once: the lock is taken before the
    // version is read.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let (application,): (i64,) =
        sqlx::query_as("PRAGMA application_id").fetch_one(&mut *transaction).await?;
    let (version,): (i64,) =
        sqlx::query_as("PRAGMA user_version").fetch_one(&mut *transaction).await?;
    let (objects,): (i64,) =
        sqlx::query_as("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *transaction).await?;
    let fresh = application == 0 && version == 0 && objects == 0;
    if !fresh && application != APPLICATION_ID {
        return Err(KeyError::Foreign { path: path.to_owned() });
    }
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if version > known {
        return Err(KeyError::Newer { path: path.to_owned(), found: version, known });
    }
    let done = usize::try_from(version).map_err(|_| KeyError::Foreign { path: path.to_owned() })?;
    if done < STEPS.len() {
        for step in &STEPS[done..] {
            sqlx::raw_sql(*step).execute(&mut *transaction).await?;
        }
        // A pragma takes no parameters; both numbers are ours.
        let mark =
            format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(mark)).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// What SQLite said, without how the error got here.
fn plain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    }
}
