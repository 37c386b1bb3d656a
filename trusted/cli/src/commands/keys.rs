//! `casemate keys`: the server's API keys.

use std::path::PathBuf;
use std::process::ExitCode;

use server::{KeyInfo, KeyStore, ServerConfig};

use crate::failure::Failure;
use crate::ui;

const AFTER: &str = "\
A key is shown once, when it is made; only its hash is stored. A running server
knows a new or a revoked key from the next request on. Callers send it as
`Authorization: Bearer KEY`.

Examples:
  casemate keys create laptop
  casemate keys list
  casemate keys revoke laptop";

/// Makes, lists and revokes the server's API keys.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    place: Place,
}

/// Where the keys are.
#[derive(Debug, clap::Args)]
struct Place {
    /// SQLite file that holds the keys [default: in the user's data directory]
    #[arg(long, value_name = "FILE", global = true)]
    database: Option<PathBuf>,

    /// The server's settings, a TOML file that may name the database
    #[arg(long, value_name = "FILE", global = true, env = "CASEMATE_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Makes a key and prints it, this one time
    Create {
        /// A name for it, to find it again
        name: String,
    },
    /// Lists all keys, revoked ones too
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revokes a key: it is refused from now on
    Revoke {
        /// Its name
        name: String,
    },
}

pub(crate) fn execute(args: KeysArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let database = args.place.database()?;
        // Opening makes what is not there: right for the first key only.
        let named = !database.as_os_str().is_empty();
        if named && !matches!(args.action, Action::Create { .. }) && !database.exists() {
            let failure =
                Failure::new(format!("there are no keys: {} does not exist", database.display()));
            return Err(failure
                .fix("name the right --database, or make a key: casemate keys create NAME")
                .into());
        }
        let store = KeyStore::open(&database).await?;
        let done = act(args.action, &store).await;
        store.close().await;
        done
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Place {
    fn database(self) -> anyhow::Result<PathBuf> {
        Ok(match (self.database, self.config) {
            (Some(database), _) => database,
            (None, Some(config)) => ServerConfig::load(&config)?.database,
            (None, None) => ServerConfig::default().database,
        })
    }
}

async fn act(action: Action, store: &KeyStore) -> anyhow::Result<()> {
    match action {
        Action::Create { name } => {
            let key = store.create(&name).await?;
            ui::print(&format!("{key}\n"))?;
            ui::note("this is the only time that the key can be seen");
        }
        Action::List { json } => {
            let keys = store.list().await?;
            if json {
                ui::print_json(&keys)?;
            } else if keys.is_empty() {
                ui::note("there are no keys; `casemate keys create NAME` makes one");
            } else {
                ui::print(&table(&keys))?;
            }
        }
        Action::Revoke { name } => {
            store.revoke(&name).await?;
            ui::note(&format!("`{name}` is revoked"));
        }
    }
    Ok(())
}

fn table(keys: &[KeyInfo]) -> String {
    let rows = keys.iter().map(|key| {
        let revoked = key.revoked_at.map_or("-".to_owned(), ui::date);
        vec![ui::visible(&key.name), format!("{}…", key.prefix), ui::date(key.created_at), revoked]
    });
    let head = ["NAME", "KEY", "CREATED", "REVOKED"].map(str::to_owned).to_vec();
    ui::columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_listed_in_columns() {
        let key = KeyInfo {
            id: 1,
            name: "a".into(),
            prefix: "cm_123456".into(),
            created_at: 951_782_400,
            revoked_at: None,
        };
        assert_eq!(
            table(&[key]),
            "NAME  KEY         CREATED               REVOKED\n\
             a     cm_123456…  2000-02-29 00:00 UTC  -\n"
        );
    }
}
