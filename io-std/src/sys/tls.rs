//! Trust: the roots compiled in, those of the system (`SSL_CERT_FILE` and `SSL_CERT_DIR` in their place), and those of
//! `NODE_EXTRA_CA_CERTS`. Nothing is set up before the first encrypted connection, and files are read only when the
//! compiled roots do not know an issuer. Verification cannot be switched off.

use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tau_core::fault::{FaultKind, IoFault};

use super::env::var;

/// The settings of all encrypted connections.
///
/// # Errors
/// `Tls` when the crypto provider refuses its own defaults.
pub fn config() -> Result<Arc<ClientConfig>, IoFault> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG
        .get_or_init(|| build().map(Arc::new).map_err(|e| e.to_string()))
        .clone()
        .map_err(|why| IoFault::new(FaultKind::Tls, format!("TLS cannot be set up: {why}")))
}

fn build() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let builtin = verifier(roots, &provider).ok_or_else(|| Error::General("no compiled roots".to_owned()))?;
    let verifier = Roots { builtin, provider: Arc::clone(&provider), system: OnceLock::new() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Option<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().ok()
}

/// Asks the compiled roots first, and the files of this machine about issuers those do not know.
#[derive(Debug)]
struct Roots {
    builtin: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    system: OnceLock<Option<Arc<WebPkiServerVerifier>>>,
}

impl Roots {
    fn system(&self) -> Option<&Arc<WebPkiServerVerifier>> {
        self.system.get_or_init(|| verifier(system_roots(), &self.provider)).as_ref()
    }
}

/// Files that cannot be read or parsed add nothing; the certificate error that follows is reported.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = var("NODE_EXTRA_CA_CERTS").filter(|file| !file.is_empty())
        && let Ok(certificates) = CertificateDer::pem_file_iter(file)
    {
        roots.add_parsable_certificates(certificates.flatten());
    }
    roots
}

impl ServerCertVerifier for Roots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let ask = |verifier: &WebPkiServerVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        match ask(&self.builtin) {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => match self.system() {
                Some(system) => ask(system),
                None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            },
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.builtin.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.builtin.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.builtin.supported_verify_schemes()
    }
}

/// What went wrong with TLS, for people.
#[must_use]
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer => {
                let mut text = "its certificate was issued by an authority that is not trusted here; \
                    if it is your organisation's, set NODE_EXTRA_CA_CERTS or SSL_CERT_FILE to its certificate"
                    .to_owned();
                for trouble in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].into_iter().filter_map(useless) {
                    text.push_str("; ");
                    text.push_str(&trouble);
                }
                text
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; is the clock of this machine right?".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host".to_owned()
            }
            CertificateError::Revoked => "its certificate was revoked".to_owned(),
            other => format!("its certificate is not acceptable ({other})"),
        },
        other => other.to_string(),
    }
}

/// What is wrong with the file that a variable names.
fn useless(variable: &str) -> Option<String> {
    let file = var(variable).filter(|file| !file.is_empty())?;
    let found = CertificateDer::pem_file_iter(&file).map(|mut found| found.any(|one| one.is_ok()));
    let why = match found {
        Ok(true) => return None,
        Ok(false) => "holds no certificate",
        Err(_) => "cannot be read",
    };
    Some(format!("{variable} names {file}, which {why}"))
}

/// The SHA-256 of some bytes, by the provider of TLS.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256 as SUITE;
    SUITE.tls13().map(|suite| suite.common.hash_provider.hash(bytes).as_ref().to_vec()).unwrap_or_default()
}

/// Signs with a private RSA key, as a PEM file holds it: RSASSA-PKCS1-v1_5 with SHA-256, which JSON web tokens call
/// RS256. By the provider of TLS.
///
/// # Errors
/// When it is no such key; holds nothing of it.
pub fn rs256(pem: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "it is no private key in the form of a PEM file".to_owned())?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key)
        .map_err(|_| "it is damaged, or of a kind that is not supported".to_owned())?;
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).ok_or("it is no RSA key")?;
    signer.sign(bytes).map_err(|e| e.to_string())
}
