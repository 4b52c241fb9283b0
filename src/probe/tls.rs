//! Which servers the client trusts, and which version of HTTP it offers them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::failure::SetupError;

/// Whose certificates are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system trusts.
    System,
    /// These too.
    File(PathBuf),
    /// Anyone's.
    Anyone,
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// What TLS negotiates; HTTP/1.1 without TLS.
    Negotiated,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2,
}

/// The configuration of a client.
///
/// # Errors
/// A file of certificates that cannot be used.
pub fn config(trust: &Trust, version: HttpVersion) -> Result<ClientConfig, SetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::System => builder.with_root_certificates(system_roots()).with_no_client_auth(),
        Trust::File(path) => {
            let mut roots = system_roots();
            add_file(&mut roots, path)?;
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Anyone => {
            let verifier = Arc::new(Anyone(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    config.alpn_protocols = match version {
        HttpVersion::Negotiated => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersion::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
    };
    Ok(config)
}

/// Those that the system trusts; on a machine that has none, as in bare containers, Mozilla's.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), SetupError> {
    let wrong = |reason: String| SetupError::CaFile { path: path.to_owned(), reason };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let mut added = 0;
    for certificate in found {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        added += 1;
    }
    if added == 0 { Err(wrong("holds no certificate".to_owned())) } else { Ok(()) }
}

/// Takes any certificate, for `--insecure`; the handshake's signatures still have to be right.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
