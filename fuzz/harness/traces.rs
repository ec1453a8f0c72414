//! Text that may be a trace, through the parser of koel-bench.
#![allow(unreachable_pub, reason = "it is another crate's, and public there")]

#[path = "../../benches/src/error.rs"]
mod error;
#[path = "../../benches/src/trace.rs"]
mod parser;

use parser::Trace;

use super::common::counting::peak_of;

/// Memory allowed per byte of text: a request and its key take at least three bytes if there are some hundred keys, and four if
/// there are more.
const PER_BYTE: usize = 40;
/// A reader's buffer, and a message.
const CONSTANT: usize = 16 << 10;

/// Text gives a trace, or an error that names it; no panic, and no memory out of proportion.
pub(crate) fn trace(data: &[u8]) {
    let (parsed, peak) = peak_of(|| parser::parse(data, "the trace"));
    let most = CONSTANT + PER_BYTE * data.len();
    assert!(peak <= most, "{peak} bytes of memory for {} bytes of text", data.len());
    match parsed {
        Ok(trace) => is_right(&trace, data),
        Err(error) => assert!(error.to_string().starts_with("the trace:"), "{error}"),
    }
}

/// Whether it is a trace.
pub(crate) fn is_trace(data: &[u8]) -> bool {
    parser::parse(data, "the trace").is_ok()
}

/// It has a request for each line, in order, and each key once; written as columns, it is read as the same.
fn is_right(trace: &Trace, data: &[u8]) {
    let text = core::str::from_utf8(data).expect("a trace is text").trim_start_matches('\u{feff}');
    let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let header = usize::from(lines[0].parse::<u64>().is_err());
    assert_eq!(trace.requests.len(), lines.len() - header);
    let mut seen = 0;
    for (index, line) in trace.requests.iter().zip(&lines[header..]) {
        assert!(*index <= seen, "keys are numbered as they come");
        seen = seen.max(index + 1);
        let key = trace.keys[*index as usize].to_string();
        // As a key may be written: `+7`, or `007`.
        let is_key = |field: &str| field.trim().trim_start_matches(['+', '0']) == key.trim_start_matches('0');
        assert!(line.split(',').any(is_key), "{key} is in `{line}`");
    }
    assert_eq!(trace.keys.len(), seen as usize);
    assert!(trace.sizes.is_empty() || trace.sizes.len() == trace.keys.len());
    assert_eq!(parser::parse(columns(trace).as_bytes(), "its own").expect("its own text"), *trace);
}

fn columns(trace: &Trace) -> String {
    let mut text = String::from(if trace.sizes.is_empty() { "key\n" } else { "size,key\n" });
    for index in &trace.requests {
        let index = *index as usize;
        if let Some(size) = trace.sizes.get(index) {
            text += &format!("{size},");
        }
        text += &format!("{}\n", trace.keys[index]);
    }
    text
}
