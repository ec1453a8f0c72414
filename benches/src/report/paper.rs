//! Tables of the literature, reproduced.

use std::fmt;

use serde::{Serialize, Serializer};

/// One table, with the published figures.
#[derive(Debug, Serialize)]
pub struct PaperTable {
    /// What it shows.
    pub title: String,
    /// The source of the published figures, and how the measured ones were obtained.
    pub source: String,
    /// The headings of the columns.
    pub headings: Vec<String>,
    /// The lines.
    pub rows: Vec<Vec<Value>>,
    /// What follows from the table.
    pub notes: Vec<String>,
    /// Its charts.
    pub charts: Vec<Curves>,
}

/// One field of a table; in JSON it is the number or the text.
#[derive(Debug, Clone)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number, and how it is written for people.
    Number(f64, String),
}

/// Lines over a numeric axis.
#[derive(Debug, Serialize)]
pub struct Curves {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: String,
    /// The vertical axis.
    pub y: String,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The lines.
    pub lines: Vec<Curve>,
}

/// One line.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// Whether it is koel.
    pub is_koel: bool,
    /// Whether it was computed or published, not measured.
    pub is_computed: bool,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into())
    }

    /// A number with this many decimals.
    pub fn decimals(number: f64, decimals: usize) -> Self {
        Value::Number(number, format!("{number:.decimals$}"))
    }

    /// A rate as a percentage.
    pub fn percent(rate: f64) -> Self {
        Value::Number(rate, super::percent(rate))
    }

    /// A whole number.
    pub fn whole(number: u64) -> Self {
        Value::Number(number as f64, super::grouped(number))
    }

    /// Nothing.
    pub fn none() -> Self {
        Value::text("-")
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number, _) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) | Value::Number(_, text) => f.write_str(text),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Number(number, _) => serializer.serialize_f64(*number),
        }
    }
}
