//! The conditions of a rule as a table: what may be compared, and with what.

use super::{KeySpec, Kind, NAME, ObjectSpec, key, required};
use crate::limits;

const VALUE: Kind = Kind::Text {
    longest: limits::CONDITION_BYTES,
};
const VALUES: Kind = Kind::Texts {
    longest: limits::CONDITION_BYTES,
};

const EQUALS: KeySpec = key("equals", VALUE, "The whole value.");
const IN: KeySpec = key("in", VALUES, "One of these whole values.");
const GLOB: KeySpec = key(
    "glob",
    VALUE,
    "The whole value as a glob: `*` stands for any run of characters.",
);

/// What a text is compared with; exactly one of them.
const TEXT_COMPARISONS: &[&str] = &["equals", "in", "glob", "exists"];

/// What a JSON value is compared with; exactly one of them.
const JSON_COMPARISONS: &[&str] = &[
    "equals",
    "in",
    "greater_than",
    "at_least",
    "less_than",
    "at_most",
    "exists",
];

pub(super) const HEADERS: Kind = Kind::Conditions {
    of: &HEADER,
    comparisons: TEXT_COMPARISONS,
};
pub(super) const QUERY: Kind = Kind::Conditions {
    of: &PARAMETER,
    comparisons: TEXT_COMPARISONS,
};
pub(super) const JSON: Kind = Kind::Conditions {
    of: &JSON_VALUE,
    comparisons: JSON_COMPARISONS,
};
pub(super) const ROUTE_METADATA: Kind = Kind::Conditions {
    of: &METADATA,
    comparisons: TEXT_COMPARISONS,
};

static HEADER: ObjectSpec = ObjectSpec {
    keys: &[
        required(
            "name",
            NAME,
            "The header's name, compared without letter case.",
        ),
        EQUALS,
        IN,
        GLOB,
        key(
            "exists",
            Kind::Bool,
            "Whether the request has the header, with whatever value.",
        ),
    ],
};

static PARAMETER: ObjectSpec = ObjectSpec {
    keys: &[
        required("name", NAME, "The decoded name of the query parameter."),
        EQUALS,
        IN,
        GLOB,
        key(
            "exists",
            Kind::Bool,
            "Whether the query has the parameter, with whatever value.",
        ),
    ],
};

static JSON_VALUE: ObjectSpec = ObjectSpec {
    keys: &[
        required(
            "pointer",
            NAME,
            "JSON pointer (RFC 6901) to a value of the request's body, such as `/amount`.",
        ),
        key(
            "equals",
            Kind::Scalar {
                longest: limits::CONDITION_BYTES,
            },
            "The value; numbers are compared exactly, texts by code point.",
        ),
        key(
            "in",
            Kind::Scalars {
                longest: limits::CONDITION_BYTES,
            },
            "One of these values, all of one type.",
        ),
        key("greater_than", Kind::Number, "A number above this one."),
        key("at_least", Kind::Number, "This number or one above it."),
        key("less_than", Kind::Number, "A number below this one."),
        key("at_most", Kind::Number, "This number or one below it."),
        key(
            "exists",
            Kind::Bool,
            "Whether the body has a value there, `null` included.",
        ),
    ],
};

static METADATA: ObjectSpec = ObjectSpec {
    keys: &[
        key(
            "namespace",
            NAME,
            "Namespace of the Envoy route's `metadata.filter_metadata`; `hoop` by default.",
        ),
        required("key", NAME, "Key within the namespace."),
        EQUALS,
        IN,
        GLOB,
        key(
            "exists",
            Kind::Bool,
            "Whether the route has the key, with whatever value.",
        ),
    ],
};
