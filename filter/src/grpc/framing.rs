//! Takes a gRPC stream apart into its messages: a byte for "compressed", four for the length, then the message. Any cut
//! of the stream gives the same messages. Knows nothing of what is in them.
//!
//! Source: gRPC over HTTP/2 (PROTOCOL-HTTP2), Length-Prefixed-Message.

/// Bytes in front of each message.
const PREFIX_BYTES: usize = 5;

/// One message as it travelled.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whether the message is compressed as `grpc-encoding` says.
    pub compressed: bool,
    /// The message, still compressed if it is.
    pub message: Vec<u8>,
    /// Where the message ended: bytes of the stream up to and with its last.
    pub end: u64,
}

/// Shows sizes only: a message may hold anything that a client sent.
impl std::fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Frame")
            .field("compressed", &self.compressed)
            .field("message_bytes", &self.message.len())
            .field("end", &self.end)
            .finish()
    }
}

/// Why a stream cannot be taken apart. Nothing behind the place can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first byte of a prefix is neither 0 nor 1.
    #[error(
        "the compressed flag of a gRPC message is {0}, not 0 or 1; hint: send length-prefixed messages"
    )]
    CompressedFlag(u8),
    /// The stream ended inside a message or its prefix.
    #[error("the stream ends inside a gRPC message; hint: send the whole message")]
    EndInsideMessage,
    /// A prefix announces more than is taken.
    #[error(
        "a gRPC message of {announced} bytes is larger than the {allowed} allowed; hint: send smaller messages"
    )]
    TooLarge {
        /// What the prefix says, in bytes.
        announced: u32,
        /// The bound, in bytes.
        allowed: usize,
    },
}

/// Reads messages off a stream that comes in pieces, and holds no more than the one that is incomplete.
///
/// ```
/// use hoop_filter::grpc::Deframer;
///
/// let mut deframer = Deframer::new(1_024);
/// let mut piece: &[u8] = b"\0\0\0\0\x02hi\0\0\0\0\0\0\0";
/// let mut messages = Vec::new();
/// while let Some(frame) = deframer.read(&mut piece).expect("well-formed") {
///     messages.push((frame.message, frame.end));
/// }
/// assert_eq!(messages, [(b"hi".to_vec(), 7), (b"".to_vec(), 12)]);
/// assert!(deframer.end().is_err(), "two bytes of a third prefix are there");
/// ```
pub struct Deframer {
    max_message_bytes: usize,
    prefix: Vec<u8>,
    message: Vec<u8>,
    read: u64,
    failed: Option<FrameError>,
}

/// Shows sizes only: a message may hold anything that a client sent.
impl std::fmt::Debug for Deframer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Deframer")
            .field("max_message_bytes", &self.max_message_bytes)
            .field("kept_bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}

impl Deframer {
    /// A reader that refuses messages of more than so many bytes.
    #[must_use]
    pub const fn new(max_message_bytes: usize) -> Self {
        Self {
            max_message_bytes,
            prefix: Vec::new(),
            message: Vec::new(),
            read: 0,
            failed: None,
        }
    }

    /// Takes bytes from the front of the piece until one message is whole. `None` means that the piece is used up;
    /// until then, call again.
    ///
    /// # Errors
    ///
    /// When a prefix is malformed or announces too much, which is known before any byte of that message is kept. The
    /// same error comes again from then on.
    pub fn read(&mut self, piece: &mut &[u8]) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let frame = self.next_frame(piece);
        self.failed = frame.as_ref().err().copied();
        frame
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    ///
    /// When it was malformed before, or ends inside a message.
    pub fn end(&self) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.prefix.is_empty() => Ok(()),
            None => Err(FrameError::EndInsideMessage),
        }
    }

    fn next_frame(&mut self, piece: &mut &[u8]) -> Result<Option<Frame>, FrameError> {
        let missing = PREFIX_BYTES.saturating_sub(self.prefix.len());
        let taken = self.take(piece, missing);
        self.prefix.extend_from_slice(taken);
        // The flag is judged as soon as it is there, so that no stream waits on a prefix that cannot become right.
        let compressed = match self.prefix.first() {
            None => return Ok(None),
            Some(0) => false,
            Some(1) => true,
            Some(flag) => return Err(FrameError::CompressedFlag(*flag)),
        };
        let [_, length @ ..] = self.prefix.as_slice() else {
            return Ok(None);
        };
        let Ok(length) = <[u8; 4]>::try_from(length) else {
            return Ok(None);
        };
        let announced = u32::from_be_bytes(length);
        let length = match usize::try_from(announced) {
            Ok(length) if length <= self.max_message_bytes => length,
            Ok(_) | Err(_) => {
                return Err(FrameError::TooLarge {
                    announced,
                    allowed: self.max_message_bytes,
                });
            }
        };
        let taken = self.take(piece, length.saturating_sub(self.message.len()));
        self.message.extend_from_slice(taken);
        if self.message.len() < length {
            return Ok(None);
        }
        self.prefix.clear();
        Ok(Some(Frame {
            compressed,
            message: std::mem::take(&mut self.message),
            end: self.read,
        }))
    }

    fn take<'p>(&mut self, piece: &mut &'p [u8], wanted: usize) -> &'p [u8] {
        let (taken, rest) = piece.split_at_checked(wanted).unwrap_or((piece, &[]));
        *piece = rest;
        let length = u64::try_from(taken.len()).unwrap_or(u64::MAX);
        self.read = self.read.saturating_add(length);
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (Vec<(bool, Vec<u8>, u64)>, Option<FrameError>);

    /// Reads a stream that comes in these pieces, to its end.
    fn read<'p>(max: usize, pieces: impl IntoIterator<Item = &'p [u8]>) -> Read {
        let mut deframer = Deframer::new(max);
        let mut frames = Vec::new();
        for mut piece in pieces {
            loop {
                match deframer.read(&mut piece) {
                    Ok(Some(frame)) => frames.push((frame.compressed, frame.message, frame.end)),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
            assert!(piece.is_empty(), "left bytes of a piece");
        }
        (frames, deframer.end().err())
    }

    fn framed(messages: &[(bool, Vec<u8>)]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (compressed, message) in messages {
            stream.push(u8::from(*compressed));
            stream.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
            stream.extend(message);
        }
        stream
    }

    #[test]
    fn ok_a_stream_without_messages() {
        assert_eq!(read(0, []), (vec![], None));
    }

    #[test]
    fn ok_a_message_at_the_bound() {
        assert_eq!(
            read(3, [&b"\0\0\0\0\x03abc"[..]]),
            (vec![(false, b"abc".to_vec(), 8)], None)
        );
    }

    #[test]
    fn err_a_message_over_the_bound_before_any_of_its_bytes() {
        let error = FrameError::TooLarge {
            announced: 4,
            allowed: 3,
        };

        assert_eq!(read(3, [&b"\x01\0\0\0\x04"[..]]), (vec![], Some(error)));
        assert_eq!(
            error.to_string(),
            "a gRPC message of 4 bytes is larger than the 3 allowed; hint: send smaller messages"
        );
        let most = read(3, [&b"\0\xff\xff\xff\xff"[..]]);
        assert!(matches!(
            most.1,
            Some(FrameError::TooLarge {
                announced: u32::MAX,
                ..
            })
        ));
    }

    #[test]
    fn err_a_flag_that_is_neither_0_nor_1() {
        for flag in 2..=u8::MAX {
            assert_eq!(
                read(9, [&[flag][..]]),
                (vec![], Some(FrameError::CompressedFlag(flag)))
            );
        }
    }

    #[test]
    fn err_an_end_inside_a_message() {
        let stream = b"\0\0\0\0\x01a\0\0\0\0\x02bc";
        for length in (1..stream.len()).filter(|length| *length != 6) {
            assert_eq!(
                read(9, [&stream[..length]]).1,
                Some(FrameError::EndInsideMessage),
                "{length}"
            );
        }
    }

    #[test]
    fn an_error_stays() {
        let mut deframer = Deframer::new(9);

        assert!(deframer.read(&mut &b"\x02"[..]).is_err());

        assert!(deframer.read(&mut &b"\0\0\0\0\0"[..]).is_err());
        assert!(deframer.end().is_err());
    }

    #[test]
    fn a_frame_prints_no_message() {
        let frame = Frame {
            compressed: false,
            message: b"secret".to_vec(),
            end: 11,
        };

        assert_eq!(
            format!("{frame:?}"),
            "Frame { compressed: false, message_bytes: 6, end: 11 }"
        );
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_messages_that_were_framed(
            messages in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..9)), 0..6),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..9),
        ) {
            let stream = framed(&messages);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len().saturating_add(1))).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]);

            let (frames, error) = read(9, pieces);

            prop_assert_eq!(error, None);
            let mut end = 0_u64;
            let expected: Vec<_> = messages
                .into_iter()
                .map(|(compressed, message)| {
                    let length = u64::try_from(message.len()).unwrap();
                    end = length.saturating_add(end).saturating_add(5);
                    (compressed, message, end)
                })
                .collect();
            prop_assert_eq!(frames, expected);
        }

        #[test]
        fn any_bytes_read_alike_whole_and_one_by_one(
            stream in proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..3, any::<u8>()], 0..64),
        ) {
            prop_assert_eq!(read(8, [&stream[..]]), read(8, stream.chunks(1)));
        }
    }
}
