//! Owns what goes over the wire besides the messages: compression, bounds, reflection, descriptors.

use std::collections::BTreeSet;

use host_sim_ledger::{
    DESCRIPTORS, Ending, Ledger, Method, SERVICE,
    proto::{PostRequest, ledger_client::LedgerClient},
    tonic::{
        Code, Request, Status,
        client::Grpc,
        codec::CompressionEncoding::{self, Deflate, Gzip},
        codegen::http::uri::PathAndQuery,
        transport::{Channel, Endpoint},
    },
};
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::{v1, v1alpha};

use crate::served::{Served, rent, soon};

#[tokio::test]
async fn messages_may_be_compressed_both_ways() {
    for (encoding, name) in [(Gzip, "gzip"), (Deflate, "deflate")] {
        let served = Served::new().await;
        let mut client = compressing(&served, encoding).await;
        let answer = client.post(long()).await.expect("booked");
        assert_eq!(
            answer.metadata().get("grpc-encoding").expect("compressed"),
            name
        );
        assert_eq!(
            answer.into_inner().posting.expect("a posting").memo,
            long().memo
        );
        let call = served.ledger.calls().remove(0);
        assert_eq!(call.header("grpc-encoding"), Some(name));
    }
}

#[tokio::test]
async fn an_answer_is_plain_for_a_client_that_offers_nothing() {
    let served = Served::new().await;
    let answer = served.client().await.post(rent()).await.expect("booked");
    assert!(answer.metadata().get("grpc-encoding").is_none());
}

#[tokio::test]
async fn a_message_over_the_bound_is_refused_and_counted_as_a_call_only() {
    let served = Served::of(Ledger::new().with_max_message_bytes(100)).await;
    let mut client = served.client().await;
    let status = client.post(long()).await.expect_err("too long");
    assert_eq!(status.code(), Code::OutOfRange);
    assert_eq!(served.ledger.call_count(Method::Post), 1);
    assert_eq!(served.ledger.message_count(Method::Post), 0);
    client.post(rent()).await.expect("a short one is fine");
}

#[tokio::test]
async fn a_message_that_grows_over_the_bound_is_refused() {
    let served = Served::of(Ledger::new().with_max_message_bytes(100)).await;
    let mut client = compressing(&served, Gzip).await;
    let status = client
        .post(long())
        .await
        .expect_err("too long once unpacked");
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_method_that_is_not_there_is_recorded_and_unimplemented() {
    let served = Served::new().await;
    let channel = channel(&served).await;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.expect("a connection");
    let codec = ProstCodec::<PostRequest, PostRequest>::default();
    let path = PathAndQuery::from_static("/ledger.v1.Ledger/Erase");
    let request = Request::new(rent());
    let status = grpc
        .unary(request, path, codec)
        .await
        .expect_err("no method");
    assert_eq!(status.code(), Code::Unimplemented);
    let call = served.ledger.calls().remove(0);
    assert_eq!(call.path, "/ledger.v1.Ledger/Erase");
    assert_eq!(call.method, None);
    assert_eq!(call.ending, Ending::Answered(Code::Unimplemented));
}

#[tokio::test]
async fn reflection_v1_tells_the_service_and_its_files() {
    use v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let served = Served::new().await;
    let mut client = ServerReflectionClient::new(channel(&served).await);
    let ask = |request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let asked = tokio_stream::iter(vec![
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(SERVICE.to_owned())),
    ]);
    let mut answers = client
        .server_reflection_info(asked)
        .await
        .expect("a stream")
        .into_inner();
    let mut next = async || -> Result<Option<MessageResponse>, Status> {
        let answer = soon(answers.message()).await?;
        Ok(answer.and_then(|answer| answer.message_response))
    };
    let Ok(Some(MessageResponse::ListServicesResponse(list))) = next().await else {
        panic!("no list of services");
    };
    let names: BTreeSet<_> = list.service.into_iter().map(|one| one.name).collect();
    assert_eq!(
        names,
        [SERVICE, "grpc.reflection.v1.ServerReflection"]
            .map(str::to_owned)
            .into()
    );
    let Ok(Some(MessageResponse::FileDescriptorResponse(files))) = next().await else {
        panic!("no file");
    };
    let file = FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice());
    assert_eq!(file.expect("a descriptor").package(), "ledger.v1");
}

#[tokio::test]
async fn reflection_v1alpha_tells_the_service() {
    use v1alpha::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let served = Served::new().await;
    let mut client = ServerReflectionClient::new(channel(&served).await);
    let asked = tokio_stream::iter(vec![ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    }]);
    let mut answers = client
        .server_reflection_info(asked)
        .await
        .expect("a stream")
        .into_inner();
    let answer = soon(answers.message())
        .await
        .expect("no status")
        .expect("an answer");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("no list of services");
    };
    assert!(list.service.iter().any(|service| service.name == SERVICE));
}

#[test]
fn the_descriptors_stand_alone() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("a descriptor set");
    let names: Vec<_> = set.file.iter().map(FileDescriptorProto::name).collect();
    assert_eq!(
        names,
        ["google/protobuf/timestamp.proto", "ledger/v1/ledger.proto"]
    );
    let service = &set.file[1].service[0];
    let methods: BTreeSet<_> = service
        .method
        .iter()
        .map(|method| format!("/ledger.v1.{}/{}", service.name(), method.name()))
        .collect();
    assert_eq!(
        methods,
        Method::ALL.map(|method| method.path().to_owned()).into()
    );
}

async fn channel(served: &Served) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", served.address));
    endpoint
        .expect("a url")
        .connect()
        .await
        .expect("a connection")
}

async fn compressing(served: &Served, encoding: CompressionEncoding) -> LedgerClient<Channel> {
    LedgerClient::new(channel(served).await)
        .send_compressed(encoding)
        .accept_compressed(encoding)
}

/// Longer than 100 bytes, and shorter when compressed.
fn long() -> PostRequest {
    PostRequest {
        memo: "m".repeat(200),
        ..rent()
    }
}
