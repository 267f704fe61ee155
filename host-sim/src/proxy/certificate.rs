//! What Envoy tells a filter of a certificate: its subject as a line of text, its first names, its digest.
//!
//! Pure: DER in, text out. Whether the certificate is to be trusted was judged before, by the TLS library.

use sha2::{Digest, Sha256};
use x509_parser::asn1_rs::{Any, Oid, Tag, ToDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use crate::stream::Certificate;

/// What is told of the certificate `der`. One that the parser does not take has a digest and no names.
pub(super) fn read(der: &[u8]) -> Certificate {
    let mut told = Certificate {
        sha256_digest: hex(&Sha256::digest(der), false),
        ..Certificate::default()
    };
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return told;
    };
    told.subject = subject_line(certificate.subject());
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|extension| extension.value.general_names.as_slice());
    let names = names.unwrap_or_default().iter();
    let is_uri = |name: &&GeneralName<'_>| matches!(name, GeneralName::URI(_));
    let is_dns = |name: &&GeneralName<'_>| matches!(name, GeneralName::DNSName(_));
    if let Some(GeneralName::URI(uri)) = names.clone().find(is_uri) {
        told.uri_san = (*uri).to_owned();
    }
    if let Some(GeneralName::DNSName(dns)) = names.clone().find(is_dns) {
        told.dns_san = (*dns).to_owned();
    }
    told
}

/// A name as RFC 2253 writes it, the last part first. A text that cannot be decoded ends the line.
///
/// Source: `X509_NAME_print_ex` of BoringSSL with `XN_FLAG_RFC2253`, and what Envoy 1.40 answered. It also turns round the values
/// of one part, and writes unknown types as numbers with their values in hexadecimal DER.
fn subject_line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for (number, part) in parts.iter().rev().enumerate() {
        let attributes: Vec<_> = part.iter().collect();
        for (position, attribute) in attributes.iter().rev().enumerate() {
            match (number, position) {
                (0, 0) => {}
                (_, 0) => line.push(','),
                _ => line.push('+'),
            }
            let oid = attribute.attr_type();
            let known = short_name(oid);
            line.push_str(&known.map_or_else(|| oid.to_id_string(), str::to_owned));
            line.push('=');
            let value = attribute.attr_value();
            let shown = match known {
                Some(_) => text(value).map(|characters| escaped(&characters)),
                None => Shown::Dumped,
            };
            match shown {
                Shown::Text(text) => line.push_str(&text),
                Shown::Dumped => line.push_str(&dumped(value)),
                Shown::Undecodable => return line,
            }
        }
    }
    line
}

/// How a value stands in the line.
enum Shown<T> {
    Text(T),
    Dumped,
    Undecodable,
}

impl Shown<Vec<char>> {
    fn map(self, change: impl FnOnce(Vec<char>) -> String) -> Shown<String> {
        match self {
            Shown::Text(characters) => Shown::Text(change(characters)),
            Shown::Dumped => Shown::Dumped,
            Shown::Undecodable => Shown::Undecodable,
        }
    }
}

/// The characters of a value, by its type. What is no text is dumped.
fn text(value: &Any<'_>) -> Shown<Vec<char>> {
    let bytes = value.data;
    let wide = |width: usize| {
        let whole = bytes.len().is_multiple_of(width);
        let numbers = bytes.chunks(width).map(|chunk| {
            let number = chunk
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            char::from_u32(number)
        });
        numbers.collect::<Option<Vec<char>>>().filter(|_| whole)
    };
    let characters = match value.tag() {
        Tag::Utf8String => std::str::from_utf8(bytes)
            .ok()
            .map(|text| text.chars().collect()),
        // Latin-1, whatever else these types may hold.
        Tag::NumericString
        | Tag::PrintableString
        | Tag::T61String
        | Tag::Ia5String
        | Tag::UtcTime
        | Tag::GeneralizedTime
        | Tag::VisibleString => Some(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => wide(2),
        Tag::UniversalString => wide(4),
        _ => return Shown::Dumped,
    };
    characters.map_or(Shown::Undecodable, Shown::Text)
}

/// A text whose characters with a meaning are escaped, and whose bytes outside of ASCII are hexadecimal.
fn escaped(characters: &[char]) -> String {
    let mut line = String::with_capacity(characters.len());
    let last = characters.len().saturating_sub(1);
    for (place, character) in characters.iter().enumerate() {
        let only_inside = match character {
            ' ' => place == 0 || place == last,
            '#' => place == 0,
            _ => false,
        };
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => line.extend(['\\', *character]),
            _ if only_inside => line.extend(['\\', *character]),
            ' '..='~' => line.push(*character),
            _ => {
                let mut buffer = [0; 4];
                for byte in character.encode_utf8(&mut buffer).bytes() {
                    line.push_str(&format!("\\{byte:02X}"));
                }
            }
        }
    }
    line
}

fn dumped(value: &Any<'_>) -> String {
    format!("#{}", hex(&value.to_der_vec().unwrap_or_default(), true))
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let digits = bytes.iter().map(|byte| match upper {
        true => format!("{byte:02X}"),
        false => format!("{byte:02x}"),
    });
    digits.collect()
}

/// BoringSSL's short name of a type.
fn short_name(oid: &Oid<'_>) -> Option<&'static str> {
    let oid = oid.to_id_string();
    let (arc, number) = oid.rsplit_once('.')?;
    let number: u32 = number.parse().ok()?;
    let (_, types) = SHORT_NAMES.iter().find(|(known, _)| *known == arc)?;
    let known = types.iter().find(|(known, _)| *known == number);
    known.map(|(_, name)| *name)
}

/// The types that subjects have, of those that BoringSSL knows by name: X.520, RFC 4524 with its forerunners, PKCS #9.
const SHORT_NAMES: [(&str, &[(u32, &str)]); 3] = [
    (
        "2.5.4",
        &[
            (3, "CN"),
            (4, "SN"),
            (5, "serialNumber"),
            (6, "C"),
            (7, "L"),
            (8, "ST"),
            (9, "street"),
            (10, "O"),
            (11, "OU"),
            (12, "title"),
            (13, "description"),
            (14, "searchGuide"),
            (15, "businessCategory"),
            (16, "postalAddress"),
            (17, "postalCode"),
            (18, "postOfficeBox"),
            (19, "physicalDeliveryOfficeName"),
            (20, "telephoneNumber"),
            (21, "telexNumber"),
            (22, "teletexTerminalIdentifier"),
            (23, "facsimileTelephoneNumber"),
            (24, "x121Address"),
            (25, "internationaliSDNNumber"),
            (26, "registeredAddress"),
            (27, "destinationIndicator"),
            (28, "preferredDeliveryMethod"),
            (29, "presentationAddress"),
            (30, "supportedApplicationContext"),
            (31, "member"),
            (32, "owner"),
            (33, "roleOccupant"),
            (34, "seeAlso"),
            (35, "userPassword"),
            (36, "userCertificate"),
            (37, "cACertificate"),
            (38, "authorityRevocationList"),
            (39, "certificateRevocationList"),
            (40, "crossCertificatePair"),
            (41, "name"),
            (42, "GN"),
            (43, "initials"),
            (44, "generationQualifier"),
            (45, "x500UniqueIdentifier"),
            (46, "dnQualifier"),
            (47, "enhancedSearchGuide"),
            (48, "protocolInformation"),
            (49, "distinguishedName"),
            (50, "uniqueMember"),
            (51, "houseIdentifier"),
            (52, "supportedAlgorithms"),
            (53, "deltaRevocationList"),
            (54, "dmdName"),
            (65, "pseudonym"),
            (72, "role"),
        ],
    ),
    (
        "0.9.2342.19200300.100.1",
        &[
            (1, "UID"),
            (2, "textEncodedORAddress"),
            (3, "mail"),
            (4, "info"),
            (5, "favouriteDrink"),
            (6, "roomNumber"),
            (7, "photo"),
            (8, "userClass"),
            (9, "host"),
            (10, "manager"),
            (11, "documentIdentifier"),
            (12, "documentTitle"),
            (13, "documentVersion"),
            (14, "documentAuthor"),
            (15, "documentLocation"),
            (20, "homeTelephoneNumber"),
            (21, "secretary"),
            (22, "otherMailbox"),
            (23, "lastModifiedTime"),
            (24, "lastModifiedBy"),
            (25, "DC"),
            (26, "aRecord"),
            (27, "pilotAttributeType27"),
            (28, "mXRecord"),
            (29, "nSRecord"),
            (30, "sOARecord"),
            (31, "cNAMERecord"),
            (37, "associatedDomain"),
            (38, "associatedName"),
            (39, "homePostalAddress"),
            (40, "personalTitle"),
            (41, "mobileTelephoneNumber"),
            (42, "pagerTelephoneNumber"),
            (43, "friendlyCountryName"),
            (45, "organizationalStatus"),
            (46, "janetMailbox"),
            (47, "mailPreferenceOption"),
            (48, "buildingName"),
            (49, "dSAQuality"),
            (50, "singleLevelQuality"),
            (51, "subtreeMinimumQuality"),
            (52, "subtreeMaximumQuality"),
            (53, "personalSignature"),
            (54, "dITRedirect"),
            (55, "audio"),
            (56, "documentPublisher"),
        ],
    ),
    (
        "1.2.840.113549.1.9",
        &[
            (1, "emailAddress"),
            (2, "unstructuredName"),
            (3, "contentType"),
            (4, "messageDigest"),
            (5, "signingTime"),
            (6, "countersignature"),
            (7, "challengePassword"),
            (8, "unstructuredAddress"),
            (9, "extendedCertificateAttributes"),
            (14, "extReq"),
            (15, "SMIME-CAPS"),
            (16, "SMIME"),
            (20, "friendlyName"),
            (21, "localKeyID"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(["gate.example".to_owned()]).expect("a name");
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, "J\u{fc}rgen, x");
        subject.push(DnType::CountryName, "DE");
        let made = params.self_signed(&KeyPair::generate().expect("a key"));
        made.expect("a certificate").der().to_vec()
    }

    #[test]
    fn a_certificate_is_told_as_envoy_does() {
        let told = read(&certificate());
        assert_eq!(told.subject, r"C=DE,CN=J\C3\BCrgen\, x");
        assert_eq!(
            (told.dns_san.as_str(), told.uri_san.as_str()),
            ("gate.example", "")
        );
        assert_eq!(told.sha256_digest.len(), 64);
    }

    #[test]
    fn what_is_no_certificate_has_a_digest_and_no_names() {
        let told = read(b"abc");
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(told.sha256_digest, digest);
        assert_eq!((told.subject, told.dns_san), (String::new(), String::new()));
    }

    proptest! {
        #[test]
        fn no_certificate_makes_a_line_with_bytes_outside_of_ascii(
            place in any::<prop::sample::Index>(),
            bytes in prop::collection::vec(any::<u8>(), 1..4),
        ) {
            let mut broken = certificate();
            let start = place.index(broken.len() - bytes.len());
            broken[start..start + bytes.len()].copy_from_slice(&bytes);
            let subject = read(&broken).subject;
            prop_assert!(subject.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{subject}");
        }
    }
}
