//! Undoes the compression of one message, within a bound. Whatever another reader might take differently is refused:
//! bytes behind the end, a wrong checksum, several gzip members.
//!
//! Source: gRPC over HTTP/2 (Message-Encoding), RFC 1950 (zlib, which gRPC calls `deflate`), RFC 1951, RFC 1952 (gzip).

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::framing::Frame;

/// How the messages of a stream are compressed, where their flag says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// zlib (RFC 1950).
    Deflate,
    /// gzip (RFC 1952).
    Gzip,
    /// Not at all.
    Identity,
}

/// Why there is no message to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// A message is said to be compressed, and the stream names no compression.
    #[error(
        "a gRPC message is flagged as compressed without a grpc-encoding; hint: name the encoding or send it plain"
    )]
    CompressedIdentity,
    /// The compressed bytes are damaged, cut, or followed by others.
    #[error("a compressed gRPC message is damaged; hint: send one whole {0} stream per message")]
    Malformed(&'static str),
    /// The message would be larger than is taken.
    #[error(
        "a compressed gRPC message holds more than the {0} bytes allowed; hint: send smaller messages"
    )]
    TooLarge(usize),
    /// `grpc-encoding` names something that is not read here.
    #[error("the grpc-encoding is not one of identity, gzip and deflate; hint: use one of them")]
    Unsupported,
}

impl Encoding {
    /// Reads the `grpc-encoding` header; `None` where it is absent. The caller refuses a header that stands twice.
    ///
    /// # Errors
    ///
    /// When it names another encoding, or the letters of one in another case: servers compare them exactly.
    pub fn parse(header: Option<&[u8]>) -> Result<Self, EncodingError> {
        match header {
            None | Some(b"identity") => Ok(Self::Identity),
            Some(b"gzip") => Ok(Self::Gzip),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(_) => Err(EncodingError::Unsupported),
        }
    }

    /// The message of a frame, decompressed if it was compressed.
    ///
    /// # Errors
    ///
    /// When it is not exactly one compressed stream, or holds more than so many bytes. A bomb costs no more memory than
    /// the bound.
    pub fn message(self, frame: Frame, max_message_bytes: usize) -> Result<Vec<u8>, EncodingError> {
        match (self, frame.compressed) {
            (_, false) => Ok(frame.message),
            (Self::Identity, true) => Err(EncodingError::CompressedIdentity),
            (Self::Gzip, true) => gunzip(&frame.message, max_message_bytes),
            (Self::Deflate, true) => {
                let zlib = TINFL_FLAG_PARSE_ZLIB_HEADER;
                match inflate(&frame.message, zlib, max_message_bytes, DEFLATE)? {
                    (message, []) => Ok(message),
                    (_, _) => Err(DEFLATE),
                }
            }
        }
    }
}

const DEFLATE: EncodingError = EncodingError::Malformed("deflate (zlib)");
const GZIP: EncodingError = EncodingError::Malformed("gzip");

/// Output grows by this much first, in bytes; then it doubles.
const FIRST_OUTPUT_BYTES: usize = 4_096;

/// Inflates one stream; also gives what stands behind its end.
fn inflate(
    compressed: &[u8],
    flags: u32,
    max_message_bytes: usize,
    malformed: EncodingError,
) -> Result<(Vec<u8>, &[u8]), EncodingError> {
    let mut state = Box::<DecompressorOxide>::default();
    let flags = flags | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut message = vec![0; FIRST_OUTPUT_BYTES.min(max_message_bytes)];
    let mut written = 0_usize;
    let mut rest = compressed;
    loop {
        let (status, read, wrote) = decompress(&mut state, rest, &mut message, written, flags);
        rest = rest.get(read..).unwrap_or_default();
        written = written.saturating_add(wrote);
        match status {
            TINFLStatus::Done => {
                message.truncate(written);
                return Ok((message, rest));
            }
            TINFLStatus::HasMoreOutput if message.len() < max_message_bytes => {
                let larger = message.len().saturating_mul(2).min(max_message_bytes);
                message.resize(larger, 0);
            }
            TINFLStatus::HasMoreOutput => return Err(EncodingError::TooLarge(max_message_bytes)),
            TINFLStatus::Adler32Mismatch
            | TINFLStatus::BadParam
            | TINFLStatus::Failed
            | TINFLStatus::FailedCannotMakeProgress
            | TINFLStatus::NeedsMoreInput
            | _ => return Err(malformed),
        }
    }
}

fn gunzip(compressed: &[u8], max_message_bytes: usize) -> Result<Vec<u8>, EncodingError> {
    let deflated = behind_gzip_header(compressed).ok_or(GZIP)?;
    let (message, trailer) = inflate(deflated, 0, max_message_bytes, GZIP)?;
    let [a, b, c, d, e, f, g, h] = *trailer else {
        return Err(GZIP);
    };
    let length = u32::try_from(message.len()).map_err(|_| GZIP)?;
    let is_whole = u32::from_le_bytes([a, b, c, d]) == crc32(&message)
        && u32::from_le_bytes([e, f, g, h]) == length;
    if is_whole { Ok(message) } else { Err(GZIP) }
}

/// Skips the header of a gzip member (RFC 1952, 2.3.1), which may hold an extra field, a name, a comment and a checksum.
/// Flags that the RFC keeps for later are refused, as it asks.
fn behind_gzip_header(member: &[u8]) -> Option<&[u8]> {
    const HAS_CHECKSUM: u8 = 2;
    const HAS_EXTRA: u8 = 4;
    const HAS_NAME: u8 = 8;
    const HAS_COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;

    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = member else {
        return None;
    };
    let mut rest = rest;
    if flags & RESERVED != 0 {
        return None;
    }
    if flags & HAS_EXTRA != 0 {
        let [low, high, behind @ ..] = rest else {
            return None;
        };
        let length = u16::from_le_bytes([*low, *high]);
        rest = behind.get(usize::from(length)..)?;
    }
    for part in [HAS_NAME, HAS_COMMENT] {
        if flags & part != 0 {
            let (_, behind) = split_at_zero(rest)?;
            rest = behind;
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        let header = member.get(..member.len().checked_sub(rest.len())?)?;
        let [low, high, behind @ ..] = rest else {
            return None;
        };
        let checksum = u32::from(u16::from_le_bytes([*low, *high]));
        if crc32(header) & 0xffff != checksum {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    Some((text, rest.get(1..)?))
}

/// CRC-32 of RFC 1952, section 8, half a byte at a time: a table of 64 bytes where speed would take a kilobyte.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut rest: &mut [u32] = &mut table;
        let mut nibble = 0_u32;
        while let [entry, behind @ ..] = rest {
            let mut value = nibble;
            let mut bit = 0_u8;
            while bit < 4 {
                let carry = value & 1 != 0;
                value >>= 1;
                if carry {
                    value ^= 0xedb8_8320;
                }
                bit = bit.saturating_add(1);
            }
            *entry = value;
            nibble = nibble.saturating_add(1);
            rest = behind;
        }
        table
    };
    let mut crc = u32::MAX;
    for byte in bytes {
        for nibble in [byte & 0x0f, byte >> 4] {
            let [low, ..] = crc.to_le_bytes();
            let at = usize::from((low ^ nibble) & 0x0f);
            crc = (crc >> 4) ^ TABLE.get(at).copied().unwrap_or_default();
        }
    }
    !crc
}

#[cfg(test)]
mod tests;
