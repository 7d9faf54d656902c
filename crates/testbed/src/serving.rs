//! Servers in the test's own process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cl_host::callers::CallerTable;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::life::{
    Ended, Listeners, ServeError, Server, Shutdown, SignalSender, Signals, Tasks, Timings,
};
use cl_host::telemetry::Telemetry;
use cl_host::tls::Credentials;
use cl_host::{App, Callers};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tonic::service::Routes;

use crate::authority::{Authority, TRUST_DOMAIN, spiffe_id};
use crate::logs::telemetry;
use crate::wait::{HANG, within};

/// A server that runs.
#[derive(Debug)]
pub struct Serving {
    /// Where it serves.
    pub addr: SocketAddr,
    admin_addr: SocketAddr,
    /// Its SPIFFE path.
    path: String,
    shutdown: Shutdown,
    signals: SignalSender,
    task: JoinHandle<Result<Ended, ServeError>>,
}

impl Serving {
    /// Serves a peer, on a free port, whose methods one caller may call.
    pub async fn peer(
        authority: &Authority,
        path: &str,
        routes: Routes,
        methods: &[&str],
        caller: &str,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::peer_on(listener, authority, path, routes, methods, caller).await
    }

    /// The same on this port.
    pub async fn peer_on(
        listener: TcpListener,
        authority: &Authority,
        path: &str,
        routes: Routes,
        methods: &[&str],
        caller: &str,
    ) -> Self {
        let mut callers = CallerTable::new(TRUST_DOMAIN).unwrap();
        for method in methods {
            callers = callers.allow(method, &[caller]).unwrap();
        }
        let shutdown = Shutdown::default();
        let server = Server {
            app: App::new(routes, Callers::Table(callers)),
            credentials: authority.credentials(path),
            telemetry: telemetry(),
            timings: timings(),
            tasks: Tasks::new(shutdown.clone()),
            shutdown,
        };
        Self::serve(server, listener).await
    }

    /// Serves an app on a free port.
    pub async fn start(
        app: App,
        credentials: Arc<Credentials>,
        shutdown: Shutdown,
        tasks: Tasks,
        telemetry: Telemetry,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            app,
            credentials,
            telemetry,
            timings: timings(),
            shutdown,
            tasks,
        };
        Self::serve(server, listener).await
    }

    /// Serves on this port.
    pub async fn serve(server: Server, main: TcpListener) -> Self {
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, admin_addr) = (main.local_addr().unwrap(), admin.local_addr().unwrap());
        let id = server.credentials.own().id.to_string();
        let shutdown = server.shutdown.clone();
        let (signals, receiver) = Signals::injected();
        Self {
            addr,
            admin_addr,
            path: id.split('/').skip(3).collect::<Vec<_>>().join("/"),
            shutdown,
            signals,
            task: tokio::spawn(server.serve(Listeners { main, admin }, receiver)),
        }
    }

    /// Calls to it by whom these credentials name.
    pub fn channel(&self, credentials: Arc<Credentials>) -> PeerChannel {
        channel(self.addr, credentials, &self.path)
    }

    /// What a probe of readiness is told.
    pub async fn ready_line(&self) -> String {
        within("a probe", async {
            let mut stream = TcpStream::connect(self.admin_addr).await.unwrap();
            let request = "GET /readyz HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        })
        .await
    }

    /// Tells it to end, without waiting for that.
    pub fn signal(&self) {
        self.signals.send();
    }

    /// Ends at once, as a killed process does: nothing is finished.
    pub async fn kill(self) {
        self.shutdown.abort();
        self.task.abort();
        let _cancelled = self.task.await;
    }

    /// Ends as a process does that is told to.
    pub async fn end(self) -> Ended {
        self.signal();
        within("the end", self.task).await.unwrap().unwrap()
    }
}

/// Timings by which nothing but a hang is cut off.
pub fn timings() -> Timings {
    Timings {
        lame_duck: Duration::ZERO,
        drain_deadline: HANG,
        max_call: HANG,
        ..Timings::default()
    }
}

/// Calls to the process at a SPIFFE path.
pub fn channel(addr: SocketAddr, credentials: Arc<Credentials>, path: &str) -> PeerChannel {
    let target = Target {
        address: format!("localhost:{}", addr.port()),
        id: spiffe_id(path).parse().unwrap(),
    };
    let limits = ClientLimits {
        connect_timeout: HANG,
        default_deadline: HANG,
        ..ClientLimits::default()
    };
    PeerChannel::new(target, credentials, limits).unwrap()
}
