//! The operator's JSON as a table: every key, its type, its bounds and its meaning. The checker and the published
//! JSON Schema both read this table, so that they cannot disagree.

mod conditions;

use crate::limits;

/// An object of the configuration.
#[derive(Debug)]
pub(super) struct ObjectSpec {
    /// Its keys in the order in which the documentation lists them.
    pub keys: &'static [KeySpec],
}

/// One key.
#[derive(Debug)]
pub(super) struct KeySpec {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// One sentence for the schema, and for the operator where a required key is missing.
    pub meaning: &'static str,
}

/// What a key's value may be.
#[derive(Debug)]
pub(super) enum Kind {
    /// A text without control characters, of a bounded length, not blank.
    Text {
        longest: usize,
    },
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A whole number within bounds, both included.
    Whole {
        lowest: u64,
        highest: u64,
    },
    /// A list of such texts, not empty.
    Texts {
        longest: usize,
    },
    Object(&'static ObjectSpec),
    Objects {
        of: &'static ObjectSpec,
        most: usize,
    },
    /// `true` or `false`.
    Bool,
    /// Any number.
    Number,
    /// A text of a bounded length, a number, a boolean or null.
    Scalar {
        longest: usize,
    },
    /// A list of such values, not empty.
    Scalars {
        longest: usize,
    },
    /// A list of objects, not empty, each with exactly one of the comparisons among its keys.
    Conditions {
        of: &'static ObjectSpec,
        comparisons: &'static [&'static str],
    },
}

const NAME: Kind = Kind::Text {
    longest: limits::NAME_BYTES,
};
const NAMES: Kind = Kind::Texts {
    longest: limits::NAME_BYTES,
};
const MESSAGE: Kind = Kind::Text {
    longest: limits::MESSAGE_BYTES,
};

pub(super) const MODES: &[&str] = &["hold", "return"];

pub(super) const ENFORCEMENTS: &[&str] = &["enforce", "observe"];

pub(super) const SPEND_ON: &[&str] = &["accepted", "release"];

pub(super) const STREAMING: &[&str] = &["deny", "per_message"];

pub(super) const ACTIONS: &[&str] = &["allow", "deny", "require_approval", "require_review"];

const fn key(name: &'static str, kind: Kind, meaning: &'static str) -> KeySpec {
    KeySpec {
        name,
        kind,
        required: false,
        // The module publishes no schema, so it goes without these sentences.
        meaning: if cfg!(target_os = "wasi") {
            ""
        } else {
            meaning
        },
    }
}

const fn required(name: &'static str, kind: Kind, meaning: &'static str) -> KeySpec {
    KeySpec {
        name,
        kind,
        required: true,
        meaning,
    }
}

/// The whole plugin configuration.
pub(super) static ROOT: ObjectSpec = ObjectSpec {
    keys: &[
        required(
            "listener_name",
            NAME,
            "The name under which approvals are filed and read, as the Control Plane knows this listener.",
        ),
        key(
            "control_plane",
            Kind::Object(&CONTROL_PLANE),
            "How the Control Plane is reached; absent means there is none.",
        ),
        key(
            "enforcement",
            Kind::Word(ENFORCEMENTS),
            "`observe` files nothing and refuses nothing, but counts and logs what it would have done. `enforce` by default.",
        ),
        key(
            "approval_mode",
            Kind::Word(MODES),
            "What a held request gets: `hold` keeps it waiting for the decision, `return` answers 403 at once and the client resends after the approval. `hold` by default.",
        ),
        key(
            "review_mode",
            Kind::Word(MODES),
            "Earlier spelling of `approval_mode`.",
        ),
        key(
            "hold_timeout_ms",
            Kind::Whole {
                lowest: limits::HOLD_TIMEOUT_MS.0,
                highest: limits::HOLD_TIMEOUT_MS.1,
            },
            "Time, in milliseconds, that a request is held before it is answered 403 undecided; Envoy's stream_idle_timeout must be longer. 1800000 by default.",
        ),
        key(
            "poll_interval_ms",
            Kind::Whole {
                lowest: limits::POLL_INTERVAL_MS.0,
                highest: limits::POLL_INTERVAL_MS.1,
            },
            "Time, in milliseconds, between two reads of the Control Plane's list while requests are held; one read serves all of a worker. 1000 by default.",
        ),
        key(
            "spend_approval_on",
            Kind::Word(SPEND_ON),
            "When an approval is used up: `release` as soon as its request goes on, `accepted` once the upstream has accepted it. `release` by default.",
        ),
        key(
            "identity",
            Kind::Object(&IDENTITY),
            "Where to find who asks, for the person who decides to read; the peer's address is always filed.",
        ),
        key(
            "message",
            MESSAGE,
            "First words of every denial that is about an approval; `statement held for human approval` by default.",
        ),
        key(
            "max_body_bytes",
            Kind::Whole {
                lowest: 1,
                highest: limits::HIGHEST_MAX_BODY_BYTES,
            },
            "Largest body, in bytes, of a request that a rule holds; a larger one is refused and not filed. 65536 by default.",
        ),
        key(
            "grpc",
            Kind::Object(&GRPC),
            "How gRPC calls are shown to the person who decides, and which kinds of call are taken.",
        ),
        key(
            "mcp",
            Kind::Object(&MCP),
            "The approval tools over MCP: served by this listener, or by another one that its refusals name.",
        ),
        key(
            "sensitive_query_params",
            NAMES,
            "Names of query parameters that carry credentials, added to the built-in list. Their values are shown to nobody.",
        ),
        key(
            "redaction_key_env",
            NAME,
            "Environment variable of the VM with a secret that binds redacted query values where the VM has no sidecar token.",
        ),
        key(
            "rules",
            Kind::Objects {
                of: &RULE,
                most: limits::RULES,
            },
            "The policy: the first rule that matches decides; a request that no rule matches passes.",
        ),
    ],
};

static CONTROL_PLANE: ObjectSpec = ObjectSpec {
    keys: &[
        required(
            "cluster",
            NAME,
            "The Envoy cluster that reaches the Control Plane.",
        ),
        required(
            "authority",
            NAME,
            "The Host header of calls to the Control Plane.",
        ),
        key(
            "path_prefix",
            NAME,
            "A path kept in front of `/api/...`, such as `/hoop`.",
        ),
        key(
            "token_env",
            NAME,
            "Environment variable of the VM that holds the raw sidecar token; `HOOP_SIDECAR_TOKEN` by default.",
        ),
        key(
            "credential",
            Kind::Word(&["none", "token"]),
            "`token` sends the sidecar token; `none` means that another filter on that cluster adds the credential. `token` by default.",
        ),
        key(
            "timeout_ms",
            Kind::Whole {
                lowest: limits::PLANE_TIMEOUT_MS.0,
                highest: limits::PLANE_TIMEOUT_MS.1,
            },
            "Time, in milliseconds, that one call to the Control Plane may take. 10000 by default.",
        ),
        key(
            "heartbeat",
            Kind::Bool,
            "Whether this Envoy tells the Control Plane about once a minute that it is there. Never needed for approvals; false by default.",
        ),
    ],
};

static GRPC: ObjectSpec = ObjectSpec {
    keys: &[
        key(
            "descriptors",
            Kind::Text {
                longest: limits::DESCRIPTORS_BYTES,
            },
            "A serialised google.protobuf.FileDescriptorSet with all imports, in base64 (`host-sim descriptors` makes it): messages are shown as JSON with the names of their fields.",
        ),
        key(
            "streaming",
            Kind::Word(STREAMING),
            "Calls in which the client sends more than one message: `per_message` holds each until it is approved, `deny` refuses them. `per_message` by default.",
        ),
        key(
            "max_payload_bytes",
            Kind::Whole {
                lowest: 1,
                highest: limits::HIGHEST_MAX_BODY_BYTES,
            },
            "Earlier name of `max_body_bytes`.",
        ),
    ],
};

static MCP: ObjectSpec = ObjectSpec {
    keys: &[
        key(
            "path",
            NAME,
            "This listener serves the approval tools under this path, such as `/mcp`, and answers 404 elsewhere.",
        ),
        key(
            "hosts",
            NAMES,
            "Host names without port by which agents call the tools; a request for any other gets 403. Any by default, on a loopback address those of the machine.",
        ),
        key(
            "max_streams",
            Kind::Whole {
                lowest: 0,
                highest: limits::HIGHEST_MCP_STREAMS,
            },
            "How many waits of 60 seconds one worker answers with live progress at a time, a longer one counts as several; any more get one answer at their end. 1000 by default.",
        ),
        key(
            "advertise",
            Kind::Bool,
            "Another listener serves the approval tools: refusals of calls that wait for an approval lead with its id and name the tool.",
        ),
    ],
};

static IDENTITY: ObjectSpec = ObjectSpec {
    keys: &[
        key(
            "header",
            NAME,
            "A request header that holds who asks. It is believed: whatever stands in front of the gate must set it and strip clients' own copies.",
        ),
        key(
            "client_certificate",
            Kind::Bool,
            "Whether the client's certificate (its first URI name, else its subject) says who asks where the header does not.",
        ),
    ],
};

static RULE: ObjectSpec = ObjectSpec {
    keys: &[
        key("name", NAME, "A name for the operator's log."),
        key(
            "match",
            Kind::Object(&MATCH),
            "Which requests the rule meets; absent means every request.",
        ),
        required(
            "action",
            Kind::Word(ACTIONS),
            "What happens to a request that the rule meets.",
        ),
        key(
            "approval_rule",
            NAME,
            "The Control Plane's rule that says who approves; required with `require_approval`.",
        ),
        key(
            "approval_rule_from_route",
            NAME,
            "Instead of `approval_rule`: the key of the Envoy route's metadata, in namespace `hoop`, that names it. A route without it refuses the request.",
        ),
        key(
            "approval_mode",
            Kind::Word(MODES),
            "Overrides the listener's `approval_mode` for this rule.",
        ),
        key(
            "review_mode",
            Kind::Word(MODES),
            "Earlier spelling of `approval_mode`.",
        ),
        key(
            "message",
            MESSAGE,
            "Overrides the listener's `message` for this rule; the whole text of a `deny` rule.",
        ),
    ],
};

static MATCH: ObjectSpec = ObjectSpec {
    keys: &[
        key("methods", NAMES, "Methods, compared without letter case."),
        key(
            "hosts",
            NAMES,
            "Host names without port; `*` stands for any run of characters.",
        ),
        key(
            "paths",
            NAMES,
            "Globs on the canonical path: `*` within a segment, `**` for any number of segments, so `/a/**` also meets `/a`.",
        ),
        key(
            "grpc",
            NAMES,
            "gRPC methods as `package.Service/Method`, with `*` for any run of characters but `/`, whatever content type they come with.",
        ),
        key(
            "headers",
            conditions::HEADERS,
            "Conditions on headers. Of a header that stands twice, `deny` and `require_approval` look for one value that fits, and `allow` wants all to fit.",
        ),
        key(
            "query",
            conditions::QUERY,
            "Conditions on query parameters. One with more than one reading is refused by `deny` and `require_approval`, and never meets `allow`.",
        ),
        key(
            "json",
            conditions::JSON,
            "Conditions on a JSON body. A body that cannot be read is refused by `deny` and `require_approval`, and never meets `allow`.",
        ),
        key(
            "route_metadata",
            conditions::ROUTE_METADATA,
            "Conditions on the metadata of the Envoy route.",
        ),
    ],
};
