//! Checks of the tree itself: module docs, file sizes, who may import whom, and what the built module asks of its host.

mod files;
mod layering;
mod wasm_imports;
