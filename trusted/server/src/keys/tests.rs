//! Tests of the key store against real files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

async fn store() -> (tempfile::TempDir, KeyStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(&directory.path().join("deep/er/server.sqlite")).await.unwrap();
    (directory, store)
}

#[tokio::test]
async fn a_key_lives_from_creation_to_revocation() {
    let (directory, store) = store().await;
    let path = directory.path().join("deep/er/server.sqlite");
    assert!(!store.any_made().await.unwrap());
    let key = store.create("ci").await.unwrap();
    assert_eq!(key.len(), 43);
    assert!(key.starts_with("cm_") && key[3..].chars().all(|c| c.is_ascii_hexdigit()));
    assert!(store.any_made().await.unwrap() && store.any_valid().await.unwrap());

    // What is on disk is not the key.
    let info = &store.list().await.unwrap()[0];
    assert_eq!((info.name.as_str(), info.prefix.as_str()), ("ci", &key[..9]));
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }

    // Another process changes it; this one knows at once.
    let other = KeyStore::open(&path).await.unwrap();
    assert!(store.find(&key).await.unwrap().is_some());
    other.revoke("ci").await.unwrap();
    assert!(store.find(&key).await.unwrap().is_none());
    assert!(store.any_made().await.unwrap() && !store.any_valid().await.unwrap());
    assert!(store.list().await.unwrap()[0].revoked_at.is_some());

    // The name is free again, the old key is not valid again.
    let again = store.create("ci").await.unwrap();
    assert_ne!(again, key);
    assert!(store.find(&key).await.unwrap().is_none());
    assert!(store.find(&again).await.unwrap().is_some());
}

#[tokio::test]
async fn names_are_checked() {
    let (_directory, store) = store().await;
    store.create("taken").await.unwrap();
    let long = "x".repeat(65);
    let cases =
        [("taken", "already"), ("", "1 to 64"), ("a\nb", "control"), (long.as_str(), "1 to 64")];
    for (name, said) in cases {
        let error = store.create(name).await.unwrap_err().to_string();
        assert!(error.contains(said), "{name:?}: {error}");
    }
    assert!(matches!(store.revoke("absent").await, Err(KeyError::NotFound(_))));
    assert_eq!(store.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_wrong_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);

    std::fs::write(path("text"), "this is no database, however long it may be\n".repeat(99))
        .unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    KeyStore::open(&path("loose")).await.unwrap().close().await;
    std::fs::set_permissions(path("loose"), Permissions::from_mode(0o666)).unwrap();
    std::fs::set_permissions(path("text"), Permissions::from_mode(0o600)).unwrap();
    for (name, sql) in [("foreign", "CREATE TABLE x (y)"), ("newer", "PRAGMA user_version = 99")] {
        if name == "newer" {
            KeyStore::open(&path(name)).await.unwrap().close().await;
        }
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(path(name)).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        pool.close().await;
        std::fs::set_permissions(path(name), Permissions::from_mode(0o600)).unwrap();
    }

    let cases = [
        ("text", "not a database"),
        ("directory", "is not a file"),
        ("loose", "chmod 600"),
        ("foreign", "not a database of casemate"),
        ("newer", "has schema 99"),
        ("text/below", "cannot be opened"),
    ];
    for (name, said) in cases {
        let error = KeyStore::open(&path(name)).await.unwrap_err().to_string();
        assert!(error.contains(said) && error.contains(name), "{name}: {error}");
    }
}

#[tokio::test]
async fn two_may_make_the_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.sqlite");
    let (a, b) = tokio::join!(KeyStore::open(&path), KeyStore::open(&path));
    a.unwrap().create("a").await.unwrap();
    b.unwrap().create("b").await.unwrap();
}

#[tokio::test]
async fn no_path_is_no_database() {
    let error = KeyStore::open(std::path::Path::new("")).await.err().unwrap().to_string();
    assert!(error.contains("--database"), "{error}");
}
