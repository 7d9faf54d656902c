//! Requests to end: from the operating system, or from a test.

use std::io;

use tokio::sync::mpsc;

/// Signals to end. The first asks for an orderly end, the second for an end at once.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<()>);

/// Sends what a process would get as SIGTERM.
#[derive(Clone, Debug)]
pub struct SignalSender(mpsc::Sender<()>);

const QUEUE: usize = 8;

impl Signals {
    /// SIGTERM and SIGINT of this process.
    #[cfg(unix)]
    pub fn of_process() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, signals) = Self::injected();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => tracing::info!("SIGTERM"),
                    _ = interrupt.recv() => tracing::info!("SIGINT"),
                }
                sender.send();
            }
        });
        Ok(signals)
    }

    /// Ctrl-C of this process.
    #[cfg(not(unix))]
    pub fn of_process() -> io::Result<Self> {
        let (sender, signals) = Self::injected();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                sender.send();
            }
        });
        Ok(signals)
    }

    /// Signals that come from the sender only.
    pub fn injected() -> (SignalSender, Self) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (SignalSender(sender), Self(receiver))
    }

    /// Waits for the next signal; for ever when the sender is gone.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

impl SignalSender {
    /// Sends one signal.
    pub fn send(&self) {
        // A full queue holds more than the two that matter; a closed one has nobody waiting.
        let _sent = self.0.try_send(());
    }
}
