//! Descriptor sets: what is read of them, and how each kind of broken one is refused.

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};

use super::super::message_text;
use super::*;

fn compiled(file: &str) -> FileDescriptorSet {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc");
    protox::compile([file], [folder]).expect("compiles")
}

fn parse(files: Vec<FileDescriptorProto>) -> Result<Descriptors, DescriptorError> {
    Descriptors::parse(&FileDescriptorSet { file: files }.encode_to_vec())
}

fn refused(files: Vec<FileDescriptorProto>, text: &str) {
    assert_eq!(parse(files).expect_err(text).to_string(), text);
}

fn message(name: &str, fields: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field: fields,
        ..Default::default()
    }
}

fn field(name: &str, number: i32, type_code: i32) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        r#type: Some(type_code),
        label: Some(1),
        ..Default::default()
    }
}

fn file(messages: Vec<DescriptorProto>) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some("a.proto".to_owned()),
        package: Some("p".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: messages,
        ..Default::default()
    }
}

#[test]
fn methods_are_found_by_their_paths() {
    let descriptors = Descriptors::parse(&compiled("proto3.proto").encode_to_vec()).unwrap();
    let paths: Vec<&str> = descriptors.method_paths().collect();

    assert_eq!(
        paths,
        [
            "/test.v3.Everything/Download",
            "/test.v3.Everything/Talk",
            "/test.v3.Everything/Unary",
            "/test.v3.Everything/Upload"
        ]
    );
    for (path, input, output, client_streaming, server_streaming) in [
        ("Download", "test.v3.Scalars", "test.v3.Tree", false, true),
        ("Talk", "test.v3.Tree", "test.v3.Tree", true, true),
        (
            "Unary",
            "test.v3.Tree",
            "google.protobuf.Empty",
            false,
            false,
        ),
        ("Upload", "test.v3.Lists", "test.v3.Maps", true, false),
    ] {
        let path = format!("/test.v3.Everything/{path}");
        let found = descriptors
            .method(&Method::parse(path.as_bytes()).unwrap())
            .expect("a method");

        assert_eq!(found.input.full_name(), input);
        assert_eq!(found.output.full_name(), output);
        assert_eq!(found.client_streaming, client_streaming);
        assert_eq!(found.server_streaming, server_streaming);
    }
    assert!(
        descriptors
            .method(&Method::parse(b"/test.v3.Everything/unary").unwrap())
            .is_none()
    );
    assert!(descriptors.message("test.v3.Color").is_none());
    assert!(descriptors.message(".test.v3.Tree").is_none());
}

#[test]
fn every_set_that_is_refused_says_why() {
    let hint = "make the set with protoc --include_imports --descriptor_set_out=FILE";
    refused(
        vec![],
        &format!("the descriptor set is empty; hint: {hint}"),
    );
    assert_eq!(
        Descriptors::parse(b"syntax = \"proto3\";")
            .unwrap_err()
            .to_string(),
        format!("this is no serialized FileDescriptorSet; hint: {hint}")
    );

    let mut imports = compiled("proto3.proto").file;
    imports.retain(|file| file.name().starts_with("proto3"));
    refused(
        imports,
        &format!(
            "proto3.proto: the type `google.protobuf.NullValue` is not in the descriptor set; hint: {hint}"
        ),
    );

    let twice = file(vec![message("M", vec![]), message("M", vec![])]);
    refused(
        vec![twice],
        "a.proto: `p.M` is defined twice; hint: leave one of the two out of the set",
    );

    let mut mixed = file(vec![message("M", vec![])]);
    mixed.enum_type.push(EnumDescriptorProto {
        name: Some("M".to_owned()),
        ..Default::default()
    });
    assert!(matches!(
        parse(vec![mixed]),
        Err(DescriptorError::DefinedTwice { .. })
    ));

    let next = FileDescriptorProto {
        syntax: Some("proto4".to_owned()),
        ..file(vec![])
    };
    refused(
        vec![next],
        "a.proto: edition proto4 is not known here; hint: use edition 2024, 2023 or a proto2 or proto3 syntax",
    );

    for fields in [
        vec![field("x", 0, 5)],
        vec![field("x", 1 << 29, 5)],
        vec![field("x", -1, 5)],
        vec![field("x", 1, 99)],
        vec![field("x", 1, 11)],
        vec![field("y", 1, 5), field("x", 1, 5)],
    ] {
        refused(
            vec![file(vec![message("M", fields)])],
            &format!("a.proto: the field `x` of `p.M` is invalid or stands twice; hint: {hint}"),
        );
    }

    let wrong_kind = FieldDescriptorProto {
        type_name: Some(".p.M".to_owned()),
        ..field("x", 1, 14)
    };
    assert!(matches!(
        parse(vec![file(vec![message("M", vec![wrong_kind])])]),
        Err(DescriptorError::InvalidField { .. })
    ));

    let mut service = file(vec![message("M", vec![])]);
    service.service.push(ServiceDescriptorProto {
        name: Some("S".to_owned()),
        method: vec![MethodDescriptorProto {
            name: Some("Call".to_owned()),
            input_type: Some(".p.M".to_owned()),
            output_type: Some(".p.Missing".to_owned()),
            ..Default::default()
        }],
        ..Default::default()
    });
    refused(
        vec![service],
        &format!("a.proto: the type `p.Missing` is not in the descriptor set; hint: {hint}"),
    );
}

#[test]
fn an_edition_of_the_future_is_refused() {
    let edition = |edition: &[u8]| {
        let syntax = FileDescriptorProto {
            syntax: Some("editions".to_owned()),
            ..file(vec![message("M", vec![])])
        };
        let mut bytes = syntax.encode_to_vec();
        bytes.push(0x70);
        bytes.extend(edition);
        let mut set = vec![0x0a, u8::try_from(bytes.len()).unwrap()];
        set.extend(bytes);
        Descriptors::parse(&set)
    };

    assert!(edition(b"\xe8\x07").is_ok(), "2023");
    assert!(edition(b"\xe9\x07").is_ok(), "2024");
    assert_eq!(
        edition(b"\xea\x07").unwrap_err().to_string(),
        "a.proto: edition 1002 is not known here; hint: use edition 2024, 2023 or a proto2 or proto3 syntax"
    );
}

#[test]
fn fields_that_share_a_json_name_go_by_their_own_and_are_bound() {
    let named = |name: &str, number| FieldDescriptorProto {
        json_name: Some("same".to_owned()),
        ..field(name, number, 5)
    };
    let set = vec![file(vec![message(
        "M",
        vec![named("a_b", 1), named("c", 2), field("d_e", 3, 5)],
    )])];
    let descriptors = parse(set).unwrap();

    let text = message_text(b"\x08\x01\x10\x02\x18\x03", descriptors.message("p.M"), 999).unwrap();

    assert!(!text.is_exact);
    assert!(
        text.text
            .starts_with("{\n  \"a_b\": 1,\n  \"c\": 2,\n  \"dE\": 3\n}\nsha256:"),
        "{}",
        text.text
    );
}

/// The set is one of protoc's own, since the compiler of the other tests knows no editions.
#[test]
fn features_of_editions_decide_presence_packing_and_groups() {
    let set = include_bytes!("../../../tests/grpc/editions.binpb");
    let descriptors = Descriptors::parse(set).unwrap();
    let descriptor = descriptors.message("test.editions.Message");
    for (message, members, is_exact) in [
        (&b"\x08\x00"[..], "\"explicit\": 0", true),
        (b"\x10\x01", "\"implicit\": 1", true),
        (b"\x18\x00", "\"required\": 0", true),
        (b"\x20\x01", "\"expanded\": [\n    1\n  ]", true),
        (b"\x22\x01\x01", "\"expanded\": [\n    1\n  ]", false),
        (b"\x2a\x01\x01", "\"packed\": [\n    1\n  ]", true),
        (b"\x28\x01", "\"packed\": [\n    1\n  ]", false),
        (
            b"\x33\x08\x01\x34",
            "\"delimited\": {\n    \"explicit\": 1\n  }",
            true,
        ),
        (
            b"\x3a\x02\x08\x01",
            "\"prefixed\": {\n    \"explicit\": 1\n  }",
            true,
        ),
        (
            b"\x42\x07\x0a\x01k\x12\x02\x08\x01",
            "\"byName\": {\n    \"k\": {\n      \"explicit\": 1\n    }\n  }",
            true,
        ),
        (b"\x4b\x4c", "\"list\": [\n    {}\n  ]", true),
        (b"\x50\x07", "\"open\": 7", true),
        (b"\x58\x07", "\"closed\": 7", false),
        (b"\x58\x01", "\"closed\": \"CLOSED_ONE\"", true),
        (b"\x60\x00", "\"number\": 0", true),
    ] {
        let text = message_text(message, descriptor, 999).unwrap();

        let json = format!("{{\n  {members}\n}}");
        assert_eq!(text.is_exact, is_exact, "{json}");
        assert!(text.text.starts_with(&json), "{} is not {json}", text.text);
    }
    let explicit_zero = message_text(b"\x10\x00", descriptor, 999).unwrap();
    assert!(explicit_zero.text.starts_with("{}\nsha256:"));
    // Bytes where the type has a group.
    let wrong = message_text(b"\x32\x02\x08\x01", descriptor, 999).unwrap();
    assert!(wrong.text.starts_with("6 {\n"));
}
