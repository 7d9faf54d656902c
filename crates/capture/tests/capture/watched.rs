//! A folder that is watched, as operators run it.

use std::fs;
use std::process::Stdio;

use cl_testbed::{HANG, Home};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{OWNER, World};

struct Watching {
    child: Child,
    reports: Lines<BufReader<ChildStdout>>,
    _home: Home,
}

impl Watching {
    fn start(world: &World, path: &std::path::Path) -> Self {
        let home = Home::new(&world.authority, "vault/cl-capture");
        let mut child = Command::new(env!("CARGO_BIN_EXE_cl-capture"))
            .arg("mail")
            .arg(path)
            .args(["--watch", "--json", "--tenant", "acme"])
            .args(["--owner-address", OWNER])
            .args(["--vault-addr", &world.addr.to_string()])
            .arg("--home")
            .arg(home.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let reports = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            reports,
            _home: home,
        }
    }

    async fn report(&mut self) -> Value {
        let line = tokio::time::timeout(HANG, self.reports.next_line()).await;
        let line = line.expect("hangs: a report").unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn end(mut self) -> Option<i32> {
        let id = self.child.id().unwrap().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(told.unwrap().success());
        let status = tokio::time::timeout(HANG, self.child.wait()).await;
        status.expect("hangs: an end").unwrap().code()
    }
}

fn message(id: u32) -> String {
    format!("From: a@b.example\r\nMessage-ID: <{id}@b.example>\r\n\r\nhello {id}\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_into_a_maildir_is_captured_once_until_the_end() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir(folder.path().join(part)).unwrap();
    }
    let place = |name: &str| folder.path().join(name);
    fs::write(place("cur/1.a:2,S"), message(1)).unwrap();
    let mut watching = Watching::start(&world, folder.path());
    let first = watching.report().await;
    assert_eq!(
        (&first["found"], &first["captured"]),
        (&1.into(), &1.into())
    );

    // Delivered as mail is: whole, by a new name. The one that moves on is not read again.
    fs::write(place("tmp/2.b"), message(2)).unwrap();
    fs::rename(place("tmp/2.b"), place("new/2.b")).unwrap();
    let second = watching.report().await;
    assert_eq!(
        (&second["found"], &second["captured"]),
        (&1.into(), &1.into())
    );

    fs::rename(place("new/2.b"), place("cur/2.b:2,S")).unwrap();
    fs::write(place("tmp/3.c"), "").unwrap();
    fs::rename(place("tmp/3.c"), place("new/3.c")).unwrap();
    let third = watching.report().await;
    assert_eq!(third["found"], 1, "{third}");
    assert_eq!(third["refused"]["NOT_A_MESSAGE"], 1);

    assert_eq!(watching.end().await, Some(3), "one was refused");
    assert_eq!(world.vault.kept.lock().unwrap().events.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_folder_is_watched() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.eml");
    fs::write(&path, message(1)).unwrap();
    let mut watching = Watching::start(&world, &path);
    let status = tokio::time::timeout(HANG, watching.child.wait()).await;
    assert_eq!(status.expect("hangs: an end").unwrap().code(), Some(1));
}
