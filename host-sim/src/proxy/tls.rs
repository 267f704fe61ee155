//! TLS on both sides, with the `ring` provider and the protocols that ALPN offers.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::certificate;
use super::settings::{ListenerTls, UpstreamProtocol, UpstreamTls};
use crate::stream::Certificate;

/// What is wrong with certificates or keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// A PEM text holds no certificate, or not a valid one.
    #[error("{place} holds no valid certificate in PEM form")]
    NoCertificate {
        /// Which text.
        place: &'static str,
    },
    /// The PEM text of the key holds none.
    #[error("the private key of the listener is no valid key in PEM form")]
    NoKey,
    /// Key and certificate do not fit, or the like.
    #[error("the TLS settings cannot be used")]
    Unusable(#[from] Error),
}

/// Shakes hands with clients.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) tls: TlsAcceptor,
    /// The listener's own certificate.
    pub(super) own: Certificate,
}

pub(super) fn acceptor(tls: &ListenerTls) -> Result<Acceptor, TlsFault> {
    let chain = certificates(
        &tls.certificate_chain_pem,
        "the certificate chain of the listener",
    )?;
    let key = PrivateKeyDer::from_pem_slice(&tls.private_key_pem).map_err(|_| TlsFault::NoKey)?;
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = match &tls.client_ca_pem {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let place = "the client CA of the listener";
            let roots = roots(pem, place)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            builder
                .with_client_cert_verifier(verifier.map_err(|_| TlsFault::NoCertificate { place })?)
        }
    };
    let own = chain.first().map(|own| certificate::read(own));
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Acceptor {
        tls: TlsAcceptor::from(Arc::new(config)),
        own: own.unwrap_or_default(),
    })
}

pub(super) fn connector(
    tls: &UpstreamTls,
    protocol: UpstreamProtocol,
) -> Result<TlsConnector, TlsFault> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let mut config = match &tls.ca_pem {
        Some(pem) => builder
            .with_root_certificates(roots(pem, "the CA of the cluster")?)
            .with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider())))
            .with_no_client_auth(),
    };
    config.alpn_protocols = match protocol {
        UpstreamProtocol::Http1 => vec![HTTP1.to_vec()],
        UpstreamProtocol::Http2 => vec![HTTP2.to_vec()],
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &[u8], place: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or(TlsFault::NoCertificate { place })
}

fn roots(pem: &[u8], place: &'static str) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, place)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Takes every certificate, as Envoy does for a cluster without a validation context. A wrong yes lets anyone in the middle read
/// the traffic: the operator chose that by naming no CA.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";
