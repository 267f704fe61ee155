//! Subjects of certificates as bytes, so that a case can name whom it likes: several values in one part, any type, any encoding.

/// One name of a subject.
pub struct Attribute<'a> {
    /// The type, as numbers with dots.
    pub oid: &'a str,
    /// The tag of the value: [`UTF8`] or another.
    pub tag: u8,
    /// The bytes of the value.
    pub value: &'a [u8],
}

/// A subject in DER. Each part holds one name or several.
pub fn subject(parts: &[Vec<Attribute<'_>>]) -> Vec<u8> {
    let parts = parts.iter().map(|part| {
        let mut names: Vec<Vec<u8>> = part.iter().map(attribute).collect();
        // DER sorts a set by its bytes.
        names.sort();
        tagged(SET, &names.concat())
    });
    tagged(SEQUENCE, &parts.collect::<Vec<_>>().concat())
}

fn attribute(attribute: &Attribute<'_>) -> Vec<u8> {
    let arcs = attribute.oid.split('.');
    let arcs: Vec<u64> = arcs.map(|arc| arc.parse().expect("a number")).collect();
    let [first, second, rest @ ..] = arcs.as_slice() else {
        panic!("{} has less than two numbers", attribute.oid);
    };
    let mut oid = base_128(first * 40 + second);
    oid.extend(rest.iter().flat_map(|arc| base_128(*arc)));
    let value = tagged(attribute.tag, attribute.value);
    tagged(SEQUENCE, &[tagged(OBJECT_IDENTIFIER, &oid), value].concat())
}

fn base_128(mut number: u64) -> Vec<u8> {
    let mut digits = vec![(number % 128) as u8];
    while number >= 128 {
        number /= 128;
        digits.push((number % 128) as u8 | 128);
    }
    digits.reverse();
    digits
}

/// `certificate` with another subject, signed anew.
pub(super) fn with_subject(
    certificate: &[u8],
    subject: &[u8],
    sign: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let [signed, algorithm, _signature] = children(certificate)
        .try_into()
        .expect("a certificate has three parts");
    // Version, serial number, algorithm, issuer, validity, then the subject.
    let mut fields = children(signed);
    fields[5] = subject;
    let signed = tagged(SEQUENCE, &fields.concat());
    let signature = [&[0], sign(&signed).as_slice()].concat();
    let signature = tagged(BITS, &signature);
    tagged(SEQUENCE, &[&signed, algorithm, &signature].concat())
}

/// The values within a value, each with its head.
fn children(value: &[u8]) -> Vec<&[u8]> {
    let mut rest = &value[head_size(value)..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (head, length) = (head_size(rest), length(rest));
        let (child, others) = rest.split_at(head + length);
        found.push(child);
        rest = others;
    }
    found
}

fn head_size(value: &[u8]) -> usize {
    match value[1] {
        0..128 => 2,
        long => 2 + usize::from(long - 128),
    }
}

fn length(value: &[u8]) -> usize {
    match value[1] {
        short @ 0..128 => usize::from(short),
        _ => {
            let digits = value[2..head_size(value)].iter();
            digits.fold(0, |sum, digit| sum << 8 | usize::from(*digit))
        }
    }
}

fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let head = match length {
        0..128 => vec![tag, length as u8],
        128..256 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [head, value.to_vec()].concat()
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 6;
/// `BIT STRING`
pub const BITS: u8 = 3;
/// `UTF8String`
pub const UTF8: u8 = 12;
/// `PrintableString`
pub const PRINTABLE: u8 = 19;
/// `TeletexString`, which is read as Latin-1.
pub const TELETEX: u8 = 20;
/// `IA5String`
pub const IA5: u8 = 22;
/// `UniversalString`
pub const UNIVERSAL: u8 = 28;
/// `BMPString`
pub const BMP: u8 = 30;
