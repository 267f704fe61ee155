//! Owns the cases of the token files and of what the database knows of them; the scene carries them out. They must
//! not know the plane's insides.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use axum::{
    body::Body,
    http::{Method, StatusCode},
};
use host_sim_plane::{OpenError, Plane, PlaneConfig, TokenError, TokenKind, tokens};

use crate::scene::{CONFIG, Scene, statement};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o7777
}

async fn reopen(dir: &Path) -> Result<Plane, OpenError> {
    let config = PlaneConfig::parse(CONFIG, "plane.yaml").expect("a good configuration");
    Plane::open(dir, config).await
}

#[tokio::test]
async fn everything_a_plane_writes_is_its_owners_alone() {
    let scene = Scene::new().await;
    scene.file(&statement("1")).await.is(StatusCode::CREATED);
    assert_eq!(mode(&scene.dir), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&scene.dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
        );
    }
    names.sort();
    assert_eq!(
        names,
        [
            "approver-token",
            "plane.lock",
            "plane.sqlite3",
            "plane.sqlite3-shm",
            "plane.sqlite3-wal",
            "sidecar-token"
        ]
    );
}

#[tokio::test]
async fn the_database_holds_hashes_and_no_token() {
    let scene = Scene::new().await;
    scene.approved(&statement("1")).await;
    for name in ["plane.sqlite3", "plane.sqlite3-wal"] {
        let bytes = fs::read(scene.dir.join(name)).expect("a file");
        for token in [scene.plane.sidecar_token(), scene.plane.approver_token()] {
            let body = &token.expose().as_bytes()[4..];
            assert!(
                !bytes.windows(body.len()).any(|window| window == body),
                "{name} holds a token"
            );
        }
    }
}

#[tokio::test]
async fn the_command_line_reads_the_tokens_that_the_plane_uses() {
    let scene = Scene::new().await;
    let sidecar = tokens::read(&scene.dir, TokenKind::Sidecar).expect("a token");
    let approver = tokens::read(&scene.dir, TokenKind::Approver).expect("a token");
    assert_eq!(sidecar.expose(), scene.plane.sidecar_token().expose());
    assert_eq!(approver.expose(), scene.plane.approver_token().expose());
    assert_eq!(
        format!("{sidecar:?} {approver} {:?}", scene.plane),
        "[redacted] [redacted] Plane { .. }"
    );
}

#[tokio::test]
async fn a_deleted_token_is_replaced_and_opens_nothing_any_more() {
    let mut scene = Scene::new().await;
    let id = scene.file(&statement("1")).await.id();
    let old = scene.sidecar();
    let approver = scene.approver();
    fs::remove_file(scene.dir.join("sidecar-token")).expect("remove");
    scene.restart().await;
    assert_ne!(scene.sidecar(), old);
    assert_eq!(scene.approver(), approver);
    scene
        .send(Method::GET, "/api/sidecars/reviews", &[old], Body::empty())
        .await
        .says(StatusCode::UNAUTHORIZED, "access denied");
    assert_eq!(
        scene.read(&id).await.is(StatusCode::OK).status_word(),
        "PENDING"
    );
}

#[tokio::test]
async fn a_sidecar_keeps_its_id_when_its_token_is_replaced() {
    let mut scene = Scene::new().await;
    let before = scene.file(&statement("1")).await.json["review"]["sidecar_id"].clone();
    fs::remove_file(scene.dir.join("sidecar-token")).expect("remove");
    scene.restart().await;
    assert_eq!(
        scene.file(&statement("1")).await.json["review"]["sidecar_id"],
        before
    );
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_refused_with_the_remedy() {
    let scene = Scene::new().await;
    let path = scene.dir.join("approver-token");
    for bits in [0o644, 0o640, 0o602, 0o610] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).expect("chmod");
        let refused = reopen(&scene.dir).await.expect_err("refused");
        assert!(matches!(
            refused,
            OpenError::Token(TokenError::OpenToOthers { .. })
        ));
        let text = refused.to_string();
        assert!(text.contains(&format!("has mode 0{bits:o}")), "{text}");
        assert!(
            text.contains(&format!("hint: run `chmod 600 {}`", path.display())),
            "{text}"
        );
        assert!(tokens::read(&scene.dir, TokenKind::Approver).is_err());
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    assert!(reopen(&scene.dir).await.is_ok());
}

#[tokio::test]
async fn a_file_that_holds_no_token_is_refused_and_left_as_it_is() {
    let scene = Scene::new().await;
    let path = scene.dir.join("sidecar-token");
    for content in [
        &b""[..],
        b"hsc_",
        b"hap_0123456789abcdef0123456789abcdef",
        b"\xff\xfe",
        &[b'a'; 4_096],
    ] {
        fs::write(&path, content).expect("write");
        let refused = reopen(&scene.dir).await.expect_err("refused");
        assert!(
            matches!(refused, OpenError::Token(TokenError::Malformed { .. })),
            "{refused}"
        );
        assert_eq!(fs::read(&path).expect("read"), content);
    }
}

#[tokio::test]
async fn a_database_that_others_can_read_is_refused_with_the_remedy() {
    let scene = Scene::new().await;
    let path = scene.dir.join("plane.sqlite3");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod");
    let text = reopen(&scene.dir).await.expect_err("refused").to_string();
    assert!(
        text.contains("has mode 0644") && text.contains("hint: run `chmod 600"),
        "{text}"
    );
}

#[tokio::test]
async fn a_missing_token_names_the_file_and_the_remedy() {
    let scene = Scene::new().await;
    let text = tokens::read(&scene.dir.join("absent"), TokenKind::Sidecar)
        .expect_err("missing")
        .to_string();
    assert!(
        text.contains("sidecar-token does not exist\nhint: start the plane"),
        "{text}"
    );
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let scene = Scene::new().await;
    let text = reopen(&scene.dir.join("sidecar-token/data"))
        .await
        .expect_err("refused")
        .to_string();
    assert!(text.contains("sidecar-token/data"), "{text}");
}

#[tokio::test]
async fn a_link_to_nowhere_is_replaced_by_a_token_and_its_target_is_not_made() {
    let mut scene = Scene::new().await;
    let path = scene.dir.join("sidecar-token");
    fs::remove_file(&path).expect("remove");
    symlink(scene.dir.join("elsewhere"), &path).expect("link");
    scene.restart().await;
    assert!(!scene.dir.join("elsewhere").exists());
    assert!(fs::symlink_metadata(&path).expect("metadata").is_file());
}
