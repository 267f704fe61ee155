//! Every bound of the gate in one place, each with its reason. Knows nothing else of the gate.

/// Largest answer of the Control Plane that is read, in bytes. Source: contract 1.3.
pub const PLANE_ANSWER_BYTES: usize = 1 << 20;

/// Longest text of the Control Plane that may be quoted in the operator's log, in bytes. Source: contract 1.3.
pub const PLANE_MESSAGE_BYTES: usize = 300;

/// Largest request body that a held request may have when the configuration names no limit, in bytes. Source: the
/// Sidecar's `http.max_body_bytes`.
pub const DEFAULT_MAX_BODY_BYTES: usize = 65_536;

/// Highest `max_body_bytes` that can be configured. Envoy's own buffer limit is 1 MiB by default: above it Envoy
/// answers 413 before the gate has seen the whole body.
pub const HIGHEST_MAX_BODY_BYTES: u64 = 1 << 20;

/// Time a call to the Control Plane may take when the configuration names none, in milliseconds. Source: contract 1.1.
pub const DEFAULT_PLANE_TIMEOUT_MS: u32 = 10_000;

/// Lowest and highest `control_plane.timeout_ms`. Zero would mean "no timeout" to Envoy, so a request could hang for good.
pub const PLANE_TIMEOUT_MS: (u64, u64) = (1, 600_000);

/// Longest approval id, status or similar token that is repeated to a client, in bytes.
pub const TOKEN_BYTES: usize = 64;

/// Longest name of a release, in bytes. It goes back to the Control Plane as it came and is shown to nobody.
pub const RELEASE_ID_BYTES: usize = 255;

/// Longest part of who asks that is filed, in bytes. Source: contract 1.4.
pub const IDENTITY_BYTES: usize = 255;

/// Longest value of a trace or request id header that goes along to the Control Plane, in bytes. Source: W3C Trace Context
/// 3.3.1.5, which asks for 512 characters of `tracestate` at least.
pub const CORRELATION_BYTES: usize = 512;

/// Time a request may be held when the configuration names none, and its bounds, in milliseconds. Source: contract 3.3.
pub const DEFAULT_HOLD_TIMEOUT_MS: u64 = 1_800_000;

/// Bounds of `hold_timeout_ms`; the highest is a day.
pub const HOLD_TIMEOUT_MS: (u64, u64) = (1_000, 86_400_000);

/// How much before its deadline a client of gRPC is answered, in milliseconds; of a short deadline it is a tenth.
pub const DEADLINE_MARGIN_MS: u64 = 1_000;

/// How many streams are told of something within one callback. Envoy runs the reply to one within the reply to another, and
/// beyond about 300 of them the stack of the VM is full (measured on 1.40).
pub const TOLD_AT_ONCE: usize = 32;

/// Time between two reads of the list while something is held, in milliseconds.
pub const DEFAULT_POLL_INTERVAL_MS: u64 = 1_000;

/// Bounds of `poll_interval_ms`.
pub const POLL_INTERVAL_MS: (u64, u64) = (100, 60_000);

/// Time between two claims of an approval that the list does not tell of, in milliseconds. Source: contract 3.3.
pub const CLAIM_INTERVAL_MS: u64 = 5_000;

/// Most entries of a list that is read. Source: contract 1.7.
pub const LIST_LIMIT: u32 = 200;

/// How long the list is left alone once the Control Plane turned out not to have it, in milliseconds.
pub const LIST_RETRY_MS: u64 = 60_000;

/// Longest `grpc.descriptors` in the configuration, in bytes of base64: three megabytes of descriptors.
pub const DESCRIPTORS_BYTES: usize = 4_000_000;

/// Deepest nesting of groups in a gRPC message that is read as protobuf. Each level is looked through once more, and groups are
/// hardly used any longer.
pub const GRPC_GROUP_DEPTH: usize = 8;

/// Most messages of one gRPC call that are kept back at a time: each is to be read by a person.
pub const GRPC_QUEUED_MESSAGES: usize = 128;

/// Most bytes of messages that a VM keeps back for all its gRPC calls together, so that no client can fill its memory.
pub const GRPC_KEPT_BYTES: usize = 32 << 20;

/// Most bytes of messages of one gRPC call that are kept back at a time. Envoy's own bound, 1 MiB by default, comes first unless
/// it was raised.
pub const GRPC_HELD_BYTES: usize = 1 << 20;

/// Longest name in the configuration (listener, rule, cluster, variable), in bytes.
pub const NAME_BYTES: usize = 255;

/// Longest operator message, in bytes; it becomes part of every denial.
pub const MESSAGE_BYTES: usize = 1_000;

/// Deepest nesting of a JSON text that is read. Nothing the gate reads nests deeper than ten.
pub const JSON_DEPTH: usize = 64;

/// Most segments of a path that globs are matched against; a path with more could meet any rule that names paths. It
/// bounds the time that one request can take with many rules.
pub const PATH_SEGMENTS: usize = 256;

/// Longest ambiguous path, in bytes, whose letters are looked at. A longer one could be any path, so that an attacker
/// cannot buy CPU time with it.
pub const AMBIGUOUS_PATH_BYTES: usize = 4_096;

/// Most steps that one decision spends in search of words in an ambiguous path; once they are used up, the path may hold any
/// word. They take a few milliseconds, and ordinary policies come nowhere near them.
pub const LETTER_STEPS: usize = 1 << 21;

/// Most parts of one header, at its commas and semicolons and repeated ones counted once, that rules are held against. Browsers
/// send at most 180 cookies; each part more is work for each rule.
pub const HEADER_PARTS: usize = 512;

/// Most steps that one decision spends on comparing values of headers and query parameters with what rules name; once they are
/// used up, a value may be any. They take some ten milliseconds: 1,000 rules with a glob on 4 KB of cookies.
pub const COMPARISON_STEPS: usize = 1 << 22;

/// Most parameters of one query that are told apart; a query with more could hold any. Source: PHP (`max_input_vars`), qs and
/// Node.js leave out what stands behind the thousandth.
pub const QUERY_PARAMETERS: usize = 1_000;

/// Most levels of a parameter's name (`a[b][c]` has three) that are told apart. Servers nest no deeper than that, and the bound
/// keeps the cost of a hostile name linear.
pub const NAME_LEVELS: usize = 16;

/// Most names that are looked for within one, between separators that servers may see there (`x%26mode`); a name that holds more
/// could be any. Honest names hold none.
pub const NAME_PIECES: usize = 16;

/// Most names with escapes or letters outside ASCII that are decoded in a JSON text to see whether it could be read as a form; a
/// text with more is doubtful. Source: Rack reads at most 4,096 parameters.
pub const FORM_NAMES: usize = 4_096;

/// How many times a path is percent-decoded in search of its letters; one that needs more could be any path. No chain
/// of decoding servers of this length is known, and the bound keeps the cost of a hostile path linear.
pub const DECODING_ROUNDS: usize = 8;

/// Highest number of rules in one configuration.
pub const RULES: usize = 10_000;

/// Highest number of entries in one list of a rule's conditions.
pub const LIST_ENTRIES: usize = 1_000;

/// Longest text that a condition compares with, in bytes.
pub const CONDITION_BYTES: usize = 4_096;

/// Longest JSON text of the plugin configuration, in bytes.
pub const CONFIG_BYTES: usize = 4 << 20;

/// Deepest nesting of a gRPC message that is read. Source: the recursion limit that parsers of protobuf have by default.
pub const GRPC_DEPTH: usize = 100;

/// Most members of an object of JSON-RPC that is looked at: the protocol knows a dozen, and each is compared with the others.
pub const JSON_MEMBERS: usize = 64;

/// How many waits of a minute are answered by a VM with live progress at a time when the configuration names no bound: Envoy 1.40 keeps two
/// to three KiB for each second that one of them may last, so that a longer one counts as several.
pub const DEFAULT_MCP_STREAMS: usize = 1_000;

/// Highest `mcp.max_streams`.
pub const HIGHEST_MCP_STREAMS: u64 = 100_000;

/// Time that `approval_wait` waits when the call names none, and its bounds, in seconds. Source: contract 5.2.
pub const DEFAULT_WAIT_SECONDS: u64 = 60;

/// Bounds of `timeout_seconds`.
pub const WAIT_SECONDS: (u64, u64) = (2, 300);

/// Time between two notifications of progress, in milliseconds. Source: contract 5.2.
pub const PROGRESS_INTERVAL_MS: u64 = 2_000;

/// How long ago an approval may have been looked at, in milliseconds, for a wait to end undecided without another look. Source:
/// contract 5.2, by which a wait looks every two seconds.
pub const SEEN_OF_LATE_MS: u64 = 2_000;

/// Number of approvals that `approval_list` gives when the call names none. Source: contract 5.2.
pub const DEFAULT_LISTED: u32 = 20;

/// Longest progress token for which progress is sent, in bytes: it stands in every notification.
pub const PROGRESS_TOKEN_BYTES: usize = 128;

/// Longest name or reason that an approval tool repeats, in bytes.
pub const TOLD_BYTES: usize = 1_000;

/// Longest id of a request to the approval tools, in bytes of JSON: it is kept as long as a wait lasts.
pub const RPC_ID_BYTES: usize = 1_024;
