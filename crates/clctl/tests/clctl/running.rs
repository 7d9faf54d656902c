//! Processes are started in order, watched, and stopped whatever happens.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{PROGRAMS, TestHome, is_alive, send, until};

fn pids(home: &TestHome) -> Vec<i32> {
    PROGRAMS.iter().map(|name| home.pid_of(name)).collect()
}

#[test]
fn signals_stop_everything_in_order() {
    let home = TestHome::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let up = home.up();
        let pids = pids(&home);
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        up.signal(signal);
        let (status, said) = up.end();
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(!pids.iter().any(|pid| is_alive(*pid)));
        assert!(home.endpoints().is_none());
        for name in PROGRAMS {
            let log = fs::read_to_string(home.path(&format!("logs/{name}.log"))).unwrap();
            assert!(log.contains("\"ready\""), "{name}: {log}");
        }
    }
    assert_eq!(home.failure(&["status"]), (3, "NOT_RUNNING".to_owned()));
}

#[test]
fn an_interrupted_start_leaves_nothing_behind() {
    let home = TestHome::new();
    let up = home.start(&["--base-port=0"]);
    let log = home.path("logs/cl-receipt-store.log");
    until("first process", || log.exists().then_some(()));
    up.signal(Signal::INT);
    up.end();
    assert!(home.endpoints().is_none());
    // Nobody holds what a process would hold.
    let up = home.up();
    up.signal(Signal::TERM);
    assert_eq!(up.end().0.code(), Some(0));
}

#[test]
fn status_says_how_everything_is() {
    let home = TestHome::new();
    let _up = home.up();
    let status = home.json(&["status"]);
    let processes = status["processes"].as_array().unwrap();
    let names: Vec<_> = processes.iter().map(|process| &process["name"]).collect();
    assert_eq!(names, PROGRAMS);
    assert!(processes.iter().all(|process| process["ready"] == true));
    assert_eq!(status["active_policy"]["version"], "default-1");
    assert_eq!(status["receipt_log"]["verified"], true);
    assert_eq!(status["receipt_log"]["entries"], 2);
    let shown = home.ok(&["status"]);
    assert!(shown.contains("2 entries, verified"), "{shown}");
}

#[test]
fn a_home_is_up_once() {
    let home = TestHome::new();
    let _up = home.up();
    let before = home.endpoints();
    let refused = home.failure(&["up", "--base-port=0"]);
    assert_eq!(refused, (1, "ALREADY_UP".to_owned()));
    assert_eq!(home.endpoints(), before);
    assert!(pids(&home).into_iter().all(is_alive));
}

#[test]
fn the_first_policy_is_activated_once() {
    let home = TestHome::new();
    for _ in 0..2 {
        let up = home.up();
        let receipts = home.json(&["receipts", "list"]);
        assert_eq!(receipts["total"], 2);
        up.signal(Signal::TERM);
        up.end();
    }
}

#[test]
fn a_start_replaces_no_policy() {
    let home = TestHome::new();
    let up = home.up();
    let text = fs::read_to_string(home.path("policy/default.json")).unwrap();
    let second = home.write("second.json", &text.replace("default-1", "second"));
    let digest = home.ok(&["policy", "put", &second]);
    home.ok(&["policy", "activate", digest.trim_end()]);
    up.signal(Signal::TERM);
    up.end();
    let _up = home.up();
    let status = home.json(&["status"]);
    assert_eq!(status["active_policy"]["version"], "second");
}

#[test]
fn one_that_dies_takes_the_others_down() {
    let home = TestHome::new();
    let up = home.up();
    let pids = pids(&home);
    send(home.pid_of("cl-policy-engine"), Signal::KILL);
    let (status, said) = up.end();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("cl-policy-engine ended: signal: 9"), "{said}");
    assert!(said.contains("logs/cl-policy-engine.log"), "{said}");
    assert!(!pids.into_iter().any(is_alive));
    assert!(home.endpoints().is_none());
}

#[test]
fn one_that_does_not_start_is_named_with_its_reason() {
    let home = TestHome::new();
    let key = home.path("keys/cl-policy-engine.kek");
    fs::write(&key, "short").unwrap();
    let up = home.start(&["--base-port=0"]);
    let (status, said) = up.end();
    assert_eq!(status.code(), Some(1));
    assert!(
        said.contains("cl-policy-engine ended: exit status: 1"),
        "{said}"
    );
    assert!(said.contains("cl-policy-engine.kek"), "{said}");
    assert!(home.endpoints().is_none());
}

#[test]
fn processes_of_a_killed_start_are_found() {
    let home = TestHome::new();
    let up = home.up();
    let pids = pids(&home);
    up.signal(Signal::KILL);
    up.end();
    let refused = home.failure(&["up", "--base-port=0"]);
    // Before anything is asserted: nobody else ends them.
    for pid in &pids {
        send(*pid, Signal::KILL);
    }
    assert_eq!(refused, (1, "PROCESS_LEFT_OVER".to_owned()));
    until("end of the processes", || {
        (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
    });
    let _up = home.start(&["--base-port=0"]);
    until("new processes", || {
        let endpoints = home.endpoints()?;
        let pid = endpoints["processes"]["cl-gateway"]["pid"].as_i64()?;
        (pids.last() != i32::try_from(pid).ok().as_ref()).then_some(())
    });
}

#[test]
fn a_port_in_use_is_refused_before_anything_starts() {
    let home = TestHome::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    // The gateway has the first port.
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = home.failure(&["up", "--base-port", &port]);
    assert_eq!(refused, (1, "PORT_UNAVAILABLE".to_owned()));
    assert!(!home.path("logs/cl-receipt-store.log").exists());
    let refused = home.failure(&["up", "--base-port=65535"]);
    assert_eq!(refused, (2, "PORT_OUT_OF_RANGE".to_owned()));
}

#[test]
fn refuses_a_set_of_processes_that_cannot_work() {
    let home = TestHome::new();
    let missing = home.failure(&["up", "--bin-dir", "/nonexistent"]);
    assert_eq!(missing, (1, "PROGRAM_NOT_FOUND".to_owned()));
    let unknown = home.run(&["up", "--without", "cl-other"]);
    assert_eq!(unknown.code, Some(2));
    let needed = home.failure(&["up", "--without", "cl-receipt-store"]);
    assert_eq!(needed, (2, "PROCESS_NEEDED".to_owned()));
    let home = TestHome::missing();
    assert_eq!(home.failure(&["up"]), (1, "HOME_NOT_FOUND".to_owned()));
    assert!(!home.root().exists());
}

#[test]
fn a_process_can_be_left_out() {
    let home = TestHome::new();
    let up = home.start(&["--base-port=0", "--without=cl-gateway"]);
    up.wait_until_ready(&home);
    let status = home.json(&["status"]);
    let running = status["processes"].as_array().unwrap();
    assert_eq!(running.len(), PROGRAMS.len() - 1);
    assert!(status["gateway_url"].is_null());
    let console = status["console_url"].as_str().unwrap();
    assert!(console.starts_with("https://localhost:"), "{console}");
    let refused = home.failure(&["request", &home.example("request")]);
    assert_eq!(refused, (3, "NOT_RUNNING".to_owned()));
}

#[test]
fn one_that_stops_answering_is_not_ready() {
    let home = TestHome::new();
    let up = home.up();
    let store = home.pid_of("cl-receipt-store");
    send(store, Signal::STOP);
    let refused = home.run(&["status"]);
    send(store, Signal::CONT);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stdout.contains("no     127.0.0.1"),
        "{}",
        refused.stdout
    );
    drop(up);
}

#[test]
fn other_settings_of_the_environment_reach_no_process() {
    let home = TestHome::new();
    let up = home
        .command(&["up", "--base-port=0"])
        .env("CL_DATA_DIR", "/nonexistent/data")
        .env("CL_TLS_KEY", "/nonexistent/key")
        .env("CL_LISTEN_ADDR", "192.0.2.1:1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("readiness", || home.endpoints());
    send(up.id().try_into().unwrap(), Signal::TERM);
    assert!(up.wait_with_output().unwrap().status.success());
}

#[test]
fn running_processes_take_up_renewed_certificates() {
    let home = TestHome::new();
    let _up = home.up();
    home.ok(&["certificates", "renew"]);
    // The old ones have the same authority, so there is no moment at which calls fail.
    home.ok(&["status"]);
    home.ok(&["request", &home.example("request")]);
}
