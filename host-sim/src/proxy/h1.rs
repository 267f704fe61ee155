//! HTTP/1.1 on the wire, as Envoy's codec reads and writes it. No sockets here but one reader that waits for bytes.
//!
//! It is a codec of our own, because what a filter sees depends on what a codec lets pass: fragments, two `host` lines, the order
//! of fields, trailers. Source: `source/common/http/http1/` of Envoy, and what Envoy 1.40 answered on the wire.

mod head;
mod write;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadHalf, WriteHalf};

use crate::header_map::HeaderMap;

pub(super) use head::{
    Limits, RequestFault, RequestHead, ResponseFault, has_token, read_request, read_response,
};
pub(super) use write::{BodyWriter, request_head, response_head};

/// A connection, plain or with TLS.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The way back to a peer.
pub(super) type Outgoing = WriteHalf<Box<dyn Io>>;

/// What a peer sends, with what has been read ahead.
pub(super) struct Incoming {
    io: ReadHalf<Box<dyn Io>>,
    pub(super) buffer: BytesMut,
}

/// Cuts a connection in two.
pub(super) fn split(io: Box<dyn Io>, read_ahead: BytesMut) -> (Incoming, Outgoing) {
    let (io, outgoing) = tokio::io::split(io);
    (
        Incoming {
            io,
            buffer: read_ahead,
        },
        outgoing,
    )
}

impl Incoming {
    /// Reads more; `false` at the end of the connection, also where it broke.
    pub(super) async fn fill(&mut self) -> bool {
        self.buffer.reserve(READ_SIZE);
        matches!(self.io.read_buf(&mut self.buffer).await, Ok(count) if count > 0)
    }

    /// The connection itself, without what was read ahead.
    pub(super) fn raw(&mut self) -> &mut ReadHalf<Box<dyn Io>> {
        &mut self.io
    }

    /// The next part of a body.
    pub(super) async fn part(&mut self, body: &mut BodyReader) -> Result<Part, BodyFault> {
        loop {
            if let Some(part) = body.decode(&mut self.buffer)? {
                return Ok(part);
            }
            if !self.fill().await {
                return if matches!(body.state, State::UntilClose) {
                    Ok(Part::End)
                } else {
                    Err(BodyFault::Cut)
                };
            }
        }
    }
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Bytes.
    Data(Bytes),
    /// The end, after trailers.
    Trailers(HeaderMap),
    /// The end.
    End,
}

/// Why a body cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// The connection ended before it.
    Cut,
    /// It is not what the framing says.
    Malformed,
    /// Its trailers are larger than they may be.
    TrailersTooLarge,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Reads a body.
#[derive(Debug)]
pub(super) struct BodyReader {
    state: State,
    trailers_limit: usize,
}

#[derive(Debug)]
enum State {
    Length(u64),
    ChunkLine(ChunkLine),
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    UntilClose,
    Done,
}

impl BodyReader {
    pub(super) fn new(framing: Framing) -> BodyReader {
        let state = match framing {
            Framing::Empty | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkLine(ChunkLine::default()),
            Framing::UntilClose => State::UntilClose,
        };
        BodyReader {
            state,
            trailers_limit: TRAILERS_LIMIT,
        }
    }

    /// Trailers, with the empty line behind them, may have so many bytes.
    pub(super) fn trailers_limit(self, bytes: usize) -> BodyReader {
        BodyReader {
            trailers_limit: bytes,
            ..self
        }
    }

    /// The next part that `buffer` holds whole; `None` = more bytes are needed. Chunks that are there together come together.
    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Part>, BodyFault> {
        let mut data = BytesMut::new();
        loop {
            match &mut self.state {
                State::Done => return Ok(Some(part_or(data, Part::End))),
                State::UntilClose if buffer.is_empty() => return Ok(None),
                State::UntilClose => return Ok(Some(Part::Data(buffer.split().freeze()))),
                State::Length(left) => {
                    if buffer.is_empty() {
                        return Ok(None);
                    }
                    let taken = buffer.split_to(at_most(buffer.len(), *left));
                    *left -= taken.len() as u64;
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    return Ok(Some(Part::Data(taken.freeze())));
                }
                State::ChunkLine(line) => {
                    let Some(size) = line.read(buffer)? else {
                        return Ok(some_data(data));
                    };
                    self.state = if size == 0 {
                        State::Trailers
                    } else {
                        State::ChunkData(size)
                    };
                }
                State::ChunkData(left) => {
                    if buffer.is_empty() {
                        return Ok(some_data(data));
                    }
                    let taken = buffer.split_to(at_most(buffer.len(), *left));
                    *left -= taken.len() as u64;
                    let complete = *left == 0;
                    data.unsplit(taken);
                    if complete {
                        self.state = State::ChunkEnd;
                    }
                }
                State::ChunkEnd => {
                    if !b"\r\n".starts_with(&buffer[..buffer.len().min(2)]) {
                        return Err(BodyFault::Malformed);
                    }
                    if buffer.len() < 2 {
                        return Ok(some_data(data));
                    }
                    buffer.advance(2);
                    self.state = State::ChunkLine(ChunkLine::default());
                }
                State::Trailers => {
                    if !data.is_empty() {
                        return Ok(Some(Part::Data(data.freeze())));
                    }
                    let Some(trailers) = take_trailers(buffer, self.trailers_limit)? else {
                        return Ok(None);
                    };
                    self.state = State::Done;
                    return Ok(Some(if trailers.is_empty() {
                        Part::End
                    } else {
                        Part::Trailers(trailers)
                    }));
                }
            }
        }
    }
}

fn part_or(data: BytesMut, end: Part) -> Part {
    if data.is_empty() {
        end
    } else {
        Part::Data(data.freeze())
    }
}

fn some_data(data: BytesMut) -> Option<Part> {
    (!data.is_empty()).then(|| Part::Data(data.freeze()))
}

fn at_most(have: usize, left: u64) -> usize {
    usize::try_from(left).map_or(have, |left| left.min(have))
}

/// The line in front of a chunk, as far as it has come: the size in hexadecimal digits, and what is passed over up to CR LF. Nothing
/// of it is kept, so it may be of any length. Refused is a line that begins with anything but digits, that has a CR elsewhere or
/// ends with a LF alone: two readers of such a line may see two messages.
#[derive(Debug, Default)]
enum ChunkLine {
    #[default]
    Begin,
    Digits(u64),
    Extension(u64),
    CarriageReturn(u64),
}

impl ChunkLine {
    /// Takes what `buffer` holds of the line; the size once it is whole.
    fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<u64>, BodyFault> {
        for at in 0..buffer.len() {
            *self = match (&*self, buffer[at]) {
                (ChunkLine::CarriageReturn(size), b'\n') => {
                    let size = *size;
                    buffer.advance(at + 1);
                    return Ok(Some(size));
                }
                (ChunkLine::Digits(size) | ChunkLine::Extension(size), b'\r') => {
                    ChunkLine::CarriageReturn(*size)
                }
                (ChunkLine::Begin, digit) => ChunkLine::Digits(longer(0, digit)?),
                (ChunkLine::Digits(size), b';' | b' ' | b'\t') => ChunkLine::Extension(*size),
                (ChunkLine::Digits(size), digit) => ChunkLine::Digits(longer(*size, digit)?),
                (ChunkLine::Extension(_), b'\n') | (ChunkLine::CarriageReturn(_), _) => {
                    return Err(BodyFault::Malformed);
                }
                (ChunkLine::Extension(size), _) => ChunkLine::Extension(*size),
            };
        }
        buffer.clear();
        Ok(None)
    }
}

/// `size` with one more hexadecimal digit.
fn longer(size: u64, digit: u8) -> Result<u64, BodyFault> {
    let digit = char::from(digit).to_digit(16);
    let longer = digit.and_then(|digit| size.checked_mul(16)?.checked_add(digit.into()));
    longer.ok_or(BodyFault::Malformed)
}

/// The trailers, once the empty line behind them is there.
fn take_trailers(buffer: &mut BytesMut, limit: usize) -> Result<Option<HeaderMap>, BodyFault> {
    let end = head::end_of_lines(buffer);
    if end.unwrap_or(buffer.len()) > limit {
        return Err(BodyFault::TrailersTooLarge);
    }
    let Some(end) = end else {
        return Ok(None);
    };
    let lines = buffer.split_to(end).freeze();
    let mut trailers = HeaderMap::new();
    for (name, value) in head::fields(&lines).ok_or(BodyFault::Malformed)? {
        trailers.add(&name, &value);
    }
    Ok(Some(trailers))
}

/// Drops the empty lines that may stand between two messages of a connection.
fn skip_empty_lines(buffer: &mut BytesMut) {
    let count = buffer
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
        .count();
    buffer.advance(count);
}

/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;
/// Envoy's limit for a head holds for trailers too, unless the configuration names another.
const TRAILERS_LIMIT: usize = 60 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, Option<Part>), BodyFault> {
        let mut reader = BodyReader::new(framing);
        let mut buffer = BytesMut::new();
        let mut all = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece);
            while let Some(part) = reader.decode(&mut buffer)? {
                match part {
                    Part::Data(data) => all.extend_from_slice(&data),
                    end @ (Part::End | Part::Trailers(_)) => return Ok((all, Some(end))),
                }
            }
        }
        Ok((all, None))
    }

    /// The size that each way to cut `line` gives, which has to be one.
    fn chunk_size(line: &str) -> Result<Option<u64>, BodyFault> {
        let line = line.as_bytes();
        let read = |pieces: &[&[u8]]| {
            let (mut chunk, mut buffer) = (ChunkLine::default(), BytesMut::new());
            for piece in pieces {
                buffer.extend_from_slice(piece);
                let size = chunk.read(&mut buffer)?;
                if size.is_some() {
                    return Ok(size);
                }
            }
            Ok(None)
        };
        let whole = read(&[line]);
        for cut in 0..line.len() {
            assert_eq!(read(&[&line[..cut], &line[cut..]]), whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn a_chunk_begins_with_hexadecimal_digits_and_ends_its_line_with_cr_lf() {
        let long = format!("2;{}\r\n", "a".repeat(5000));
        let fine = [
            ("5\r\n", 5),
            ("0000000000000005\r\n", 5),
            ("fF;a=b\r\n", 255),
            ("5 \r\n", 5),
            (&long, 2),
        ];
        for (line, size) in fine {
            assert_eq!(chunk_size(line), Ok(Some(size)), "{line:?}");
        }
        for line in [
            "+5\r\n",
            "-5\r\n",
            "0x5\r\n",
            "5\n",
            "5;\n",
            "5;a\rb\r\n",
            "5\r\r\n",
            "\r\n",
            ";a\r\n",
            "g\r\n",
            "10000000000000000\r\n",
        ] {
            assert_eq!(chunk_size(line), Err(BodyFault::Malformed), "{line:?}");
        }
    }

    #[test]
    fn a_chunked_body_is_read_however_it_is_cut() {
        let whole = b"2\r\nhi\r\n3;ext=1\r\nabc\r\n0\r\n\r\n";
        for cut in 0..whole.len() {
            let (data, end) =
                parts(Framing::Chunked, &[&whole[..cut], &whole[cut..]]).expect("well-formed");
            assert_eq!(
                (data.as_slice(), end),
                (b"hiabc".as_slice(), Some(Part::End)),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn trailers_end_a_chunked_body() {
        let (data, end) =
            parts(Framing::Chunked, &[b"1\r\na\r\n0\r\nX-T: 1\r\n\r\n"]).expect("well-formed");
        assert_eq!(data, b"a");
        assert_eq!(end, Some(Part::Trailers(HeaderMap::new().with("x-t", "1"))));
    }

    #[test]
    fn a_body_stops_at_its_length() {
        let (data, end) = parts(Framing::Length(2), &[b"h", b"iREST"]).expect("well-formed");
        assert_eq!((data.as_slice(), end), (b"hi".as_slice(), Some(Part::End)));
    }

    #[test]
    fn a_chunk_without_a_size_is_malformed() {
        assert_eq!(
            parts(Framing::Chunked, &[b"zz\r\nhi\r\n"]),
            Err(BodyFault::Malformed)
        );
        assert_eq!(
            parts(Framing::Chunked, &[b"2\r\nhiX\r\n"]),
            Err(BodyFault::Malformed)
        );
    }
}
