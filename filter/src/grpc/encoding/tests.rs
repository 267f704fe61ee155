//! Compressed messages, whole and damaged, against the compressor of the same crate and hand-made gzip members.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
use proptest::prelude::*;

use super::*;

fn compressed(message: Vec<u8>) -> Frame {
    Frame {
        compressed: true,
        message,
        end: 0,
    }
}

/// A gzip member with these flags and optional fields.
fn member(flags: u8, fields: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 3];
    bytes.extend(fields);
    if flags & 2 != 0 {
        let [low, high, ..] = crc32(&bytes).to_le_bytes();
        bytes.extend([low, high]);
    }
    bytes.extend(compress_to_vec(message, 6));
    bytes.extend(crc32(message).to_le_bytes());
    bytes.extend(u32::try_from(message.len()).unwrap().to_le_bytes());
    bytes
}

#[test]
fn the_checksum_is_that_of_the_rfc() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32(b""), 0);
}

#[test]
fn the_header_is_compared_exactly() {
    assert_eq!(Encoding::parse(None), Ok(Encoding::Identity));
    assert_eq!(Encoding::parse(Some(b"identity")), Ok(Encoding::Identity));
    assert_eq!(Encoding::parse(Some(b"gzip")), Ok(Encoding::Gzip));
    assert_eq!(Encoding::parse(Some(b"deflate")), Ok(Encoding::Deflate));
    for other in [&b""[..], b"GZIP", b"snappy", b"gzip,gzip", b"zstd", b"br"] {
        assert_eq!(
            Encoding::parse(Some(other)),
            Err(EncodingError::Unsupported)
        );
    }
}

#[test]
fn the_flag_decides_message_by_message() {
    for encoding in [Encoding::Deflate, Encoding::Gzip, Encoding::Identity] {
        let plain = Frame {
            compressed: false,
            message: b"plain".to_vec(),
            end: 0,
        };
        assert_eq!(encoding.message(plain, 0), Ok(b"plain".to_vec()));
    }
    assert_eq!(
        Encoding::Identity.message(compressed(b"x".to_vec()), 9),
        Err(EncodingError::CompressedIdentity)
    );
}

#[test]
fn ok_every_optional_field_of_gzip() {
    let table: [(u8, &[u8]); 7] = [
        (0, b""),
        (1, b""),
        (2, b""),
        (4, b"\x03\x00abc"),
        (8, b"name\0"),
        (16, b"comment\0"),
        (31, b"\x00\x00name\0comment\0"),
    ];
    for (flags, fields) in table {
        let bytes = member(flags, fields, b"hello");

        assert_eq!(
            Encoding::Gzip.message(compressed(bytes), 5),
            Ok(b"hello".to_vec()),
            "{flags}"
        );
    }
}

#[test]
fn err_gzip_that_readers_take_differently() {
    let whole = member(0, b"", b"hello");
    let two = [whole.clone(), whole.clone()].concat();
    let trailing = [&whole[..], b"\0"].concat();
    let mut wrong_crc = whole.clone();
    let at = whole.len() - 8;
    wrong_crc[at] ^= 1;
    let mut wrong_length = whole.clone();
    let at = whole.len() - 4;
    wrong_length[at] ^= 1;
    let mut wrong_header_crc = member(2, b"", b"hello");
    wrong_header_crc[10] ^= 1;
    let reserved = member(32, b"", b"hello");
    for bytes in [
        two,
        trailing,
        wrong_crc,
        wrong_length,
        wrong_header_crc,
        reserved,
    ] {
        assert_eq!(Encoding::Gzip.message(compressed(bytes), 99), Err(GZIP));
    }
    let everything = member(31, b"\x02\x00abname\0comment\0", b"hello");
    for length in 0..everything.len() {
        let cut = everything[..length].to_vec();
        assert_eq!(
            Encoding::Gzip.message(compressed(cut), 99),
            Err(GZIP),
            "{length}"
        );
    }
    assert_eq!(
        GZIP.to_string(),
        "a compressed gRPC message is damaged; hint: send one whole gzip stream per message"
    );
}

#[test]
fn err_zlib_that_readers_take_differently() {
    let whole = compress_to_vec_zlib(b"hello", 6);
    for length in 0..whole.len() {
        let cut = whole[..length].to_vec();
        assert_eq!(
            Encoding::Deflate.message(compressed(cut), 99),
            Err(DEFLATE),
            "{length}"
        );
    }
    let trailing = [&whole[..], b"\0"].concat();
    let mut wrong_sum = whole.clone();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let raw = compress_to_vec(b"hello", 6);
    for bytes in [trailing, wrong_sum, raw] {
        assert_eq!(
            Encoding::Deflate.message(compressed(bytes), 99),
            Err(DEFLATE)
        );
    }
}

#[test]
fn err_a_bomb_at_the_first_byte_over_the_bound() {
    let message = vec![0; 1 << 24];
    let gzip = member(0, b"", &message);
    let zlib = compress_to_vec_zlib(&message, 9);
    assert!(zlib.len() < 20_000);

    for max in [0, 1, 4_095, 4_096, 4_097, (1 << 24) - 1] {
        let too_large = Err(EncodingError::TooLarge(max));
        assert_eq!(
            Encoding::Deflate.message(compressed(zlib.clone()), max),
            too_large
        );
        assert_eq!(
            Encoding::Gzip.message(compressed(gzip.clone()), max),
            too_large
        );
    }
    let whole = Encoding::Gzip.message(compressed(gzip), 1 << 24);
    assert!(whole == Ok(message));
}

proptest! {
    #[test]
    fn what_was_compressed_comes_back(message in proptest::collection::vec(0_u8..4, 0..9_000), level in 0_u8..10) {
        let zlib = compress_to_vec_zlib(&message, level);
        let length = message.len();

        prop_assert_eq!(Encoding::Deflate.message(compressed(zlib), length), Ok(message.clone()));
        prop_assert_eq!(Encoding::Gzip.message(compressed(member(0, b"", &message)), length), Ok(message));
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        header in proptest::sample::select(vec![&b""[..], b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\x78\x9c"]),
    ) {
        let bytes = [header, &bytes].concat();
        for encoding in [Encoding::Deflate, Encoding::Gzip] {
            if let Ok(message) = encoding.message(compressed(bytes.clone()), 32) {
                prop_assert!(message.len() <= 32);
            }
        }
    }
}
