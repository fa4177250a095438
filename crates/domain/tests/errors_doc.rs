//! `docs/errors.md` is made from the code. Run with `UPDATE_DOCS=1` to write it anew.

use landform_domain::{Class, Code};

#[test]
fn the_page_about_errors_says_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).expect("docs/errors.md can be written");
    }
    let written = std::fs::read_to_string(path).expect("docs/errors.md exists");
    assert_eq!(written, page, "run the test again with UPDATE_DOCS=1");
}

fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nMade from `crates/domain/src/error.rs` by a test. A code is never renamed and never means something \
         else.\nOver HTTP an error is `application/problem+json` with `code`, `title`, `detail` and `hint`.\n\n\
         | code | kind | what to do |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        page.push_str(&format!("| `{code}` | {} | {} |\n", kind(code.class()), code.hint()));
    }
    page
}

fn kind(class: Class) -> &'static str {
    match class {
        Class::Invalid => "the request makes no sense",
        Class::Unauthenticated => "who are you?",
        Class::Forbidden => "not allowed",
        Class::NotFound => "not found",
        Class::Conflict => "not in this situation",
        Class::Locked => "held by somebody else for now",
        Class::PreconditionFailed => "a condition of yours does not hold",
        Class::Unprocessable => "refused for what it says",
        Class::TooLarge => "too large",
        Class::Limited => "over a bound; try later",
        Class::Unavailable => "a part is away; try later",
        Class::Failed => "a run did not work out",
        Class::Internal => "a fault of ours",
    }
}
