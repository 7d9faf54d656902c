//! Child processes: started in order, stopped in the opposite order, and never left behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use cl_host::life::Signals;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::log::Log;
use crate::error::Error;

/// The child processes. Dropping it kills those that still run.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// One task a child, which ends with it.
    tasks: JoinSet<(usize, io::Result<ExitStatus>)>,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    name: &'static str,
    log: Log,
    /// Signals go through its task: only there is it certain that the process still exists.
    signals: mpsc::Sender<Signal>,
    has_ended: bool,
}

impl Children {
    /// Starts a process; returns its id.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        mut command: Command,
        log: Log,
    ) -> Result<i32, Error> {
        let spawn_error = |source| Error::Spawn {
            process: name,
            source,
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log.stdio()?)
            .stderr(log.stdio()?)
            // Ctrl-C reaches this process only, which stops the others in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(spawn_error)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| spawn_error(io::ErrorKind::NotFound.into()))?;
        let (signals, mut asked) = mpsc::channel(2);
        let index = self.children.len();
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    status = child.wait() => return (index, status),
                    Some(signal) = asked.recv() => {
                        // It may have ended just now; the next turn sees that.
                        let _sent = kill_process(pid, signal);
                    }
                }
            }
        });
        self.children.push(Child {
            name,
            log,
            signals,
            has_ended: false,
        });
        Ok(pid.as_raw_nonzero().get())
    }

    /// Waits until a child ends by itself; for ever if there is none.
    pub(super) async fn death(&mut self) -> Error {
        let Some((child, how)) = self.next_end().await else {
            return std::future::pending().await;
        };
        Error::Died {
            process: child.name,
            how,
            tail: child.log.tail(),
            log: child.log.path().to_owned(),
        }
    }

    /// Stops all, the last one first: each is told to end, and killed after `limit`. A signal kills
    /// those that are left.
    pub(super) async fn stop(
        mut self,
        limit: Duration,
        signals: &mut Signals,
    ) -> Result<(), Error> {
        let mut is_hurried = false;
        let mut killed = None;
        for index in (0..self.children.len()).rev() {
            if !is_hurried {
                self.send(index, Signal::TERM).await;
                let in_time = tokio::select! {
                    waited = timeout(limit, self.ended(index)) => waited.is_ok(),
                    () = signals.next() => {
                        is_hurried = true;
                        false
                    }
                };
                if in_time {
                    continue;
                }
            }
            if !self.children[index].has_ended {
                killed.get_or_insert(self.children[index].name);
                self.send(index, Signal::KILL).await;
                self.ended(index).await;
            }
        }
        killed.map_or(Ok(()), |process| Err(Error::Killed { process }))
    }

    async fn send(&self, index: usize, signal: Signal) {
        // A closed channel belongs to a child that has ended.
        let _sent = self.children[index].signals.send(signal).await;
    }

    async fn ended(&mut self, index: usize) {
        while !self.children[index].has_ended && self.next_end().await.is_some() {}
    }

    /// The next child that ends, and how; `None` if all have.
    async fn next_end(&mut self) -> Option<(&Child, String)> {
        let (index, status) = loop {
            // A task that was cancelled or panicked has no child any more.
            if let Ok(ended) = self.tasks.join_next().await? {
                break ended;
            }
        };
        let child = &mut self.children[index];
        child.has_ended = true;
        let how = match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Some((child, how))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn log(&self, name: &str) -> Log {
            Log::open(self.0.path().join(name)).unwrap()
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn is_alive(pid: i32) -> bool {
        rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
    }

    #[tokio::test]
    async fn a_death_is_told_with_the_end_of_the_log() {
        let folder = folder();
        let mut children = Children::default();
        let script = shell("echo out of luck; exit 7");
        children.start("a", script, folder.log("a")).unwrap();
        let death = timeout(LIMIT, children.death()).await.unwrap();
        let text = death.to_string();
        assert!(text.contains("a ended: exit status: 7"), "{text}");
        assert!(text.contains("out of luck"), "{text}");
    }

    #[tokio::test]
    async fn stops_the_last_one_first() {
        let folder = folder();
        let mut children = Children::default();
        let out = folder.0.path().join("out");
        let script = |name: &str| {
            let out = out.display();
            shell(&format!(
                "trap 'echo {name} >> {out}; exit 0' TERM; echo up; while :; do sleep 0.01; done"
            ))
        };
        for name in ["a", "b"] {
            children
                .start(name, script(name), folder.log(name))
                .unwrap();
        }
        // The traps are set once the logs say so.
        for name in ["a", "b"] {
            has_said_something(&folder, name).await;
        }
        let (_sender, mut signals) = Signals::injected();
        children.stop(LIMIT, &mut signals).await.unwrap();
        assert_eq!(std::fs::read_to_string(out).unwrap(), "b\na\n");
    }

    async fn has_said_something(folder: &Folder, name: &str) {
        let path = folder.0.path().join(name);
        let said = async {
            while std::fs::metadata(&path).unwrap().len() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, said).await.unwrap();
    }

    #[tokio::test]
    async fn a_child_that_does_not_end_is_killed() {
        let folder = folder();
        let mut children = Children::default();
        let stubborn = shell("trap '' TERM; echo up; while :; do sleep 0.01; done");
        let pid = children.start("a", stubborn, folder.log("a")).unwrap();
        has_said_something(&folder, "a").await;
        let (_sender, mut signals) = Signals::injected();
        let stopped = children.stop(Duration::from_millis(50), &mut signals).await;
        assert!(matches!(stopped, Err(Error::Killed { process: "a" })));
        assert!(!is_alive(pid));
    }

    #[tokio::test]
    async fn children_are_out_of_reach_of_the_terminal_and_end_with_their_owner() {
        let folder = folder();
        let mut children = Children::default();
        let endless = shell("while :; do sleep 0.01; done");
        let pid = children.start("a", endless, folder.log("a")).unwrap();
        let group = rustix::process::getpgid(Pid::from_raw(pid)).unwrap();
        assert_eq!(group.as_raw_nonzero().get(), pid);
        drop(children);
        timeout(LIMIT, async {
            while is_alive(pid) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_second_signal_kills_all() {
        let folder = folder();
        let mut children = Children::default();
        let mut pids = Vec::new();
        for name in ["a", "b"] {
            let stubborn = shell("trap '' TERM; while :; do sleep 0.01; done");
            pids.push(children.start(name, stubborn, folder.log(name)).unwrap());
        }
        let (sender, mut signals) = Signals::injected();
        sender.send();
        let stopped = timeout(LIMIT, children.stop(2 * LIMIT, &mut signals)).await;
        assert!(matches!(stopped.unwrap(), Err(Error::Killed { .. })));
        assert!(!pids.into_iter().any(is_alive));
    }
}
