//! What tests share: sessions at a fixed moment, and the pages that people begin with.

mod pages;

pub(crate) use ostler_screen::testing::*;
