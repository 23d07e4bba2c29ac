//! `raddle clean`: empty the store and the caches.

use super::{Ctx, Exit};
use crate::runtime_files;
use anyhow::Context;
use raddle_findings::{Store, store};
use std::path::PathBuf;

/// Removes the findings, schedules and traces of this folder's store, and what Raddle has cached: programs that it compiled
/// and its unpacked runtime.
///
/// Examples:
///   raddle clean                  the store in this folder and the cache
///   raddle clean --store          only the store
///   raddle clean --cache          only the cache
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The store.
    #[arg(long, value_name = "DIR", default_value = store::FOLDER)]
    keep: PathBuf,
    /// Only the store.
    #[arg(long, conflicts_with = "cache")]
    store: bool,
    /// Only the cache.
    #[arg(long)]
    cache: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    if !args.cache {
        let store = Store::at(&args.keep);
        let findings =
            store.clean().with_context(|| format!("cannot empty the store {}", args.keep.display()))?;
        if !ctx.quiet {
            eprintln!("raddle: removed {findings} findings from {}", args.keep.display());
        }
    }
    if !args.store {
        let cache = runtime_files::writable_cache_folder()?;
        let removed = match std::fs::remove_dir_all(&cache) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            result => result.map(|()| true).with_context(|| format!("cannot remove {}", cache.display()))?,
        };
        if removed && !ctx.quiet {
            eprintln!("raddle: removed the cache {}", cache.display());
        }
    }
    Ok(Exit::Clean)
}
