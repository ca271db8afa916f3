//! Certificates that are not believed: why, in words, and what makes one that is. What rustls says of it is for programmers.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, Error, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// The command that makes a certificate of one's own which is taken for a server's: what `openssl` makes by itself says that it
/// is an authority's.
pub const MADE_WITH: &str = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=HOST \
                             -addext subjectAltName=DNS:HOST -addext basicConstraints=critical,CA:FALSE";

/// Says what is wrong with a certificate; of anything else what it says itself.
pub(crate) fn in_words(error: io::Error) -> String {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let Some(Error::InvalidCertificate(fault)) = found else { return error.to_string() };
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired, or the clock here is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet, or the clock here is wrong".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for other names than the one it is reached by: subjectAltName lists them"
                .to_owned()
        }
        fault if is_of_an_authority(fault) => format!(
            "its certificate is an authority's own (CA:TRUE), which is taken for no server's: {MADE_WITH} makes one that is"
        ),
        fault => {
            let fault = format!("{fault:?}");
            let fault = fault.split([' ', '{', '(']).next().unwrap_or_default();
            format!(
                "its certificate is not trusted here ({fault}): an authority of your own stands among the system's, or \
                 in the file that SSL_CERT_FILE names to the daemon"
            )
        }
    }
}

/// Whether a certificate says that it is an authority's: nobody here takes such a one for a server's.
pub fn is_an_authority(certificate: &CertificateDer<'_>) -> bool {
    let mut roots = RootCertStore::empty();
    let _ = roots.add(certificate.clone().into_owned());
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let Ok(anyone) = ServerName::try_from("localhost") else { return false };
    // Whoever issued it, and for whatever name: that it is an authority's comes before both.
    match verifier.verify_server_cert(certificate, &[], &anyone, &[], UnixTime::now()) {
        Err(Error::InvalidCertificate(fault)) => is_of_an_authority(&fault),
        _ => false,
    }
}

/// Rustls has no word of its own for it.
fn is_of_an_authority(fault: &CertificateError) -> bool {
    matches!(fault, CertificateError::Other(_)) && format!("{fault:?}").contains("CaUsedAsEndEntity")
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn an_authority_is_told_from_a_server() {
        let pem = |pem: &[u8]| CertificateDer::from_pem_slice(pem).unwrap();
        assert!(is_an_authority(&pem(include_bytes!("../tests/gateway/tls/authority.pem"))));
        assert!(!is_an_authority(&pem(include_bytes!("../tests/gateway/tls/server.pem"))));
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let said =
            |fault| in_words(io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(fault)));
        assert!(
            said(CertificateError::UnknownIssuer).contains("not trusted here (UnknownIssuer): an authority")
        );
        assert!(said(CertificateError::Expired).contains("has expired"));
        assert!(said(CertificateError::NotValidForName).contains("subjectAltName"));
        assert_eq!(in_words(io::Error::other("gone")), "gone");
    }
}
