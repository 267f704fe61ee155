//! Owns the cases of stopping, starting, crashing and serving on a real socket; the scene carries them out. They must
//! not know the plane's insides.

use std::fs;

use axum::http::StatusCode;
use host_sim_plane::{Clock, Plane, PlaneConfig, Timestamp};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::scene::{CONFIG, PROCESSING_TTL, Scene, log, open, statement};

#[tokio::test]
async fn reviews_and_tokens_stay_over_a_restart() {
    let mut scene = Scene::new().await;
    let tokens = (scene.sidecar(), scene.approver());
    let pending = scene.file(&statement("1")).await;
    let approved = scene.approved(&statement("2")).await;
    scene.restart().await;
    assert_eq!((scene.sidecar(), scene.approver()), tokens);
    assert_eq!(
        scene.file(&statement("1")).await.is(StatusCode::OK).json,
        pending.json
    );
    assert_eq!(scene.claim(&approved).await.asked(), (true, "EXECUTED"));
    scene.restart().await;
    assert_eq!(scene.claim(&approved).await.asked(), (false, "EXECUTED"));
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let scene = Scene::new().await;
    let used = scene.approved(&statement("1")).await;
    scene.claim(&used).await.is(StatusCode::OK);
    let waiting = scene.file(&statement("2")).await.id();
    let flying = scene.approved(&statement("3")).await;
    let flying_release = scene.claim_accepted(&flying).await.release_id();
    let returned = scene.approved(&statement("4")).await;
    let returned_release = scene.claim_accepted(&returned).await.release_id();
    scene
        .settle(&returned, "returned", Some(&returned_release))
        .await
        .is(StatusCode::OK);
    // What lies on the disk while the plane still runs is all that a killed one leaves.
    let crashed = scene.dir.with_extension("crashed");
    fs::create_dir(&crashed).expect("create");
    for name in [
        "plane.sqlite3",
        "plane.sqlite3-wal",
        "sidecar-token",
        "approver-token",
    ] {
        fs::copy(scene.dir.join(name), crashed.join(name)).expect("copy");
    }
    let after = Scene::at(crashed, scene.clock.now()).await;
    assert_eq!(after.claim(&used).await.asked(), (false, "EXECUTED"));
    assert_eq!(
        after.file(&statement("2")).await.is(StatusCode::OK).id(),
        waiting
    );
    assert_eq!(after.sidecar(), scene.sidecar());
    assert_eq!(
        after.claim_accepted(&flying).await.asked(),
        (false, "PROCESSING")
    );
    let settled = after.settle(&flying, "spent", Some(&flying_release)).await;
    assert_eq!(settled.is(StatusCode::OK).asked(), (false, "EXECUTED"));
    assert_eq!(
        after.claim_accepted(&returned).await.asked(),
        (true, "PROCESSING")
    );
    after
        .settle(&returned, "returned", Some(&returned_release))
        .await
        .conflicts("PROCESSING");
}

/// The other half of the test below, in a process of its own; without its variable it does nothing.
#[tokio::test]
async fn a_plane_that_dies_with_an_approval_in_flight() {
    let Some(dir) = std::env::var_os("PLANE_TO_DIE_IN") else {
        return;
    };
    let scene = Scene::at(dir.into(), Timestamp::from_unix_sec(1_700_000_000)).await;
    let id = scene.approved(&statement("1")).await;
    scene.claim_accepted(&id).await.is(StatusCode::OK);
    // Nothing is closed, flushed or dropped.
    std::process::abort();
}

#[tokio::test]
async fn an_approval_in_flight_survives_the_planes_death_and_ends_at_its_deadline() {
    let dir = std::env::temp_dir().join(format!("plane-{}", uuid::Uuid::new_v4().simple()));
    let test = "durability::a_plane_that_dies_with_an_approval_in_flight";
    let died = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test])
        .env("PLANE_TO_DIE_IN", &dir)
        .output()
        .expect("run");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&died.status),
        Some(6)
    );
    let scene = Scene::at(dir, Timestamp::from_unix_sec(1_700_000_000)).await;
    let filed = scene
        .file_accepted(&statement("1"))
        .await
        .is(StatusCode::OK);
    assert_eq!(filed.asked(), (false, "PROCESSING"));
    scene.clock.advance_sec(PROCESSING_TTL);
    let returned = scene.settle(&filed.id(), "returned", None).await;
    returned.conflicts("EXECUTED");
    scene.file(&statement("1")).await.is(StatusCode::CREATED);
}

#[tokio::test]
async fn a_lapsed_review_is_still_lapsed_after_a_restart() {
    let mut scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    scene.clock.advance_sec(1_000);
    scene.restart().await;
    assert_eq!(scene.claim(&id).await.asked(), (false, "EXPIRED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_planes_on_one_directory_release_once() {
    let scene = Scene::new().await;
    let other = Scene::at(scene.dir.clone(), scene.clock.now()).await;
    for n in 0..5 {
        let bytes = statement(&n.to_string());
        let id = scene.approved(&bytes).await;
        let (one, two, three, four) = tokio::join!(
            scene.claim(&id),
            other.claim_accepted(&id),
            other.file(&bytes),
            scene.file_accepted(&bytes)
        );
        let released = [one, two, three, four]
            .iter()
            .filter(|answer| answer.asked().0)
            .count();
        assert_eq!(released, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn planes_that_open_one_fresh_directory_at_once_all_open_and_share_its_tokens() {
    let scene = Scene::new().await;
    let dir = scene.dir.join("fresh");
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let (dir, clock) = (dir.clone(), scene.clock.clone());
            tokio::spawn(async move { open(&dir, clock).await })
        })
        .collect();
    let mut planes = Vec::new();
    for opened in opening {
        planes.push(opened.await.expect("every one opens"));
    }
    for plane in &planes {
        let tokens = |plane: &Plane| {
            let (sidecar, approver) = (plane.sidecar_token(), plane.approver_token());
            (sidecar.clone(), approver.clone())
        };
        assert_eq!(tokens(plane), tokens(&planes[0]));
        plane.close().await;
    }
}

#[tokio::test]
async fn a_plane_serves_on_a_socket_until_it_is_told_to_stop() {
    let scene = Scene::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let plane = scene.plane.clone();
    let serving = tokio::spawn(async move {
        plane
            .serve(listener, async {
                let _ = stopped.await;
            })
            .await
    });
    let mut client = TcpStream::connect(address).await.expect("connect");
    client
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: plane\r\nconnection: close\r\n\r\n")
        .await
        .expect("send");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("read");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("{\"status\":\"ok\"}"), "{answer}");
    // An idle connection does not keep it from stopping.
    let _idle = TcpStream::connect(address).await.expect("connect");
    stop.send(()).expect("serving");
    serving.await.expect("no panic").expect("a clean stop");
}

#[tokio::test]
async fn each_step_of_a_life_is_one_line_of_the_log() {
    let scene = Scene::new().await;
    let id = scene.approved(&statement("1")).await;
    scene.claim(&id).await.is(StatusCode::OK);
    scene.claim(&id).await.is(StatusCode::OK);
    let logged = String::from_utf8_lossy(&log().lock().expect("the log")).into_owned();
    let lines: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains(&id) && line.contains("INFO"))
        .collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for (line, status) in lines.iter().zip(["PENDING", "APPROVED", "EXECUTED"]) {
        assert!(
            line.contains(status)
                && line.contains("billing-api")
                && line.contains("billing-approvers"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_database_of_another_kind_is_refused_and_left_as_it_is() {
    let scene = Scene::new().await;
    let dir = scene.dir.join("other");
    fs::create_dir(&dir).expect("create");
    let path = dir.join("plane.sqlite3");
    fs::write(&path, [b'x'; 4_096]).expect("write");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("chmod");
    let config = PlaneConfig::parse(CONFIG, "plane.yaml").expect("a good configuration");
    let text = Plane::open(&dir, config)
        .await
        .expect_err("refused")
        .to_string();
    assert!(text.contains("cannot open the database"), "{text}");
    assert_eq!(fs::read(&path).expect("read"), [b'x'; 4_096]);
}
