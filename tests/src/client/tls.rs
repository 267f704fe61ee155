//! TLS towards the gate: a certificate that is made for one case, and clients that trust it and nothing else. With an
//! [`Authority`] the clients show certificates, too.

pub mod subject;

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, DistinguishedName, DnType,
    IsCa, KeyPair, SanType, SigningKey,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::h2::H2Connection;
use super::{Answers, Connection};

/// Who a gate says it is: the host name [`NAME`].
pub struct Identity(CertifiedKey<KeyPair>);

impl Identity {
    /// Makes a key and a certificate that vouches for itself.
    pub fn create() -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec![NAME.to_owned()])
            .and_then(|params| params.self_signed(&key));
        Identity(CertifiedKey {
            cert: certificate.expect("a certificate"),
            signing_key: key,
        })
    }

    /// The `transport_socket` of a filter chain that shows this certificate and offers both versions of HTTP.
    pub fn transport_socket(&self) -> Value {
        json!({
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": {
                    "alpn_protocols": ["h2", "http/1.1"],
                    "tls_certificates": [{
                        "certificate_chain": {"inline_string": self.0.cert.pem()},
                        "private_key": {"inline_string": self.0.signing_key.serialize_pem()},
                    }],
                },
            },
        })
    }

    /// [`Identity::transport_socket`] that wants certificates of clients which `authority` has issued.
    pub fn transport_socket_for_clients_of(&self, authority: &Authority) -> Value {
        let mut socket = self.transport_socket();
        let context = &mut socket["typed_config"];
        context["require_client_certificate"] = true.into();
        context["common_tls_context"]["validation_context"] =
            json!({"trusted_ca": {"inline_string": authority.0.pem()}});
        socket
    }

    /// Shakes hands with the gate at `address` and offers `protocols` in ALPN; none at all leaves ALPN out.
    pub async fn connect(&self, address: SocketAddr, protocols: &[&str]) -> TlsStream<TcpStream> {
        self.connect_as(None, address, protocols).await
    }

    async fn connect_as(
        &self,
        client: Option<&ClientCertificate>,
        address: SocketAddr,
        protocols: &[&str],
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.0.cert.der().clone())
            .expect("a certificate to trust");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider's versions")
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some(ClientCertificate { certificate, key }) => {
                let chain = vec![certificate.clone()];
                let key = PrivatePkcs8KeyDer::from(key.serialize_der());
                let config = config.with_client_auth_cert(chain, key.into());
                config.expect("a key that fits")
            }
        };
        config.alpn_protocols = protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        let name = ServerName::try_from(NAME).expect("a host name");
        let stream = TcpStream::connect(address)
            .await
            .expect("the gate's listener");
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.expect("a handshake")
    }

    /// A connection to the gate at `address` that speaks HTTP/1.1.
    pub async fn http1(&self, address: SocketAddr, answers: &Answers) -> Connection {
        let stream = self.connect(address, &["http/1.1"]).await;
        Connection::over(Box::new(stream), answers.clone())
    }

    /// A connection to the gate at `address` that speaks HTTP/1.1 and shows the certificate of `client`.
    pub async fn http1_as(
        &self,
        client: &ClientCertificate,
        address: SocketAddr,
        answers: &Answers,
    ) -> Connection {
        let stream = self.connect_as(Some(client), address, &["http/1.1"]).await;
        Connection::over(Box::new(stream), answers.clone())
    }

    /// A connection to the gate at `address` that speaks HTTP/2.
    pub async fn http2(&self, address: SocketAddr, answers: &Answers) -> H2Connection {
        let stream = self.connect(address, &["h2"]).await;
        H2Connection::over(Box::new(stream), "https", address, answers.clone()).await
    }
}

/// Who issues certificates to clients.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What a client shows.
pub struct ClientCertificate {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    /// Makes an authority that nobody else knows.
    pub fn create() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name = named("the authority of a case");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Issues a certificate to `common_name`, with a URI as its alternative name where one is given.
    pub fn issue(&self, common_name: &str, uri: Option<&str>) -> ClientCertificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(common_name);
        params.subject_alt_names = uri.into_iter().map(uri_name).collect();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0);
        let certificate = certificate.expect("a certificate").der().clone();
        ClientCertificate { certificate, key }
    }

    /// Issues a certificate to `subject`, which is DER, with these alternative names.
    pub fn issue_to(&self, subject: &[u8], alternative_names: &[SanType]) -> ClientCertificate {
        let mut params = CertificateParams::default();
        params.subject_alt_names = alternative_names.to_vec();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let sign = |bytes: &[u8]| self.0.key().sign(bytes).expect("a signature");
        let certificate = subject::with_subject(certificate.der(), subject, sign);
        ClientCertificate {
            certificate: certificate.into(),
            key,
        }
    }
}

/// A URI as an alternative name.
pub fn uri_name(uri: &str) -> SanType {
    SanType::URI(uri.try_into().expect("a URI in ASCII"))
}

/// A DNS name as an alternative name.
pub fn dns_name(name: &str) -> SanType {
    SanType::DnsName(name.try_into().expect("a name in ASCII"))
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// The version of HTTP that the gate has chosen.
pub fn protocol(stream: &TlsStream<TcpStream>) -> Option<String> {
    let (_, session) = stream.get_ref();
    let protocol = session.alpn_protocol()?;
    Some(String::from_utf8_lossy(protocol).into_owned())
}

/// The host name in the certificate.
pub const NAME: &str = "gate.example";
