use super::*;

fn native(text: &str) -> Result<String, Diagnostics> {
    let place = |offset: usize| SourceRange {
        file: "main.tf.json".to_owned(),
        line: 1,
        column: offset + 1,
        end: (1, offset as u32 + 1),
    };
    to_native(text, &place).map(|(text, _)| text)
}

#[test]
fn a_file_becomes_what_it_would_be_in_the_other_syntax() {
    let text = native(
        r#"{"//": "a remark",
            "variable": {"v": {"type": "list(string)", "default": ["${x}"]}},
            "resource": {"t": {"a": [{"count": 2, "depends_on": ["t.b"], "x": "n-${count.index}"}, {}]}},
            "locals": [{"l": null}, {"m": {"k \"q\"": true}}],
            "module": {"m": {"source": "./m", "providers": {"p.x": "p.y"}}}}"#,
    )
    .unwrap();
    let expected = r#"variable "v" {
type = list(string)
default = ["$${x}", ]
}
resource "t" "a" {
count = 2
depends_on = [t.b, ]
x = "n-${count.index}"
}
resource "t" "a" {
}
locals {
l = null
}
locals {
m = {"k \"q\"" = true, }
}
module "m" {
source = "./m"
providers = {p.x = p.y, }
}
"#;
    assert_eq!(text, expected);
}

#[test]
fn what_does_not_fit_is_named_with_its_place() {
    for (text, message) in [
        ("[1]", "main.tf.json:1,2: Incorrect JSON value type: a JSON object is required."),
        ("{", "main.tf.json:1,2: Invalid JSON: A property's name must be a string."),
        (
            r#"{"variable": {"v": 1}}"#,
            "main.tf.json:1,20: Incorrect JSON value type: either a JSON object or an array of JSON objects is required, representing blocks.",
        ),
        (
            r#"{"output": {"o": {"depends_on": ["a } b"]}}}"#,
            "main.tf.json:1,34: Invalid expression: \"a } b\" is not an address or a type.",
        ),
        (
            r#"{"locals": {"a b": 1}}"#,
            "main.tf.json:1,13: Unsupported argument: An argument named \"a b\" is not expected here.",
        ),
    ] {
        assert_eq!(native(text).unwrap_err().to_string(), message, "{text}");
    }
}
