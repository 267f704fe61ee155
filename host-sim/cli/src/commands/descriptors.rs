//! `host-sim descriptors`: a descriptor set as the filter's configuration takes it. What the file says is checked, and nothing of
//! it is changed but that comments and places in sources, which no message needs, are left out.

mod bare;

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use prost_types::FileDescriptorSet;
use serde_json::json;

use crate::args::DescriptorsArguments;
use crate::failure::Failure;
use crate::output;

/// Prints the set.
pub(super) fn run(arguments: &DescriptorsArguments) -> Result<(), Failure> {
    let file = arguments.file.display();
    let refuse =
        |problem: Problem| Failure::user(format_args!("{file}: {problem}"), problem.hint());
    let bytes = std::fs::read(&arguments.file)
        .map_err(|error| refuse(Problem::Unreadable(error.to_string())))?;
    let (base64, summary) = prepare(&bytes).map_err(refuse)?;
    output::progress(format_args!("{file}: {summary}"));
    if arguments.json {
        output::data(json!({ "grpc": { "descriptors": base64 } }));
    } else {
        output::data(base64);
    }
    Ok(())
}

/// Why a file is no descriptor set that the filter takes.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
enum Problem {
    #[error("cannot read the descriptor set: {0}")]
    Unreadable(String),
    #[error("this is no serialized FileDescriptorSet: {0}")]
    NotASet(String),
    #[error("the descriptor set is empty")]
    Empty,
    #[error("imports are missing in the descriptor set: {0}")]
    ImportsMissing(String),
    #[error("the descriptor set has {0} bytes in base64, allowed are {MOST_BASE64}")]
    TooLarge(usize),
}

impl Problem {
    fn hint(&self) -> &'static str {
        match self {
            Problem::Unreadable(_) => "check the path",
            Problem::NotASet(_) | Problem::Empty | Problem::ImportsMissing(_) => {
                "make the file with `protoc --include_imports --descriptor_set_out=FILE` and the .proto files behind it, or \
                 with `buf build -o FILE.binpb`"
            }
            Problem::TooLarge(_) => {
                "give `protoc` only the .proto files of the services that the rules name"
            }
        }
    }
}

/// The set in base64, and what is in it in words.
fn prepare(bytes: &[u8]) -> Result<(String, String), Problem> {
    let set =
        FileDescriptorSet::decode(bytes).map_err(|error| Problem::NotASet(error.to_string()))?;
    if set.file.is_empty() {
        return Err(Problem::Empty);
    }
    check_imports(&set)?;
    let bare = bare::without_sources(bytes)
        .ok_or_else(|| Problem::NotASet("its wire format is broken".to_owned()))?;
    let base64 = STANDARD.encode(bare);
    if base64.len() > MOST_BASE64 {
        return Err(Problem::TooLarge(base64.len()));
    }
    Ok((base64, summary(&set)))
}

fn check_imports(set: &FileDescriptorSet) -> Result<(), Problem> {
    let names: BTreeSet<&str> = set.file.iter().map(|file| file.name()).collect();
    let mut missing = Vec::new();
    for file in &set.file {
        for import in &file.dependency {
            if !names.contains(import.as_str()) {
                missing.push(format!("{import} (of {})", file.name()));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Problem::ImportsMissing(missing.join(", ")))
}

fn summary(set: &FileDescriptorSet) -> String {
    let services = set.file.iter().flat_map(|file| &file.service);
    let methods: usize = services.clone().map(|service| service.method.len()).sum();
    format!(
        "files: {}, services: {}, methods: {methods}",
        set.file.len(),
        services.count()
    )
}

/// What the filter takes (`filter/src/limits.rs`, `DESCRIPTORS_BYTES`).
const MOST_BASE64: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use host_sim_ledger::DESCRIPTORS;
    use prost_types::{FileDescriptorProto, SourceCodeInfo, source_code_info::Location};

    use super::*;

    fn set() -> FileDescriptorSet {
        FileDescriptorSet::decode(DESCRIPTORS).expect("a set")
    }

    fn problem(set: &FileDescriptorSet) -> String {
        prepare(&set.encode_to_vec())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn a_set_without_comments_stays_byte_for_byte() {
        let (base64, summary) = prepare(DESCRIPTORS).expect("accepted");
        assert_eq!(STANDARD.decode(base64).expect("base64"), DESCRIPTORS);
        assert_eq!(summary, "files: 2, services: 1, methods: 5");
    }

    #[test]
    fn comments_and_places_in_sources_are_left_out() {
        let mut commented = set();
        for file in &mut commented.file {
            let location = Location {
                leading_comments: Some("a comment".to_owned()),
                ..Location::default()
            };
            file.source_code_info = Some(SourceCodeInfo {
                location: vec![location],
            });
        }
        let (base64, _) = prepare(&commented.encode_to_vec()).expect("accepted");
        assert_eq!(
            FileDescriptorSet::decode(STANDARD.decode(base64).expect("base64").as_slice()),
            Ok(set())
        );
    }

    #[test]
    fn err_import_outside() {
        let mut without = set();
        without.file.remove(0);
        assert_eq!(
            problem(&without),
            "imports are missing in the descriptor set: google/protobuf/timestamp.proto (of ledger/v1/ledger.proto)"
        );
    }

    #[test]
    fn err_empty() {
        assert_eq!(
            problem(&FileDescriptorSet::default()),
            "the descriptor set is empty"
        );
    }

    #[test]
    fn err_no_set() {
        let one = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            ..FileDescriptorProto::default()
        };
        for bytes in [
            b"syntax = \"proto3\";\n".to_vec(),
            one.encode_to_vec(),
            DESCRIPTORS[..99].to_vec(),
        ] {
            let problem = prepare(&bytes).expect_err("refused").to_string();
            assert!(
                problem.starts_with("this is no serialized FileDescriptorSet: "),
                "{problem}"
            );
        }
    }

    #[test]
    fn err_too_large() {
        let mut large = set();
        large.file.push(FileDescriptorProto {
            name: Some("x".repeat(MOST_BASE64)),
            ..FileDescriptorProto::default()
        });
        let problem = problem(&large);
        assert!(problem.ends_with("allowed are 4000000"), "{problem}");
    }

    #[test]
    fn err_no_file() {
        let failure = run(&DescriptorsArguments {
            file: "/nowhere/a.binpb".into(),
            json: false,
        });
        assert_eq!(
            failure.expect_err("refused").to_string(),
            "/nowhere/a.binpb: cannot read the descriptor set: No such file or directory (os error 2); hint: check the path"
        );
    }
}
