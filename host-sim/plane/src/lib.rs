//! Plane.
