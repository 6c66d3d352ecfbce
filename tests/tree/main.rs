//! The source tree: layers of modules, examples in the documentation.

mod doc_examples;
mod layers;
