//! `envoy.config.core.v3.TransportSocket`: TLS towards clients and towards servers.

use host_sim::proxy::{ListenerTls, UpstreamTls};

use super::node::{Message, Node};
use super::refusal::Refusal;

/// TLS towards clients. They are asked for a certificate exactly when the file names who may have issued it.
pub(super) fn downstream(node: &Node<'_>) -> Result<ListenerTls, Refusal> {
    let mut context = context(node, DOWNSTREAM)?;
    let pointer = context.pointer().to_owned();
    let required = context.flag("require_client_certificate")?;
    let mut common = context.required("common_tls_context")?.message()?;
    context.end()?;
    let mut certificate = common
        .required("tls_certificates")?
        .only("certificate")?
        .message()?;
    let certificate_chain_pem = data_source(&certificate.required("certificate_chain")?)?;
    let private_key_pem = data_source(&certificate.required("private_key")?)?;
    certificate.end()?;
    common.read("alpn_protocols", |node| {
        node.must_be(
            &serde_json::json!(["h2", "http/1.1"]),
            "name both, in this order, or leave it out",
        )
    })?;
    let client_ca_pem = authorities(&mut common)?;
    common.end()?;
    if required != client_ca_pem.is_some() {
        return Err(Refusal::new(
            &format!("{pointer}/require_client_certificate"),
            required.to_string(),
            "`true` together with `validation_context`, or none of the two",
            "ask for client certificates with both, or leave both out",
        ));
    }
    Ok(ListenerTls {
        certificate_chain_pem,
        private_key_pem,
        client_ca_pem,
    })
}

/// TLS towards the servers of a cluster.
pub(super) fn upstream(node: &Node<'_>) -> Result<UpstreamTls, Refusal> {
    let mut context = context(node, UPSTREAM)?;
    let sni = context.text("sni")?;
    let mut ca_pem = None;
    if let Some(common) = context.optional("common_tls_context") {
        let mut common = common.message()?;
        ca_pem = authorities(&mut common)?;
        common.end()?;
    }
    context.end()?;
    Ok(UpstreamTls {
        ca_pem,
        sni: Some(sni).filter(|sni| !sni.is_empty()),
    })
}

fn context<'d>(node: &Node<'d>, kind: &'static str) -> Result<Message<'d>, Refusal> {
    let mut socket = node.message()?;
    socket.text("name")?;
    let (_, context) = socket.required("typed_config")?.any(&[kind])?;
    socket.end()?;
    Ok(context)
}

fn authorities(common: &mut Message<'_>) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(validation) = common.optional("validation_context") else {
        return Ok(None);
    };
    let mut validation = validation.message()?;
    let authorities = data_source(&validation.required("trusted_ca")?)?;
    validation.end()?;
    Ok(Some(authorities))
}

/// `envoy.config.core.v3.DataSource`, read.
pub(super) fn data_source(node: &Node<'_>) -> Result<Vec<u8>, Refusal> {
    let mut source = node.message()?;
    let (kind, value) = source.one_of(&["filename", "inline_bytes", "inline_string"])?;
    source.end()?;
    match kind {
        "filename" => std::fs::read(value.text()?).map_err(|error| {
            let found = format!(
                "{:?}, which cannot be read ({error})",
                value.text().unwrap_or_default()
            );
            Refusal::new(
                value.pointer(),
                found,
                "a file that this process can read",
                "check the path and its mode",
            )
        }),
        "inline_bytes" => value.base64(),
        _ => Ok(value.text()?.as_bytes().to_vec()),
    }
}

const DOWNSTREAM: &str = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";
const UPSTREAM: &str = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
